"""What JAX's functions do besides computing: almost all only compute, and random numbers come from keys.

Calls that reach the outside (printing, callbacks) and primitives with an effect of their own are never dropped.
"""

from __future__ import annotations

from typing import Any

from clew.frameworks.jax.names import qualified_name
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
