"""Hard programs of JAX: what a trace does not show, or shows once only."""

from __future__ import annotations

from tests.frameworks.jax.hard import effects, numbers, outside, practice, state, structure, traced_once, transforms
from tests.frameworks.jax.hard.ledger import PROGRAMS

assert effects and numbers and outside and practice and state and structure and traced_once and transforms
__all__ = ["PROGRAMS"]
