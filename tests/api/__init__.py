"""Tests of the verbs of the public surface that are more than one room's work."""
