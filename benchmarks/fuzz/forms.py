"""The forms of a capture that a program is judged in: all must do what the program does, or refuse.

Each takes a program and its example, and gives something to call in its place: the capture itself, a lazy graph, the
graph run by the interpreter, written and read again, in its nested form, after passes, without writes, copied, captured
once more, called by another program that is captured.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import clew
from benchmarks.fuzz.judge import trace
from clew.capture.recording.unused_calls import may_raise
from clew.ir.effects import is_impure
from tests.footguns.harness import Capture

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def _dynamic(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return clew.trace(fn, args=args, kwargs=kwargs, dynamic=True)


def _lazy(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A lazy graph captures when it is called."""
    return clew.trace(fn)


def _after(change: Callable[[Any], Any]) -> Capture:
    """The capture after something was done to it."""

    def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return change(trace(fn, args, kwargs))

    return capture


def _interpreted(captured: Any) -> Any:
    """The same object, state and all, which the interpreter runs."""

    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return clew.Interpreter(self).run(*args, **kwargs)

    captured.__class__ = type(type(captured).__name__, (type(captured),), {"__call__": call})
    return captured


def _read_again(captured: Any) -> Any:
    text, objects = clew.text_and_objects(captured.graph)
    captured.graph = clew.parse(text, objects=objects, allow=("__main__", "tests", "benchmarks"))
    return captured


def _nested(captured: Any) -> Any:
    return clew.nested(captured) if isinstance(captured, clew.GraphModule) else captured


def _passed(captured: Any) -> Any:
    captured.graph.eliminate_dead_code(lambda node: is_impure(node) or may_raise(node))  # else errors go, as asked
    clew.common_subexpressions(captured.graph)
    captured.graph.lint()
    return captured


def _again(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return trace(trace(fn, args, kwargs), args, kwargs)


def _called(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The capture as a part of another program; one of a module has state of its own, and is captured again."""
    captured = trace(fn, args, kwargs)
    if hasattr(fn, "named_parameters"):
        return trace(captured, args, kwargs)

    def program(*args: Any, **kwargs: Any) -> Any:
        return captured(*args, **kwargs)

    return trace(program, args, kwargs)


FORMS: dict[str, Capture] = {
    "trace": trace,
    "lazy": _lazy,
    "dynamic": _dynamic,
    "interpreter": _after(_interpreted),
    "text": _after(_read_again),
    "nested": _after(_nested),
    "passes": _after(_passed),
    "functional": _after(clew.functionalize),
    "copy": _after(copy.deepcopy),
    "recapture": _again,
    "called": _called,
}
"""By name; `trace` is what users call."""


def form_of(index: int) -> str:
    """The form in which a program is judged, where all are asked for: every second one by the capture itself."""
    others = list(FORMS)[1:]
    return "trace" if index % 2 == 0 else others[(index // 2) % len(others)]
