"""Tests of torch as a guest, and algorithms written with it as functions."""
