"""The streams of ``sys`` that people look at, and what stands for them while a program is captured.

A ``Screen`` tells the listener of what the program's own code writes, by the way that ``print`` takes; all else goes to
the stream itself. Here too: whether the program has turned text elsewhere, where it may read it again.
"""

from __future__ import annotations

import functools
import operator
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NamedTuple

from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import attached

NAMES = ("stdout", "stderr")
WRITING = frozenset(
    "stdout stderr pprint pp print_exc print_exception print_stack print_tb print_last print_list dis help".split()
)
"""The names by which code comes to the streams of ``sys``: their own, and functions of Python's that write to them."""
_BELOW = frozenset({"buffer", "fileno", "detach", "reconfigure"})


class Screen:
    """Stands for ``sys.stdout`` or ``sys.stderr``."""

    def __init__(self, name: str, original: Any, write: Callable[..., bool]) -> None:
        self.name, self.original, self._write = name, original, write

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        kind: type = type(self.original)
        return kind

    def __getattr__(self, name: str) -> Any:
        listener = attached()
        if name in _BELOW and listener is not None and listener.is_listening():
            listener.refuse_act(f"sys.{self.name}.{name}", sys._getframe(1))
        return getattr(self.original, name)

    def write(self, text: str) -> int:
        """Write a text."""
        if not self._write(self, (text,), {"end": ""}, sys._getframe(1)):
            self.original.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        lines = list(lines)
        if not self._write(self, tuple(lines), {"sep": "", "end": ""}, sys._getframe(1)):
            self.original.writelines(lines)

    def flush(self) -> None:
        """Show what was written."""
        if not self._write(self, (), {"end": "", "flush": True}, sys._getframe(1)):
            self.original.flush()


def install(patches: Patches, write: Callable[..., bool]) -> None:
    """Put screens in the place of the streams; ``write`` tells whether what is written was recorded."""
    for name in NAMES:
        if vars(sys)[name] is not None:
            patches.in_dict(vars(sys), name, noted(functools.partial(_screen, name, write)))


@functools.lru_cache(maxsize=8)
def _screen(name: str, write: Callable[..., bool], original: Any) -> Screen:
    """The replacement of a stream of ``sys``, the same for each capture."""
    return Screen(name, original, write)


def behind(stream: Any) -> Any:
    """The stream itself, for which a screen may stand."""
    return object.__getattribute__(stream, "original") if type(stream) is Screen else stream


class _Ways(NamedTuple):
    """Where text goes: to which streams, by which functions of ``warnings``, and through which filters of warnings."""

    out: tuple[Any, ...]
    filters: tuple[Any, ...]


screens: ContextVar[_Ways | None] = ContextVar("clew_screens", default=None)
"""Where printed text and warnings go, as it was when a capture began."""


def look_at_screens() -> None:
    """Note where printed text goes now."""
    screens.set(_Ways(_ways_out(), tuple(warnings.filters)))


def _ways_out() -> tuple[Any, ...]:
    shown = (vars(warnings).get(name) for name in ("showwarning", "_showwarnmsg_impl"))
    return behind(sys.stdout), behind(sys.stderr), *shown


def is_redirected() -> bool:
    """Whether the program has turned printed text elsewhere, where it may read it."""
    known = screens.get()
    return known is not None and not all(map(operator.is_, _ways_out(), known.out))


def action_of_warning(category: type, text: str, module: str, line: int) -> tuple[str, bool]:
    """What the filters say of a warning, and whether the program itself has set the one that says it."""
    now, known = list(warnings.filters), screens.get()
    before = list(now) if known is None else list(known.filters)
    same = 0
    while same < min(len(now), len(before)) and now[-1 - same] is before[-1 - same]:
        same += 1
    for place, (action, said, kind, where, at) in enumerate(now):
        if issubclass(category, kind) and _fits(said, text) and _fits(where, module) and at in (0, line):
            return action, place < len(now) - same
    return vars(warnings)["defaultaction"], same < len(before)


def _fits(pattern: Any, text: str) -> bool:
    if pattern is None or isinstance(pattern, str):
        return pattern in (None, text)
    return pattern.match(text) is not None


def filters_that_raise() -> tuple[Any, ...]:
    """The filters that turn warnings into errors."""
    return tuple(repr(one) for one in warnings.filters if one[0] == "error")
