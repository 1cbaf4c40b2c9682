"""Stored verdicts on every program that Clew is judged by: `python -m benchmarks.verdicts`."""
