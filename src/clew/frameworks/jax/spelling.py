"""JAX's plain values as Python expressions: primitives and dtypes by their names.

Arrays, callbacks and shardings have no expression: the answer is None, and they travel as objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax.extend.core import Primitive

from clew.frameworks.jax.names import qualified_name

NameOf = Callable[[Any], str]


def spell(value: Any, name_of: NameOf) -> str | None:
    """The expression of ``value``, or None."""
    if isinstance(value, Primitive) and qualified_name(value) is not None:
        return name_of(value)
    return None
