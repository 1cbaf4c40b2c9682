"""Calls inside of a ``try`` of the user's: there an error is a path that the capture did not take.

Whether a frame of the program stands under an ``except`` is read from exception tables. Such a call is recorded as an
attempt: if it fails when the graph runs, a guard fails, because the path behind the handler is not known. Where the
handler asks for one class, and does not look at the error, its path is recorded too: the call gives an ``Outcome``.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

from clew.capture.bytecode.instructions import Instruction, Operations, instructions_of
from clew.errors import ClewError, GuardError
from clew.ir.effects import effect_of, pure
from clew.ir.guests import FRAMEWORK_PACKAGES, Effect
from clew.ir.node import Node

ENTRANCES: set[str] = set()
"""Modules that run the user's program, or the functions that it hands over: what is further out is not the program.
Each adds its own name."""

_WITHIN = frozenset({"__call__", "call_wrapped"})
"""Functions of these files that the program comes through on its way to a part of itself."""
RAISING_AGAIN: set[str] = set()
"""Modules of frameworks that catch errors only to raise them again."""

Errors = tuple[type[BaseException], ...]

PASSING: set[type[Exception]] = set()
"""Errors by which a framework talks to itself, and which are not the program's, nor are Clew's."""


def _passing() -> Errors:
    """The errors that no handler of the program is for."""
    return (ClewError, *PASSING)


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call that did not fail during the capture."""
    try:
        return function(*args, **kwargs)
    except _passing():
        raise
    except Exception as error:
        raise _refused(getattr(function, "__name__", "a call"), error) from error


