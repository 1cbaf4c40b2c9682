"""What becomes of a program: general, guarded, refused or wrong.

General means that one capture, of the first call, gives what the program gives on every other call that the program
itself accepts. Guarded means that some of them are refused by a guard, refused that the example is not captured.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import clew
from clew.errors import ClewError
from tests.frameworks.hard_programs import REFUSED, Judge, Program

GENERAL, GUARDED, WRONG = "general", "guarded", "wrong"
ORDER = (WRONG, REFUSED, GUARDED, GENERAL)


def verdict(program: Program, judge: Judge, dynamic: bool = False) -> tuple[str, str]:
    """The word for a program, and the reason where it is not general."""
    reasons: list[str] = []

    def capture(fn: Any, arguments: Any) -> Any:
        try:
            captured = clew.trace(fn, arguments, dynamic=dynamic)
        except Exception as error:
            reasons.append(_first_line(error))
            raise
        return _Told(captured, reasons)

    try:
        outcomes = judge.outcomes(program, capture)
    except Exception as error:  # noqa: BLE001 - whatever it is, the capture is wrong
        return WRONG, f"{type(error).__name__}: {_first_line(error)}"
    if outcomes == [REFUSED] and len(program.calls) > 1:
        return REFUSED, reasons[0] if reasons else ""
    refused = [call for call, told in zip(program.calls, outcomes, strict=True) if told == REFUSED]
    if all(_raises(program, judge, call) for call in refused):
        return GENERAL, ""
    return GUARDED, f"{outcomes.count(REFUSED)} of {len(outcomes)}: {reasons[0]}"


class _Told:
    """A captured program that keeps why it refuses calls."""

    def __init__(self, captured: Any, reasons: list[str]) -> None:
        self.captured, self.reasons = captured, reasons

    def __call__(self, *args: Any) -> Any:
        try:
            return self.captured(*args)
        except ClewError as error:
            self.reasons.append(_first_line(error))
            raise


def _raises(program: Program, judge: Judge, call: Any) -> bool:
    """Whether the program itself does not accept a call."""
    judge.reset()
    try:
        program.make(SimpleNamespace())(*judge.copied(call))
    except Exception:  # noqa: BLE001 - an error of the program
        return True
    return False


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:230]
