"""Realistic programs of TensorFlow, with inputs of other values, sizes and numbers: one capture should serve all."""

from __future__ import annotations

from tests.frameworks.tensorflow.general import flow, numbers, practice, shapes, state
from tests.frameworks.tensorflow.general.ledger import PROGRAMS

assert flow and numbers and practice and shapes and state
__all__ = ["PROGRAMS"]
