"""What a run of a torch program is told: what earlier runs of it have found out."""

from __future__ import annotations

from typing import Any

from clew.capture.control.runs import Findings as RunFindings
from clew.capture.example.slots import Slot
from clew.frameworks.torch.closures import ClosedOver, closed_over
from clew.frameworks.torch.met import MetFunctions
from clew.frameworks.torch.packages import Packages
from clew.frameworks.torch.set_up import SetUp


class Findings(RunFindings):
    """What earlier runs of a program have found out, and what later ones need."""

    def __init__(self, lifted: dict[Any, Slot] | None = None) -> None:
        super().__init__(lifted)
        self.plain_kinds: tuple[type, ...] = ()
        self.caches: list[tuple[Any, str]] = []
        self.filled: list[Any] = []
        """Functions with a cache that was empty before the program called them."""
        self.paths: dict[Any, str] = {}
        self.unseen = False
        """Whether the program has made a tensor by means that were not seen."""
        self.follows_arrays = True
        self.packages = Packages()
        self.met = MetFunctions()
        self.with_arrays: Exception | None = None
        """Why a run that followed arrays has failed, after which the next ones do without."""
        self.set_up: SetUp | None = None
        """What the program does to its modules at its first call."""
        self.set_up_stays = False
        self._closed_over: list[ClosedOver | None] = []

    def closed_over(self, fn: Any) -> ClosedOver | None:
        """What holds the modules that a function names, the same in all runs."""
        if not self._closed_over:
            self._closed_over.append(closed_over(fn))
        return self._closed_over[0]

    def undo_set_up(self) -> None:
        """Let modules be as they were before the capture, unless the run counts."""
        if self.set_up is not None and not self.set_up_stays:
            self.set_up.undo()
