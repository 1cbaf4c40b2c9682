"""JAX's answers to the questions of the other rooms, gathered in one object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from clew.frameworks.jax import capture, effects, names, types
from clew.frameworks.jax.layers import is_of_keras
from clew.ir.guests import Effect, Guest


class JaxGuest(Guest):
    """Answers for functions and values of JAX."""

    package = "jax"
    array_class = jax.Array

    def owns(self, value: Any) -> bool:
        """Arrays of JAX, what its transformations have made of a function, and layers of Keras that work on JAX."""
        is_of_jax = isinstance(value, jax.Array) or type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
        return is_of_jax or is_of_keras(value)

    def capture(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Any) -> Any:
        """Trace ``fn`` on an example and import the jaxpr."""
        return capture.capture(fn, args, kwargs, options)

    def function_effect(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
        """The effect of calling a function of JAX."""
        return effects.function_effect(target, args, kwargs)

    def qualified_name(self, function: Any) -> str | None:
        """The public name of a function or class of JAX."""
        return names.qualified_name(function)

    def spell(self, value: Any, name_of: Callable[[Any], str]) -> str | None:
        """The expression of a primitive; None for arrays."""
        return names.spell(value, name_of)

    def type_of(self, value: Any) -> Any:
        """The IR type of an array of JAX."""
        return types.type_of(value)

    def same_value(self, left: Any, right: Any) -> bool | None:
        """Whether two arrays are the same constant."""
        return types.same_value(left, right)

    def wait_for(self, value: Any) -> None:
        """Return when an array has been computed."""
        if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            value.block_until_ready()
