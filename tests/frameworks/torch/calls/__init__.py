"""Tests of torch's calls in a capture."""
