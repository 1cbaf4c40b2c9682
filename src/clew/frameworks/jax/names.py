"""The names under which users write JAX's functions and classes: ``jax.lax.add``, ``jax.numpy.where``.

A name is only given when it leads back to the very same object. What is shown in several places has the name of the
public place that comes first in ``HOMES``; a primitive that no public module shows, that of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Primitive

HOMES = (
    "jax.numpy", "jax.lax", "jax.nn", "jax", "jax.random", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax.linalg",
    "jax.scipy.special", "jax.scipy.linalg", "jax.debug", "jax.image", "jax.ops", "jax.tree_util",
    "jax.checkpoint_policies", "jax.core", "jax.sharding", "jax.extend.core.primitives",
)  # fmt: skip
_index: dict[int, tuple[str, Any]] = {}
_indexed: dict[str, int] = {}


def qualified_name(thing: Any) -> str | None:
    """The dotted name of a function, class or primitive of JAX; None if no name leads to it."""
    _extend_index()
    known = _index.get(id(thing))
    if known is not None and known[1] is thing:
        return known[0]
    if isinstance(thing, Primitive):
        return _name_of_primitive(thing)
    module, path = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if isinstance(module, str) and isinstance(path, str):
        return f"{module}.{path}"
    return None


def is_public(thing: Any) -> bool:
    """Whether a public module of JAX's shows an object."""
    _extend_index()
    known = _index.get(id(thing))
    return known is not None and known[1] is thing


_jitted: dict[int, Any] = {}
"""The public functions that are jitted, by the identity of the function inside."""


def public_jitted(function: Any) -> Any:
    """The public function of JAX's that is this one, jitted; None if there is none."""
    _extend_index()
    return _jitted.get(id(function))


def _extend_index() -> None:
    """Take in what the homes show; a home is read again only when it has grown."""
    for home in HOMES:
        place = sys.modules.get(home)
        size = 0 if place is None else len(vars(place))
        if size == _indexed.get(home, 0):
            continue
        _indexed[home] = size
        for name, thing in list(vars(place).items()):
            if not name.startswith("_") and not isinstance(thing, type(sys)) and _is_of_jax(thing):
                _index.setdefault(id(thing), (f"{home}.{name}", thing))
                if hasattr(thing, "_fun"):
                    _jitted.setdefault(id(thing._fun), thing)


def _is_of_jax(thing: Any) -> bool:
    module = getattr(thing, "__module__", None) or type(thing).__module__
    return isinstance(thing, Primitive) or (callable(thing) and str(module).partition(".")[0] in ("jax", "jaxlib"))


def _name_of_primitive(primitive: Any) -> str | None:
    """The module and variable that hold a primitive."""
    for name, module in list(sys.modules.items()):
        if name.startswith("jax."):
            for attribute, value in list(vars(module).items()):
                if value is primitive:
                    _index[id(primitive)] = (f"{name}.{attribute}", primitive)
                    return f"{name}.{attribute}"
    return None


def version() -> str:
    """The version of JAX that is installed."""
    return str(jax.__version__)


NameOf = Callable[[Any], str]


def spell(value: Any, name_of: NameOf) -> str | None:
    """The expression of ``value``, or None."""
    if isinstance(value, Primitive) and qualified_name(value) is not None:
        return name_of(value)
    return None
