"""Random plain programs, judged against captures of them: `python -m benchmarks.fuzz`."""
