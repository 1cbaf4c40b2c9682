"""Islands: parts of a program that a capture cannot follow, and that therefore stay one call."""

from __future__ import annotations

from clew.errors import CaptureError


class CannotFollow(CaptureError):
    """Something that a run of a program cannot record; the function that does it may still stay one call."""


class Unseen(CannotFollow):
    """An array that was made by means that nobody saw."""
