"""Tests of the documents: what they claim holds, and their examples run."""
