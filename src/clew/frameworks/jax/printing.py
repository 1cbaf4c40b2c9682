"""What a JAX program prints with Python's ``print`` is printed by its graph too.

While the program is traced, ``print`` only notes its arguments; the graph prints them after everything is computed. A
text that was made of a tracer says nothing of the values, and is refused.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

import jax

from clew.capture.patches import Patches
from clew.errors import CaptureError
from clew.frameworks.jax.recorder import JaxRecorder
from clew.ir.source import is_hidden, user_source


class Printing:
    """The prints of one run."""

    def __init__(self, recorder: JaxRecorder) -> None:
        self.recorder = recorder
        self._calls: list[tuple[tuple[Any, ...], dict[str, Any], Any]] = []

    def install(self, patches: Patches) -> None:
        """Let ``print`` note what the program prints, while it is being traced."""
        patches.in_dict(vars(builtins), "print", self._noting)

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def note(*args: Any, **kwargs: Any) -> None:
            if not self.recorder.running or is_hidden(sys._getframe(1).f_code):
                original(*args, **kwargs)
                return
            for value in args:
                _check(value)
            self._calls.append((args, kwargs, user_source()))

        return note

    def __len__(self) -> int:
        return len(self._calls)

    def values(self) -> list[Any]:
        """All that is printed."""
        return [value for args, _, _ in self._calls for value in args]

    def write(self) -> None:
        """The calls of ``print``, as nodes."""
        for args, kwargs, source in self._calls:
            node = self.recorder.create(print, tuple(self.recorder.argument(value) for value in args), kwargs)
            node.source = source


def _check(value: Any) -> None:
    is_text_of_tracer = isinstance(value, str) and ("Tracer(" in value or "Traced<" in value)
    is_nest = isinstance(value, (tuple, list, dict)) and any(
        isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(value)
    )
    if is_text_of_tracer or is_nest:
        source = user_source()
        raise CaptureError(
            "the program prints a text made of an array",
            where="" if source is None else source.describe(),
            why="during the capture the array has no value",
            fixes=("use jax.debug.print", "give the array itself to print"),
        )
