"""The errors for what a capture of a torch program cannot follow, with the line of the user."""

from __future__ import annotations

from clew.capture.recording.opaque_calls import CannotFollow
from clew.errors import CaptureError
from clew.ir.source import user_source

_GUESSING = "the capture cannot follow it, and guessing could be wrong"


def where() -> str:
    """The line of the user that is being run."""
    source = user_source()
    return "" if source is None else source.describe()


def refusal(
    what: str,
    why: str = _GUESSING,
    kind: type[CaptureError] = CaptureError,
) -> CaptureError:
    """The error for something that cannot be captured."""
    fix = 'keep the function that does it as one call: clew.wrap("its_name") at module level'
    return kind(f"{what} cannot be captured", where=where(), why=why, fixes=(fix,))


def not_followed(
    what: str,
    why: str = _GUESSING,
    kind: type[CannotFollow] = CannotFollow,
) -> CaptureError:
    """The error for what may be captured if a function or module around it stays one call."""
    return refusal(what, why, kind)
