"""Random numbers of NumPy in a program of a framework that traces without values: they would be frozen, so are refused.

Functions of ``numpy.random`` are replaced for the time of a capture, in NumPy and in the modules of the program.
Generators from around the program are compared with where they stood, when it has run.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy

from clew.capture.patches import Patches
from clew.capture.python.listener import current
from clew.frameworks.numpy.random_streams import DRAWING, MAKING


def install(patches: Patches, functions: Iterable[FunctionType]) -> None:
    """Let draws, and generators that are made without a seed, be refused."""
    makers = {id(getattr(numpy.random, name)): _drawing for name in DRAWING}
    makers |= {id(getattr(numpy.random, name)): _Making for name in MAKING}
    for name in (*DRAWING, *MAKING):
        patches.in_dict(vars(numpy.random), name, makers[id(getattr(numpy.random, name))])
    for names in {id(function.__globals__): function.__globals__ for function in functions}.values():
        for own in [own for own, value in names.items() if id(value) in makers]:
            patches.in_dict(names, own, makers[id(names[own])])


def _drawing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def draw(*args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is not None and listener.hears(sys._getframe(1)):
            raise listener.refusal(f"numpy.random.{original.__name__}")
        return original(*args, **kwargs)

    return draw


class _Making:
    """Stands for what makes generators: without a seed it is refused; it answers as the original for all else."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        listener = current()
        has_seed = any(value is not None for value in (*args, *kwargs.values()))
        if listener is not None and not has_seed and listener.hears(sys._getframe(1)):
            raise listener.refusal("a generator of NumPy without a seed")
        return self._original(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._original)
