"""Hard programs of TensorFlow: what a function graph does not show, or shows once only."""

from __future__ import annotations

from tests.frameworks.tensorflow.hard import arguments, effects, flow, layers, outside, state, traced_before, workloads
from tests.frameworks.tensorflow.hard.ledger import PROGRAMS

assert arguments and effects and flow and layers and outside and state and traced_before and workloads
__all__ = ["PROGRAMS"]
