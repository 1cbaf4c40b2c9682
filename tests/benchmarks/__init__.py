"""Tests of what judges Clew: the fuzzer and the stored verdicts."""
