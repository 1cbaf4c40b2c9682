"""Tests of clew/translate."""
