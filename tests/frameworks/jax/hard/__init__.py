"""Hard programs of JAX: what a trace does not show, or shows once only."""

from __future__ import annotations

from tests.frameworks.jax.hard import (
    arguments,
    effects,
    libraries,
    nests,
    numbers,
    outside,
    practice,
    state,
    structure,
    traced_once,
    transforms,
)
from tests.frameworks.jax.hard.ledger import PROGRAMS

assert arguments and effects and nests and numbers and outside and state and structure and traced_once and transforms
UNTESTED = practice.UNTESTED | libraries.UNTESTED
"""Those that ``python -m tests.frameworks.jax.general`` runs alone."""
__all__ = ["PROGRAMS", "UNTESTED"]
