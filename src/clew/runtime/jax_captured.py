"""From a capture of a JAX program to a callable: a function with the original's signature."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from clew.ir.graph import Graph
from clew.runtime.plain import PlainCapture


class JaxCapture(PlainCapture):
    """A JAX program captured from an example."""

    framework = "jax"


def callable_of(
    source: Any, constants: dict[str, Any], graph: Graph, name: str, state: Sequence[str], live: bool
) -> Any:
    """A function over the constants of the capture."""
    return JaxCapture(SimpleNamespace(**constants), graph, name)
