"""Tests of functions that are handed to torch."""
