"""JAX's answers to the questions of the other rooms, gathered in one object."""

from __future__ import annotations

from typing import Any

import jax

from clew.frameworks.jax import capture, effects, names, types
from clew.frameworks.jax.layers import is_of_keras
from clew.ir.guests import Guest


class JaxGuest(Guest):
    """Answers for functions and values of JAX."""

    package = "jax"
    array_class = jax.Array
    capture = staticmethod(capture.capture)
    function_effect = staticmethod(effects.function_effect)
    qualified_name = staticmethod(names.qualified_name)
    spell = staticmethod(names.spell)
    type_of = staticmethod(types.type_of)
    same_value = staticmethod(types.same_value)

    def owns(self, value: Any) -> bool:
        """Arrays of JAX, what its transformations have made of a function, and layers of Keras that work on JAX."""
        is_of_jax = isinstance(value, jax.Array) or type(value).__module__.partition(".")[0] in ("jax", "jaxlib")
        return is_of_jax or is_of_keras(value)

    def wait_for(self, value: Any) -> None:
        """Return when an array has been computed."""
        if isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer):
            value.block_until_ready()
