"""Hard NumPy programs: what tempts a capture to freeze, to forget or to mix up something."""

from __future__ import annotations

from tests.frameworks.numpy.hard import (
    arguments,
    branches,
    flow_branches,
    flow_loops,
    outside,
    results,
    state,
    workloads,
    writes,
)
from tests.frameworks.numpy.hard.ledger import PROGRAMS, Program

__all__ = [
    "PROGRAMS",
    "Program",
    "arguments",
    "branches",
    "flow_branches",
    "flow_loops",
    "outside",
    "results",
    "state",
    "workloads",
    "writes",
]
