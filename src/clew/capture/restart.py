"""How a run restarts its capture: it has found out something that must be known from the start.

The finding is noted in the ``Findings`` of the capture, by whoever finds it or by the restart itself. The run is
undone, and the next one begins with it. A restart is caught in one place, by ``capture_until_known``.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from clew.errors import note_raised, raised_inside
from clew.ir.source import PACKAGE_FOLDER

if TYPE_CHECKING:
    from clew.capture.recording.run import Findings


class Restart(BaseException):
    """The capture restarts. No `Exception`, so that few handlers of the program catch it."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Restart:
        made = super().__new__(cls, *args)
        note_raised(made)
        return made

    def note(self, findings: Findings) -> None:
        """Keep what was found for the next run, if the restart carries it."""


class Diverged(Restart):
    """A program does something else when it is run again in the same way: its branches on data are guarded."""

    def __str__(self) -> str:
        return "the program does something else when it is run again"

    def note(self, findings: Findings) -> None:
        findings.control_flow = "guard"


class Swallowed(BaseException):
    """A handler of the program, or of a library, has kept an error or restart of Clew's, and goes on for ever."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class RaisedInside(list[BaseException]):
    """What Clew has raised inside of a program that is being captured."""

    def append(self, error: BaseException) -> None:
        """Note an error; if an earlier one was kept, the program does not come to its end by itself."""
        kept = self.kept()
        if kept is not None:
            raise Swallowed(kept)
        super().append(error)

    def kept(self) -> BaseException | None:
        """The first that was caught outside of Clew: the traceback of an error begins with who has caught it."""
        caught = ((error, error.__traceback__) for error in self)
        return next((error for error, trace in caught if trace is not None and not _is_own(trace)), None)


def _is_own(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(PACKAGE_FOLDER)


def swallowed() -> BaseException | None:
    """The first error or restart of Clew's that was kept since this was last asked."""
    noted = raised_inside.get()
    found = noted.kept() if isinstance(noted, RaisedInside) else None
    if noted is not None:
        noted.clear()
    return found
