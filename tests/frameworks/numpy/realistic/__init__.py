"""Realistic NumPy programs, each with probes: other values, sizes, ranks, dtypes, flags and kinds of numbers."""

from __future__ import annotations

from tests.frameworks.numpy.realistic import arrays, iteration, options, practice, states, tables
from tests.frameworks.numpy.realistic.register import PROGRAMS, Named, Program

__all__ = ["PROGRAMS", "Named", "Program", "arrays", "iteration", "options", "practice", "states", "tables"]
