"""Errors that a program raises itself: the graph raises for ``raise`` and ``assert`` on data.

An error that leaves the program is a call of ``raise_error``, written in code as ``raise``. Its text may be put
together from values: then it is a ``Text``, which knows its node. Whether an error leaves the program is read off the
stack: no running function may be in a block that would catch it or do something then.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from clew.capture.recording.recorder import Scalar
from clew.capture.state.containers import SIMPLE
from clew.codegen.statements import written_as_raise, written_as_text
from clew.errors import ClewError
from clew.ir.effects import pure

if TYPE_CHECKING:
    from clew.capture.control_flow.body_recorder import Support
    from clew.capture.recording.recorder import Recorder
    from clew.ir.node import Node

_RAISE = dis.opmap["RAISE_VARARGS"]
ENTRANCE = "_call"
"""The function of a capture in which the program runs."""


def raise_error(kind: type[BaseException], *args: Any) -> None:
    """Raise an error, as the captured program does."""
    raise kind(*args)


written_as_raise(raise_error)


@pure
def text_of(template: str, *values: Any) -> str:
    """A text with values in it, as the captured program puts it together."""
    return template.format(*values)


written_as_text(text_of)


class Text(str):
    """The text of an error in the example, and the node that makes it."""

    __slots__ = ("place",)
    place: Any


def escaped(said: str) -> str:
    """A text in which no field stands."""
    return said.replace("{", "{{").replace("}", "}}")


def text(recorder: Recorder, support: Support, template: str, values: list[Any]) -> str:
    """What an error says, made of values of the graph."""
    with support.plainly():
        found = Text(template.format(*map(recorder.concrete, values)))
    if not values:
        return str(found)
    found.place = record_text(recorder, template, values)
    return found


def record_text(recorder: Recorder, template: str, values: list[Any]) -> Node:
    """The node of a text that is made of values of the graph."""
    return recorder.create(text_of, (template, *(shown(recorder, value) for value in values)))


def shown(recorder: Recorder, value: Any) -> Any:
    """A value as the argument of a node that makes text of it: a shape is one, and not a plain tuple."""
    made = recorder.argument(value)
    is_plain = not isinstance(value, tuple) or value.__class__ is tuple or hasattr(value, "_fields")
    return made if is_plain else recorder.create(value.__class__, (made,))


def record_raise(recorder: Recorder, made: tuple[Any, ...]) -> None:
    """Let the graph raise an error here; numbers in its text that nobody followed are relied on here alone."""
    for place, number in recorder.error_notes.told:
        recorder.guard(place, number)
    recorder.create(raise_error, made)


def arguments_of(recorder: Recorder, error: BaseException) -> tuple[Any, ...] | None:
    """What an error is made of, as arguments of a node; None if the graph cannot make its like."""
    kind, parts = type(error), error.args
    own = [base for base in kind.__mro__ if base.__module__ != "builtins"]
    is_plain = not any(name in vars(base) for base in own for name in ("__init__", "__new__"))
    is_plain = is_plain and error.__cause__ is None and not vars(error)
    is_known = all(map(_is_known, parts))
    if isinstance(error, ClewError) or not is_plain or not is_known:
        return None
    return (kind, *(one.place if type(one) is Text else recorder.argument(one) for one in parts))


def _is_known(part: Any) -> bool:
    if type(part) is tuple:
        return all(_is_known(one) and type(one) is not Text for one in part)
    return type(part) in (*SIMPLE, Text) or issubclass(type(part), Scalar)


def is_raised(error: BaseException) -> bool:
    """Whether a ``raise`` or ``assert`` has raised an error, and no operation that may have met a proxy."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_lasti >= 0 and trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE


def leaves_program() -> bool:
    """Whether an error that is raised now leaves the program, past all functions that are running."""
    return not any(_is_covered(frame.f_code, frame.f_lasti) for frame in _running())


def is_outermost() -> bool:
    """Whether the function that is running is the program itself, and no function of the user's has called it."""
    names = [str(frame.f_globals.get("__name__", "")) for frame in _running()]
    return sum(name.partition(".")[0] not in CALLING for name in names) <= 1


CALLING = {"contextlib", "functools"}
"""Packages whose functions call a program, and hand on what it gives; frameworks add theirs."""


def _running() -> Iterator[FrameType]:
    """The frames of the program, and of what it has called, without those of the capture itself."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        is_own = module.partition(".")[0] == "clew"
        if is_own and frame.f_code.co_name == ENTRANCE:
            return
        if not is_own:
            yield frame
        frame = frame.f_back


def _is_covered(code: CodeType, place: int) -> bool:
    """Whether an instruction stands in a block that catches errors, or that does something when it is left."""
    return bool(code.co_exceptiontable) and any(start <= place < end for start, end in _blocks(code))


@functools.lru_cache(maxsize=512)
def _blocks(code: CodeType) -> tuple[tuple[int, int], ...]:
    """From where to where the blocks of a function reach that an error goes out of."""
    steps = iter(code.co_exceptiontable)
    found: list[tuple[int, int]] = []
    while True:
        try:
            start = _number(steps) * 2
        except StopIteration:
            return tuple(found)
        found.append((start, start + _number(steps) * 2))
        _number(steps), _number(steps)  # where the handler is, and how deep


def _number(steps: Iterator[int]) -> int:
    """The next number of a table: six bits in each byte, the seventh says that there are more."""
    step = next(steps)
    value = step & 63
    while step & 64:
        step = next(steps)
        value = value << 6 | step & 63
    return value