@pure
def succeeds(error: type[Exception], function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[bool, Any]:
    """Whether a call does not raise this error, and its result: the program catches the error, on a path of its own."""
    try:
        return True, function(*args, **kwargs)
    except ClewError:
        raise
    except error:
        return False, None
    except Exception as other:
        raise _refused(getattr(function, "__name__", "a call"), other) from other


def attempt_method(name: str, value: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a method that did not fail during the capture."""
    try:
        return getattr(value, name)(*args, **kwargs)
    except _passing():
        raise
    except Exception as error:
        raise _refused(name, error) from error


class Failed:
    """Stands for the value of a call that has failed."""


FAILED = Failed()


def outcome_of(kind: type[Exception], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a call, or ``FAILED`` if it raises an error of this class."""
    try:
        return function(*args, **kwargs)
    except _passing():
        raise
    except kind:
        return FAILED
    except Exception as error:
        raise _refused(getattr(function, "__name__", "a call"), error) from error


def outcome_of_method(kind: type[Exception], name: str, value: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a method, or ``FAILED`` if it raises an error of this class."""
    return outcome_of(kind, getattr(value, name), *args, **kwargs)


_ATTEMPTS = frozenset(one.__code__ for one in (attempt, attempt_method, succeeds, outcome_of))
"""Functions inside of which an error is one that the program catches."""


@pure
def has_failed(value: Any) -> bool:
    """Whether a call has failed."""
    return value is FAILED


def assumed_error(kind: type[Exception]) -> Exception:
    """An error that the program catches where a call is assumed to fail; nothing can be made of it in a graph."""

    def forget(self: Exception, *args: Any) -> None:
        """No error of a graph can be made with arguments that nobody knows."""

    made: Exception = type(kind.__name__, (kind,), {"__init__": forget, "__module__": __name__})()
    return made


def attempted(node: Node) -> Any:
    """What tells of the call that an attempt makes, as a node would; any other node itself."""
    if node.op != "call_function" or (node.target is not attempt and node.target is not attempt_method):
        return node
    op = "call_function" if node.target is attempt else "call_method"
    return SimpleNamespace(op=op, target=node.args[0], args=node.args[1:], kwargs=node.kwargs, graph=node.graph)


def attempted_effect(node: Node) -> Effect:
    """The effect of a node; an attempt has that of the call that it attempts."""
    return effect_of(attempted(node))


def _refused(name: str, error: Exception) -> GuardError:
    """The error of a call that has failed, and did not when the program was captured."""
    return GuardError(
        f"the graph assumed that {name} does not fail, but it raised {type(error).__name__}: {error}",
        why="the program catches this error and takes another path, which was not captured",
        fixes=("capture again with this input",),
    )


def refusing(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The same function, which contains attempts, with the error of a guard where it fails."""

    def refuse(*args: Any) -> Any:
        try:
            return function(*args)
        except _passing():
            raise
        except Exception as error:
            raise _refused(name, error) from error

    return refuse


ARITHMETIC: Errors = (ArithmeticError, ValueError)
"""What a calculation with plain numbers can raise."""


class Never(BaseException):
    """No error at all; it is never raised."""


NEVER: Errors = (Never,)
"""What a call raises that cannot fail."""
FRAMEWORK: Errors = ()
"""Stands for what a function of a framework can raise: errors of Python's own classes, or of the framework's."""
_FRAMEWORK_CLASSES = FRAMEWORK_PACKAGES | {"builtins", "optree"}

Region = tuple[int, int, tuple[str, ...] | None]
"""A part of a function under an ``except``, and the classes that it asks for by name; None if that is not known."""


_Function = tuple[CodeType, tuple[Region, ...], bool]
"""What is known of a function: its code, which parts stand under an ``except``, and whether it runs programs."""

_functions: dict[int, _Function] = {}
"""By the identity of their code, which is kept, so that it stays its own."""


class Gate:
    """A frame that stays where it is while the program runs inside of it: what is further out is looked at once."""

    __slots__ = ("frame", "outer", "tried")

    def __init__(self, frame: FrameType, outer: Gate | None) -> None:
        self.frame: FrameType | None = frame
        self.outer = outer
        self.tried: dict[Errors | None, bool] = {}

    def is_tried(self, executed: dict[int, CodeType], errors: Errors | None) -> bool:
        """Whether a frame further out would catch one of these errors."""
        known = self.tried.get(errors)
        if known is None:
            back = None if self.frame is None else self.frame.f_back
            known = self.tried[errors] = is_tried(back, executed, errors, self.outer)
        return known


def is_tried(
    frame: FrameType | None, executed: dict[int, CodeType], errors: Errors | None = None, gate: Gate | None = None
) -> bool:
    """True when this frame, or one that called it, would catch an error raised now; ``executed`` learns their code.

    ``errors`` are those that can be raised, any if it is None. ``gate`` is the innermost one.
    """
    found = frame is not None and "__name__" not in frame.f_globals and _is_attempted(frame)
    gate_frame = None if gate is None else gate.frame
    while frame is not None:
        if frame is gate_frame and gate is not None:
            return gate.is_tried(executed, errors) or found
        code = frame.f_code
        key = id(code)
        known = _functions.get(key)
        if known is None:
            home = frame.f_globals.get("__name__", "")
            raises_again = home.startswith("clew.") or home in RAISING_AGAIN
            is_entrance = home in ENTRANCES and code.co_name not in _WITHIN
            known = _functions[key] = (code, () if raises_again else _tried(code), is_entrance)
            if code in _ATTEMPTS:
                known = _functions[key] = (code, ((0, len(code.co_code), None),), is_entrance)
        if known[2]:
            break
        executed[key] = code
        for start, end, names in known[1]:
            if start <= frame.f_lasti < end and not found:
                found = errors is None or names is None or any(_may_catch(frame, name, errors) for name in names)
        frame = frame.f_back
    return found


def _is_attempted(frame: FrameType) -> bool:
    """Whether generated code, which this frame runs, attempts a call just now: it is captured again."""
    inner: FrameType | None = sys._getframe(1)
    while inner is not None and inner is not frame:
        if inner.f_code in _ATTEMPTS:
            return True
        inner = inner.f_back
    return False


def _may_catch(frame: FrameType, name: str, errors: Errors) -> bool:
    """Whether ``except name`` in this frame is for one of the errors."""
    first, *rest = name.split(".")
    kind = frame.f_globals.get(first, frame.f_builtins.get(first))
    for part in rest:
        kind = getattr(kind, part, None)
    if not isinstance(kind, type):
        return True
    if not errors:
        return kind.__module__.partition(".")[0] in _FRAMEWORK_CLASSES
    return any(issubclass(error, kind) or issubclass(kind, error) for error in errors)


def class_caught(frame: FrameType | None, errors: Errors | None) -> type[Exception] | None:
    """The one class of errors that the innermost ``except`` around this frame asks for; None if it is another."""
    while frame is not None:
        known = _functions.get(id(frame.f_code))
        if known is None or known[2]:
            return None
        for start, end, names in known[1]:
            if start <= frame.f_lasti < end:
                kind = _class_named(frame, names[0]) if names is not None and len(names) == 1 else None
                return kind if kind is not None and (errors is None or _may_catch(frame, names[0], errors)) else None  # type: ignore[index]
        frame = frame.f_back
    return None


def catches_only(kind: type[Exception], frame: FrameType | None, errors: Errors | None) -> bool:
    """Whether every ``except`` around this frame that may catch one of the errors asks for this one class."""
    while frame is not None:
        known = _functions.get(id(frame.f_code))
        if known is None or known[2]:
            return True
        around = [names for start, end, names in known[1] if start <= frame.f_lasti < end]
        for names in around:
            if names is None or errors is None:
                return False
            if any(_may_catch(frame, name, errors) and _class_named(frame, name) is not kind for name in names):
                return False
        frame = frame.f_back
    return True


def _class_named(frame: FrameType, name: str) -> type[Exception] | None:
    """The class of errors of this name, as a function sees it."""
    first, *rest = name.split(".")
    kind = frame.f_globals.get(first, frame.f_builtins.get(first))
    for part in rest:
        kind = getattr(kind, part, None)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else None


def catches_errors(code: CodeType) -> bool:
    """Whether a part of a function stands under an ``except``."""
    return bool(_tried(code))


def handlers_of(code: CodeType) -> tuple[Region, ...]:
    """The parts of a function that stand under an ``except``, and the classes of errors that each asks for."""
    return _tried(code)


def _tried(code: CodeType) -> tuple[Region, ...]:
    """The parts of a function that stand under an ``except``."""
    swallows = "suppress" in code.co_names  # a ``with`` that may keep errors to itself
    if not code.co_exceptiontable or not _may_catch_any(code, swallows):
        return ()
    instructions = instructions_of(code)
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]

    def is_caught(target: int, handlers: frozenset[int]) -> bool:
        """A handler that passes the error on, the end of a ``with`` say, may itself stand under one that does not."""
        if _catches(instructions, places.get(target, len(instructions)), swallows):
            return True
        around = {entry.target for entry in entries if entry.start <= target < entry.end} - handlers
        return any(is_caught(outer, handlers | {target}) for outer in around)

    return tuple(
        (entry.start, entry.end, _asked_for(instructions, places, entry.target))
        for entry in entries
        if is_caught(entry.target, frozenset({entry.target}))
    )


_ENTERED, _DROPPED, _MATCHED, _WITH = (
    dis.opmap[name] for name in ("PUSH_EXC_INFO", "POP_TOP", "CHECK_EXC_MATCH", "WITH_EXCEPT_START")
)


def _may_catch_any(code: CodeType, swallows: bool) -> bool:
    """Whether a function has an operation that stands in handlers which keep errors; most have a ``with`` at most."""
    operations = Operations(code).all
    keeps = _MATCHED in operations or bytes((_ENTERED, _DROPPED)) in operations
    return keeps or (swallows and _WITH in operations)


def _asked_for(instructions: list[Instruction], places: dict[int, int], target: int) -> tuple[str, ...] | None:
    """The classes that the clauses of a handler name, one after the other; None if it may take any error."""
    names: list[str] = []
    place = places[target] + 1
    while instructions[place].opname != "RERAISE":
        while instructions[place].opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "BUILD_TUPLE"):
            instruction = instructions[place]
            if instruction.opname == "LOAD_ATTR" and names:
                names[-1] += f".{instruction.argval}"
            elif instruction.opname != "BUILD_TUPLE":
                names.append(str(instruction.argval))
            place += 1
        if instructions[place].opname != "CHECK_EXC_MATCH" or "IF_FALSE" not in instructions[place + 1].opname:
            return None
        place = places[instructions[place + 1].argval]
    return tuple(names) or None


def _catches(instructions: list[Instruction], place: int, swallows: bool) -> bool:
    """Whether a handler asks for the kind of error, or takes all: the end of a ``with`` or ``finally`` does neither."""
    following = [instruction.opname for instruction in instructions[place : place + 8]]
    if not following or following[0] != "PUSH_EXC_INFO":
        return False
    if "WITH_EXCEPT_START" in following:
        return swallows
    return "CHECK_EXC_MATCH" in following or (len(following) > 1 and following[1] == "POP_TOP")
