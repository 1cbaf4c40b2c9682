"""The errors of symbolic tracing: a symbolic value was used where Python needs a concrete one.

Each tells the user's line, why it cannot be answered without an example, and the three ways out.
"""

from __future__ import annotations

from typing import Any

from clew.errors import (
    MixedTracers,
    ModuleNotFound,
    SymbolicLengthError,
    SymbolicValueError,
    TraceError,
    UnsupportedArgument,
)
from clew.ir.source import user_source

WAYS_OUT = (
    'fix the value while tracing: symbolic_trace(fn, concrete_args={"name": value})',
    'keep the function that needs it as one call: clew.wrap("function_name") at module level',
    "capture from an example instead, which knows the values: clew.trace(fn, args=(...))",
)


def _where() -> str:
    source = user_source()
    return "" if source is None else source.describe()


def _why(proxy: Any) -> str:
    return f"{_name(proxy)} is a symbolic value: it stands for all inputs at once and has no concrete value"


def _name(proxy: Any) -> str:
    fields = vars(proxy)
    node = fields.get("node") or fields.get("_node")
    return f"'{node.name}'" if node is not None else f"the attribute '{fields.get('attr')}'"


def control_flow(proxy: Any) -> TraceError:
    """For ``if``, ``while``, ``and``, ``or``, ``not``, ``assert``."""
    what = "symbolically traced variables cannot be used as inputs to control flow"
    return TraceError(what, where=_where(), why=_why(proxy), fixes=WAYS_OUT)


def iteration(proxy: Any) -> TraceError:
    """For loops, ``*`` and ``**``."""
    what = "Proxy object cannot be iterated: a symbolic value was used in a loop, or as *args or **kwargs of a call"
    indexed = "if the number of items is known, index it: for i in range(n): x[i]; unpacking a, b = x works as it is"
    return TraceError(what, where=_where(), why=_why(proxy), fixes=(*WAYS_OUT, indexed))


def length(proxy: Any) -> SymbolicLengthError:
    """For ``len``."""
    what = "'len' is not supported in symbolic tracing by default"
    wrapped = "record the call itself: clew.wrap('len') at module level, or use x.shape[0], which is recorded"
    return SymbolicLengthError(what, where=_where(), why=_why(proxy), fixes=(WAYS_OUT[0], wrapped, WAYS_OUT[2]))


def number(proxy: Any, asked: str) -> SymbolicValueError:
    """For ``int``, ``float``, ``complex``, ``range`` and whatever else needs a plain number."""
    what = f"a symbolic value cannot become a concrete number: {asked} was asked for"
    return SymbolicValueError(what, where=_where(), why=_why(proxy), fixes=WAYS_OUT)


def argument(value: Any) -> UnsupportedArgument:
    """For a value that a graph cannot hold."""
    kind = type(value)
    return UnsupportedArgument(
        f"argument of type: {kind}",
        where=_where(),
        why="a graph holds plain values, arrays, functions and nests of these, so that it can be printed and saved",
        fixes=(
            f"give {kind.__name__} a method __fx_create_arg__(self, tracer) that returns what the graph shall hold",
            "override Tracer.create_arg for it",
            *WAYS_OUT[1:],
        ),
    )


def not_a_part(what: str) -> ModuleNotFound:
    """For modules and parameters outside the root."""
    return ModuleNotFound(
        what,
        where=_where(),
        why="a graph refers to modules and parameters by their path from the traced root",
        fixes=("assign it to an attribute of the root module before tracing", *WAYS_OUT[1:]),
    )


def leaked(node: Any) -> MixedTracers:
    """For a value of another trace that turned up in this one."""
    return MixedTracers(
        f"the symbolic value '{node.name}' belongs to another graph than the one being traced",
        where=_where(),
        why="it was made by another trace, or copied with copy.deepcopy, and its graph is not a part of this one",
        fixes=["do not let a proxy outlive the trace that made it", "copy a value with x.clone(), which is recorded"],
    )
