"""The ledger against capture from an example: every program comes out equal or guarded, none wrong."""

from __future__ import annotations

from typing import Any

import pytest

import clew
from tests.footguns.harness import WRONG, classify
from tests.footguns.ledger import Program, all_programs


def traced(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return clew.trace(fn, args=args, kwargs=kwargs)


def lazy(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return clew.trace(fn)


@pytest.mark.parametrize("program", all_programs(), ids=lambda program: program.name)
@pytest.mark.parametrize("capture", [traced, lazy])
def test_never_wrong(program: Program, capture: Any) -> None:
    wrong = [outcome for outcome in classify(program, capture) if outcome.status == WRONG]
    assert not wrong, wrong
