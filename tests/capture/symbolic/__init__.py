"""Tests of symbolic traces, which run a program without an example."""
