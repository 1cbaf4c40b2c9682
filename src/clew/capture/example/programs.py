"""What a callable consists of: its signature, and the objects behind it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import partial
from typing import Any

from clew.capture.example.contents import slots_of
from clew.errors import CaptureError
from clew.ir.graph import Graph


def signature_of(target: Any) -> inspect.Signature:
    """The original's signature; that of a decorator's wrapper if the wrapper has parameters of its own."""
    try:
        own = inspect.signature(target, follow_wrapped=False)
    except ValueError:  # a function that is written in C and does not tell
        return inspect.signature(lambda *args, **kwargs: None)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if any(parameter.kind not in variadic and name != "self" for name, parameter in own.parameters.items()):
        return own
    return inspect.signature(target)


def behind(fn: Any) -> list[Any]:
    """A callable and the objects that it consists of: of a method its object, of a partial what it holds."""
    found: list[Any] = []
    waiting = [fn]
    while waiting:
        one = waiting.pop()
        if one is not None and not any(one is known for known in found):
            found.append(one)
            waiting += [getattr(one, "__self__", None), getattr(one, "__wrapped__", None)]
            if isinstance(getattr(one, "__dict__", {}).get("_graph"), Graph):
                waiting += _code_of(one)
            if isinstance(one, partial):
                waiting += [one.func, *one.args, *one.keywords.values()]
    return found


def _code_of(captured: Any) -> list[Any]:
    """The function that was made of a graph, which runs in its place; what the first call remembers is known then."""
    if hasattr(captured, "_plans"):
        captured._plans()
    return [captured._compile()[1]] if hasattr(captured, "_compile") else []


def check_slots(programs: Iterable[Any]) -> None:
    """An object that is called must keep its state where it can be watched by name."""
    for part in programs:
        kind: Any = type(part)
        if slots_of(kind) and not hasattr(part, "__dict__"):
            raise CaptureError(
                f"the program is, or belongs to, a {kind.__name__}, which keeps its attributes in slots",
                why="the capture cannot follow them there",
                fixes=("let the class have a dict: take __slots__ away",),
            )
