"""Benchmarks: Clew beside its peers, in one process, interleaved. ``python -m benchmarks [section ...]``."""
