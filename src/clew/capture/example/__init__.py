"""Capture from an example: the program runs once on real values, and what it does with them is recorded.

The parts: ``recorder`` (values and their nodes), ``scalars`` (numbers that come from arrays), ``guards`` (what the
capture assumed), ``inputs`` (arguments to placeholders), ``outputs`` (results rebuilt at each call).
"""
