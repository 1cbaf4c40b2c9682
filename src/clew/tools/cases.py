"""What a comparison of a capture with its original starts from and ends in, whatever the framework.

A call is a pair (args, kwargs). In come the user's ``inputs``, or the capture, which remembers its example; out come
calls, each with a name. A ``Case`` is the verdict on one of them, as data: equal, guarded or WRONG.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from clew.errors import NoExample
from clew.ir.types import Type

EQUAL, GUARDED, WRONG = "equal", "guarded", "WRONG"


@dataclass(frozen=True)
class Case:
    """One call: what it was, how it went, what differs or which guard refused it, and the node that differs first."""

    name: str
    status: str
    detail: str = ""
    node: str | None = None
    line: str = ""


Call = tuple[tuple[Any, ...], dict[str, Any]]
SEED = 10
"""Where the noise of all comparisons starts."""

_GIVE_ONE = "give one: clew.verify(graph, fn, inputs=((x,), {}))"


def calls_from(inputs: Any, captured: Any, make: Callable[[Type], Any]) -> list[Call]:
    """The calls that a user gave, a list of pairs or one pair; if there are none, the example of the capture, in which
    ``make`` gives a value of a type in the place of one that is gone."""
    if inputs is None:
        example = getattr(captured, "_example", None)
        if example is None:
            raise no_example("there is nothing to run the program on")
        return [example.call(make)]
    given = [inputs] if _is_pair(inputs) else list(inputs) if isinstance(inputs, (list, tuple)) else []
    if not given or not all(map(_is_pair, given)):
        raise NoExample(
            "the inputs are no calls",
            why="a call is a pair of a tuple of arguments and a dict of named ones",
            fixes=("inputs=((x,), {})", "inputs=[((x,), {}), ((y,), {'flag': True})]"),
        )
    calls = [(tuple(args), dict(kwargs)) for args, kwargs in given]
    _check_arguments(captured, calls)
    return calls


def _check_arguments(captured: Any, calls: list[Call]) -> None:
    """Raise for a call that leaves out arguments, or has some that are not known: there both programs only refuse."""
    if not hasattr(captured, "_entered"):
        return
    signature = captured._entered()[0]
    for args, kwargs in calls:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise NoExample(f"the inputs do not fit {signature}: {error}", fixes=(_GIVE_ONE,)) from None


def _is_pair(value: Any) -> bool:
    is_two = isinstance(value, (tuple, list)) and len(value) == 2
    return is_two and isinstance(value[0], (tuple, list)) and isinstance(value[1], dict)


def named(calls: list[Call]) -> list[tuple[str, Call]]:
    """The calls, each with its name in the report."""
    return [("example" if len(calls) == 1 else f"example {place + 1}", call) for place, call in enumerate(calls)]


def no_example(what: str) -> NoExample:
    """The error of a comparison that has nothing to run."""
    return NoExample(what, fixes=(_GIVE_ONE,))


def gone(kind: Any) -> NoExample:
    """The error where a value of the example is gone, and none of its type can be made."""
    return no_example(f"there is no example to replay: it held a {kind}, which is gone")
