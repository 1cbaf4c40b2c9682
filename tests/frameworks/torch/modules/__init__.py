"""Tests of modules of torch in a capture."""
