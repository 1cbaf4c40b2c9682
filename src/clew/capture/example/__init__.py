"""Capture from an example: the program runs once on real values, and what it does with them is recorded.

The parts, in the order of a run: ``options`` (what is asked), ``surroundings`` and ``state`` (what the program can
reach and change), ``inputs`` and ``nests`` (arguments to placeholders), ``recorder`` (values and their nodes),
``guards`` (what the capture assumed), ``outputs`` and ``writes`` (results, and changed state). ``docs/dev/capture.md``
has the whole of it.
"""
