"""The source frameworks: what the translator asks of each."""
