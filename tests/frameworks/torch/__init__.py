"""Algorithms written with torch as functions."""
