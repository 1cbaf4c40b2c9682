"""The judge of realistic programs: one capture, made of the first call, is run on all calls.

``general``: right on every call that the program itself accepts; ``guarded``: some are refused; ``refused``: nothing is
captured; ``wrong``: one is silently different. A call at which the original raises may raise the same, or be refused.
"""

from __future__ import annotations

import copy
import random
import warnings
from typing import Any, NamedTuple

import numpy as np

import clew
from clew.errors import ClewError
from tests.frameworks.numpy.comparing import same
from tests.frameworks.numpy.realistic.register import Named, Program

GENERAL, GUARDED, REFUSED, WRONG = "general", "guarded", "refused", "wrong"
ORDER = (WRONG, REFUSED, GUARDED, GENERAL)


class Verdict(NamedTuple):
    """What one capture was worth, and why not more."""

    kind: str
    reasons: list[str]


def _reset() -> None:
    np.random.seed(3)
    random.seed(3)


def _split(call: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    named = call[-1] if call and isinstance(call[-1], Named) else {}
    return (call[: len(call) - bool(named)] if named else call), dict(named)


def _copied(value: Any) -> Any:
    """A copy in which no two places hold the same array."""
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return copy.deepcopy(value)


def _outcome(function: Any, call: Any) -> tuple[Any, ...]:
    """What a call gives, what it leaves of its arguments, and where the random numbers stand."""
    args, kwargs = _copied(_split(call))
    try:
        result = function(*args, **kwargs)
    except ClewError:
        raise
    except Exception as error:  # noqa: BLE001 - an error of the program is its result
        result = type(error)
    return result, args, kwargs, np.random.get_state()[2], random.getstate()[1][-1]


def judge(program: Program, dynamic: bool) -> Verdict:
    """Capture a program by its first call and compare it with the original on all of them."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        _reset()
        args, kwargs = _copied(_split(program.calls[0]))
        ours = program.make()
        try:
            captured = clew.trace(ours, args, kwargs, dynamic=dynamic)
        except ClewError as error:
            return Verdict(REFUSED, [_line(error)])
        except Exception as error:  # noqa: BLE001 - a crash of the capture is a verdict
            return Verdict(WRONG, [f"the capture raised {type(error).__name__}: {_line(error)}"])
        return _compared(program, captured)


def _compared(program: Program, captured: Any) -> Verdict:
    reasons: list[str] = []
    original = program.make()
    for place, call in enumerate(program.calls):
        _reset()
        try:
            got = _outcome(captured, call)
        except ClewError as error:
            _reset()
            if not isinstance(_outcome(program.make(), call)[0], type):
                reasons.append(f"call {place}: {_line(error)}")
            continue
        _reset()
        wanted = _outcome(original, call)
        if not same(wanted, got):
            return Verdict(WRONG, [f"call {place}: {got!r} instead of {wanted!r}"[:400]])
    return Verdict(GUARDED if reasons else GENERAL, reasons)


def _line(error: Exception) -> str:
    return " | ".join(str(error).splitlines())[:220]
