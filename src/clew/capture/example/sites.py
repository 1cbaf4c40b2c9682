"""Places in the user's program where calls are recorded, each looked at once however often the program passes it.

A frame comes in; out comes what is known of the instruction at which it stands: the source line, the variable that
gets the result, the operator that is executed. Frames of frameworks and those that only hand calls on have no site:
which frame counts then depends on the whole stack.
"""

from __future__ import annotations

from types import CodeType, FrameType

from clew.capture.example.operators import Operation, operation_at
from clew.capture.example.standing import is_between
from clew.capture.example.variables import stored_in
from clew.ir.source import SourceLine, forgotten_with_folders, is_hidden, source_of_frame


class Site:
    """One instruction of the user's program; ``code`` is kept, so that its identity stays its own."""

    __slots__ = ("code", "operation", "source", "variable")

    def __init__(self, frame: FrameType) -> None:
        code, offset = frame.f_code, frame.f_lasti
        self.code: CodeType = code
        self.source: SourceLine = source_of_frame(frame)
        self.variable: str | None = stored_in(code, offset) or None
        self.operation: Operation | None = operation_at(code, offset)


SITES: dict[tuple[int, int], Site] = {}
"""All that are known, by the identity of their code and the offset."""
forgotten_with_folders(SITES)


def site_of(frame: FrameType) -> Site | None:
    """The place where a frame stands; None if it is not the user's, or only hands the call on."""
    code = frame.f_code
    known = SITES.get((id(code), frame.f_lasti))
    if known is None:
        if is_hidden(code) or is_between(code):
            return None
        known = SITES[id(code), frame.f_lasti] = Site(frame)
    return known
