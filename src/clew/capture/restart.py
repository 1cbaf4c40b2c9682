"""How a run restarts its capture: it has found out something that must be known from the start.

The finding is noted in the ``Findings`` of the capture, by whoever finds it or by the restart itself. The run is
undone, and the next one begins with it. A restart is caught in one place, by ``capture_until_known``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.capture.recording.run import Findings


class Restart(BaseException):
    """The capture restarts. No `Exception`, so that no handler of the program catches it."""

    def note(self, findings: Findings) -> None:
        """Keep what was found for the next run, if the restart carries it."""


class Diverged(Restart):
    """A program does something else when it is run again in the same way: its branches on data are guarded."""

    def __str__(self) -> str:
        return "the program does something else when it is run again"

    def note(self, findings: Findings) -> None:
        findings.control_flow = "guard"
