"""Passes: functions from a valid graph to a valid graph, and what serves them."""
