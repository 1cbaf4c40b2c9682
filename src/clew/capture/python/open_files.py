"""Acts on the outside through what a program holds: functions of the system in its containers, files that are open.

Functions such as ``os.mkdir`` are replaced by name for the time of a capture, which does not reach one that stands in a
list or an attribute; a program that holds one is refused. Of an open file it is noted how far it was written: what a
capture has written to it is taken away again, and the program refused.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import Any

from clew.errors import CaptureError


class OpenFiles:
    """The files that a program holds, as they were before it ran."""

    def __init__(self, held: Iterable[Any]) -> None:
        files = [one for one in held if isinstance(one, io.IOBase) and one not in (sys.stdout, sys.stderr)]
        self._files = [(file, file.tell()) for file in files if not file.closed and file.writable() and file.seekable()]

    def check(self) -> None:
        """Raise if one was written to."""
        if any(not file.closed and file.tell() != end for file, end in self._files):
            raise CaptureError(
                "the program writes to a file that it holds",
                why="no call of the graph would do it again",
                fixes=('keep the function that writes as one call: clew.wrap("its_name") at module level',),
            )

    def put_back(self) -> None:
        """Take away what was written."""
        for file, end in self._files:
            if not file.closed and file.tell() != end:
                file.seek(end)
                file.truncate()


def refuse_acting_functions(functions: Iterable[Any]) -> None:
    """Raise for a function that acts on the outside and is held where it cannot be replaced."""
    found = next(iter(functions), None)
    if found is not None:
        raise CaptureError(
            f"the program holds {found.__name__}, which acts on the world outside, in a container or an attribute",
            why="the capture could neither record nor refuse a call of it",
            fixes=(f"call {found.__module__}.{found.__name__} by its name",),
        )
