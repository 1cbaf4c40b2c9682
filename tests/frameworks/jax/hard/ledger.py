"""The register of hard programs of JAX, and arrays for their calls."""

from __future__ import annotations

import jax.numpy as jnp

from tests.frameworks.hard_programs import Register

PROGRAMS = Register()
program, made = PROGRAMS.program, PROGRAMS.made
X = jnp.array([0.5, -1.0, 2.0])
Y = jnp.array([4.0, 1.0, -2.0])
LONG = jnp.arange(5.0)
M = jnp.arange(6.0).reshape(2, 3)
I = jnp.array([3, 1, 2])  # noqa: E741
