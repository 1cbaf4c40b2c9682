"""What cannot be carried over to another framework, and the error that lists it.

``Untranslatable`` is raised by a row or a namespace with the reason; the translator makes a ``Refusal`` of it, which
has the operation and the user's line, and goes on, so that ``TranslationError`` lists all of them at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew.errors import TranslationError

_SHOWN = 40


class Untranslatable(Exception):
    """A call has no equal in the target framework, for the reason that it says."""


class Undecided(Exception):
    """A row has to know a truth value of the running program: it is written for both."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


@dataclass(frozen=True)
class Refusal:
    """One thing that cannot be carried over: the operation, the user's line, the reason."""

    operation: str
    where: str
    reason: str

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.operation}{place}: {self.reason}"


def error_of(name: str, to: str, refusals: Sequence[Refusal]) -> TranslationError:
    """The error that lists all that stands in the way of a translation."""
    lines = [str(one) for one in dict.fromkeys(refusals)]
    rest = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return TranslationError(
        f"{name} cannot be translated to {to}\n  " + "\n  ".join([*lines[:_SHOWN], *rest]),
        why="each of these operations has no equal there, and nothing is translated by halves",
        fixes=(
            "clew.translate(captured, to=..., dry_run=True) gives the list as data",
            "change these lines of the program, or wrap them out of it",
        ),
    )
