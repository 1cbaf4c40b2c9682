"""Context managers that may keep an error to themselves: a call inside of such a ``with`` is tried.

In comes a frame that stands in a ``with``; out comes whether a manager that its code names may swallow an error. Which
one it is lies on the stack of the frame, where nobody can look, so that any that the code names counts: a class of the
user's whose ``__exit__`` may give a truth, a generator with an ``except``, `contextlib.suppress`. Those of installed
packages pass errors on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from clew.capture.bytecode.instructions import instructions_of
from clew.ir.source import is_hidden, is_installed

_DEPTH = 2
"""How far functions are followed that may give a manager."""


def may_swallow(frame: FrameType, catches: Callable[[CodeType], bool]) -> bool:
    """Whether a manager that the code of a frame names may keep an error; ``catches`` tells which code has handlers."""
    if is_installed(frame.f_code):
        return "suppress" in frame.f_code.co_names
    around = {**{name: frame.f_globals.get(name) for name in frame.f_code.co_names}, **frame.f_locals}
    return any(_swallows(one, catches, _DEPTH) for one in _named(frame.f_code, around))


def _named(code: CodeType, around: dict[str, Any]) -> Iterator[Any]:
    """The values of variables, and those of their attributes that the code names too; proxies are not asked."""
    for value in around.values():
        if value is None:
            continue
        yield value
        kind = type(value)
        held = object.__getattribute__(value, "__dict__") if kind.__dictoffset__ and kind is not type else {}
        for name in code.co_names:
            found = held.get(name) if name in held else vars(kind).get(name)
            if found is not None:
                yield found


def _swallows(value: Any, catches: Callable[[CodeType], bool], depth: int) -> bool:
    own = type(value)
    if own is FunctionType:
        made = getattr(value, "__wrapped__", None)
        if type(made) is FunctionType and value.__code__.co_filename == contextlib.__file__:
            return not is_installed(made.__code__) and catches(made.__code__)
        return depth > 0 and not is_installed(value.__code__) and _gives_one(value, catches, depth - 1)
    if own is contextlib._GeneratorContextManager:
        code = getattr(value.gen, "gi_code", None)
        return code is not None and not is_installed(code) and catches(code)
    kind: Any = value if issubclass(own, type) else own
    if issubclass(kind, contextlib.suppress):
        return True
    leaves = next((vars(base)["__exit__"] for base in kind.__mro__ if "__exit__" in vars(base)), None)
    return type(leaves) is FunctionType and _is_own(leaves.__code__) and _may_give_truth(leaves.__code__)


def _gives_one(function: FunctionType, catches: Callable[[CodeType], bool], depth: int) -> bool:
    """Whether a function of the user's names a manager that may keep an error."""
    named = (function.__globals__.get(name) for name in function.__code__.co_names)
    cells = (cell.cell_contents for cell in function.__closure__ or () if cell != _EMPTY)
    return any(_swallows(one, catches, depth) for one in (*named, *cells) if one is not None and one is not function)


def _may_give_truth(code: CodeType) -> bool:
    """Whether a function may return something that counts as true."""
    instructions = [one for one in instructions_of(code) if one.opname != "CACHE"]
    for before, one in zip([None, *instructions], instructions, strict=False):
        if one.opname == "RETURN_CONST" and one.argval:
            return True
        is_plain = before is not None and before.opname == "LOAD_CONST" and not before.argval
        if one.opname == "RETURN_VALUE" and not is_plain:
            return True
    return False


def _is_own(code: CodeType) -> bool:
    """Whether code is the user's: of no package, and nothing that a capture has put in the place of a package's."""
    return not is_installed(code) and not is_hidden(code)


_EMPTY = CellType()
"""A cell of a variable that is not set."""
