"""Tests of recorders: inputs, outputs, calls and values of a capture from an example."""
