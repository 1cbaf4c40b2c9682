"""What JAX's functions do besides computing: almost all only compute, and random numbers come from keys.

Calls that reach the outside (printing, callbacks) and primitives with an effect of their own are never dropped.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax

from clew.frameworks.jax.names import qualified_name
from clew.frameworks.numpy import effects as of_numpy
from clew.ir.guests import Effect

_ACTING = ("jax.debug.", "jax.experimental.", "jax.pure_callback", "jax.distributed", "jax.profiler", "jax.monitoring")
_COMPUTING = (
    "jax.numpy.", "jax.lax.", "jax.nn.", "jax.random.", "jax.scipy.", "jax.image.", "jax.ops.", "jax.tree_util.",
)  # fmt: skip


def function_effect(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
    """The effect of calling a function of JAX; None for those that nobody vouches for."""
    name = qualified_name(target) or ""
    if name.startswith(_ACTING):
        return Effect.WRITE
    return Effect.NONE if name.startswith(_COMPUTING) else None


_HANDED_FUNCTIONS = frozenset(
    "vectorize frompyfunc apply_along_axis apply_over_axes piecewise fromfunction save load savez fromfile".split()
)
_LEAVING = frozenset("tolist item tobytes at delete block_until_ready unsafe_buffer_pointer".split())
METHODS = frozenset(name for name in dir(jax.Array) if not name.startswith("_") and name not in _LEAVING)
"""Methods of arrays that give arrays."""


def is_function(value: Any) -> bool:
    """Whether a value is a function of ``jax.numpy`` or ``jax.nn``, or of NumPy's, that only computes."""
    if isinstance(value, type) or of_numpy.is_function(value):
        return not isinstance(value, type)
    is_public = (qualified_name(value) or "").startswith(("jax.numpy.", "jax.nn."))
    return is_public and callable(value) and getattr(value, "__name__", "") not in _HANDED_FUNCTIONS


def takes_nests(value: Any) -> bool:
    """Whether a module or function of JAX's looks at dicts as nests alone, whose keys it sorts."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return str(name).partition(".")[0] == "jax"
