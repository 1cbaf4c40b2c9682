"""Functions of packages in which a run has made numbers plain: the next run keeps the numbers traced there too.

The builtins in a program's own functions, ``len(x)`` and ``int(n)``, are led to the capture from the start. Functions
of packages that the program merely uses, or that it finds by names made of text, are known only when they run. In come
the frames in which a number was made plain; out come the functions that call a builtin there, looked up by their names.
"""

from __future__ import annotations

from types import CodeType, FrameType, FunctionType
from typing import Any

from clew.capture.bytecode.call_sites import original_of
from clew.capture.restart import Restart
from clew.capture.state.containers import look_up
from clew.capture.state.reachable import attribute_names
from clew.frameworks.numpy.opaque_calls import is_package
from clew.frameworks.torch.numpy_bridge.packages import called_at
from clew.ir.source import is_installed

_BUILTINS = frozenset("len int float max min bool".split())
_WITH_PLAIN_NUMBERS = frozenset({"np", "numpy"})
_MOST_ROUNDS = 3


class MetFunctions:
    """The functions of packages that earlier runs have met."""

    def __init__(self) -> None:
        self.functions: dict[FunctionType, None] = {}
        self._seen: set[tuple[CodeType, int]] = set()
        self._known = 0
        self._rounds = 0

    def note(self, frame: FrameType | None) -> None:
        """A number is made plain in a frame, or in what it has called of Clew's."""
        while frame is not None and _is_between(frame.f_globals.get("__name__", "")):
            frame = frame.f_back
        if frame is None or (frame.f_code, frame.f_lasti) in self._seen:
            return
        self._seen.add((frame.f_code, frame.f_lasti))
        code = original_of(frame.f_code)
        if not is_installed(code) or code is not frame.f_code:
            return
        if _BUILTINS.isdisjoint(called_at(code, frame.f_lasti)) or attribute_names(code) & _WITH_PLAIN_NUMBERS:
            return
        function = _function_of(frame, code) if is_package(frame.f_globals.get("__name__", "")) else None
        if function is not None:
            self.functions[function] = None

    def check(self) -> None:
        """Start over if a run has met functions that it did not know, so that the next one does."""
        if len(self.functions) > self._known and self._rounds < _MOST_ROUNDS:
            self._known, self._rounds = len(self.functions), self._rounds + 1
            raise Restart


def _is_between(name: str) -> bool:
    """Whether a module stands between Python, which asks, and the capture, which answers."""
    return name in ("torch._tensor", "torch.overrides") or name.partition(".")[0] == "clew"


def _function_of(frame: FrameType, code: CodeType) -> FunctionType | None:
    """The function whose code a frame runs, or has inside of it, found by the names that lead to it."""
    found: Any = None
    names = code.co_qualname.partition(".<locals>")[0].split(".")
    for place, name in enumerate(names):
        found = frame.f_globals.get(name) if place == 0 else look_up(found, name)
    while found is not None:
        found = look_up(found, "__func__", found)
        if isinstance(found, FunctionType) and _holds(original_of(found.__code__), code):
            return found
        found = look_up(found, "__wrapped__")
    return None


def _holds(outer: CodeType, code: CodeType) -> bool:
    inner = [constant for constant in outer.co_consts if isinstance(constant, CodeType)]
    return outer is code or outer == code or any(_holds(one, code) for one in inner)
