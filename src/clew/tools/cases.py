"""One case of a comparison, as data: equal, guarded or WRONG."""

from __future__ import annotations

from dataclasses import dataclass

EQUAL, GUARDED, WRONG = "equal", "guarded", "WRONG"


@dataclass(frozen=True)
class Case:
    """One call: what it was, how it went, what differs or which guard refused it, and the node that differs first."""

    name: str
    status: str
    detail: str = ""
    node: str | None = None
    line: str = ""
