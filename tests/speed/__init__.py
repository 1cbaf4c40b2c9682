"""Counts that stand for speed, and are the same on every machine."""
