"""Where a recorded call was made: the frames between the recorder and the user's program, walked once for each call.

The frame that records comes in; out come the frame of the user, the frame that made the call, which may be one of a
framework's own functions in between, and the names of those functions.
"""

from __future__ import annotations

from types import CodeType, FrameType

from clew.ir.source import PACKAGE_FOLDER, is_hidden

_DISPATCHERS = frozenset({"handle_torch_function", "wrapped"})
"""Functions of frameworks that only hand a call on."""
_between: dict[int, tuple[bool, bool, CodeType]] = {}
"""By the identity of code, which is kept, so that it stays its own."""

Standing = tuple[FrameType | None, FrameType | None, tuple[str, ...]]


def look_out(frame: FrameType | None) -> Standing:
    """The user's innermost frame, the innermost one that does not merely hand a call on, and the names of functions
    of frameworks that stand between the user and the recorder."""
    outside: FrameType | None = None
    strangers: tuple[str, ...] = ()
    while frame is not None:
        code = frame.f_code
        is_ours, only_hands_on, _ = _between.get(id(code)) or _look_at(code)
        if not is_ours:
            if not is_hidden(code):
                return frame, outside or beyond(frame), strangers
            if not only_hands_on:
                outside, strangers = outside or frame, (*strangers, code.co_name)
        frame = frame.f_back
    return None, outside, strangers


def beyond(frame: FrameType | None) -> FrameType | None:
    """A frame, or if it only hands calls on, the next one further out that does more."""
    while frame is not None and is_between(frame.f_code):
        frame = frame.f_back
    return frame


def is_between(code: CodeType) -> bool:
    """True for code that only hands a call on: Clew's own, and the dispatchers of frameworks."""
    return (_between.get(id(code)) or _look_at(code))[1]


def _look_at(code: CodeType) -> tuple[bool, bool, CodeType]:
    """Whether code is Clew's own, and whether it only hands calls on; looked at once."""
    is_ours = code.co_filename.startswith(PACKAGE_FOLDER)
    found = _between[id(code)] = (is_ours, is_ours or code.co_name in _DISPATCHERS, code)
    return found
