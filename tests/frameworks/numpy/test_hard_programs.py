"""No hard program is silently wrong: each call gives what the original gives, or is refused; capture leaves no mark."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clew
from clew.errors import ClewError
from tests.frameworks.numpy.comparing import same
from tests.frameworks.numpy.hard import PROGRAMS, Program, outside, state

REFUSED = "refused"


def _world() -> Any:
    """What programs of the file keep outside of themselves."""
    classes = [np.array(array) for array in (outside.MAPPED, outside.MASKED.mask, outside.MASKED.data, outside.TAGGED)]
    return state.BUFFER, state.TABLE, state.LIMITS, state.SETTINGS, classes


def _reset() -> None:
    state.BUFFER[:] = 0
    outside.MAPPED[:], outside.TAGGED[:] = 2.0, 1.0
    outside.MASKED[:] = np.ma.array(np.ones(4), mask=[False, True, False, False])
    np.random.seed(3)
    random.seed(3)


def _state(program: Callable[..., Any]) -> Any:
    owner = getattr(program, "__self__", program)
    held = dict(vars(owner)) if hasattr(owner, "__dict__") and not isinstance(owner, type(_state)) else {}
    cells = [cell.cell_contents for cell in getattr(program, "__closure__", None) or ()]
    cells = [cell for cell in cells if not callable(cell)]
    return copy.deepcopy((held, [list(cell) if hasattr(cell, "popleft") else cell for cell in cells], _world()))


def _records(program: Callable[..., Any], calls: list[Any], subject: Any) -> list[Any]:
    """What each call gives and leaves; ``refused`` where an error of Clew says so."""
    found = []
    for call in calls:
        arguments = copy.deepcopy(call)
        try:
            result: Any = subject(*arguments)
        except ClewError:
            found.append((REFUSED, same(arguments, copy.deepcopy(call))))
            continue
        except Exception as error:  # noqa: BLE001 - an error of the program is its result
            result = (type(error).__name__, str(error))
        left = copy.deepcopy((result, arguments, _state(program)))
        _write_into(result)
        shared = copy.deepcopy((result, arguments, _state(program)))
        found.append((*left, *shared, np.random.get_state()[2], random.getstate()[1][-1]))
    return found


def _write_into(result: Any) -> None:
    """Write into all arrays of a result: what shares memory with it changes, too."""
    if isinstance(result, (list, tuple)):
        for item in result:
            _write_into(item)
    elif isinstance(result, dict):
        _write_into(list(result.values()))
    elif type(result) is np.ndarray and result.flags.writeable and result.dtype.kind in "iufcb":
        result += np.ones((), result.dtype) if result.dtype.kind != "b" else np.ones((), bool)


def judge(program: Program, capture: Callable[..., Any]) -> list[str]:
    """Whether each call was equal or refused, after a check that nothing is wrong."""
    _reset()
    source = program.make()
    before, arguments = _state(source), copy.deepcopy(program.calls[0])
    try:
        captured = capture(source, arguments)
    except ClewError:
        assert same(_state(source), before) and same(arguments, copy.deepcopy(program.calls[0])), "left a mark"
        return [REFUSED]
    except Exception as error:  # noqa: BLE001 - then it must be the program's own
        with pytest.raises(type(error)):
            program.make()(*copy.deepcopy(program.calls[0]))
        return [REFUSED]
    assert same(_state(source), before), "capture changed the state"
    assert same(arguments, copy.deepcopy(program.calls[0])), "capture changed the arguments"
    _reset()
    ours = _records(source, program.calls, captured)
    kept = [call for call, record in zip(program.calls, ours, strict=True) if record[0] is not REFUSED]
    _reset()
    original = program.make()
    theirs = iter(_records(original, kept, original))
    for record in ours:
        if record[0] is REFUSED:
            assert record[1], "a refused call changed its arguments"
        else:
            wanted = next(theirs)
            assert same(wanted, record), f"{record!r} instead of {wanted!r}"
    return [REFUSED if record[0] is REFUSED else "equal" for record in ours]


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 80


@pytest.mark.parametrize("name", PROGRAMS)
def test_traced(name: str) -> None:
    judge(PROGRAMS[name], lambda fn, arguments: clew.trace(fn, arguments))


@pytest.mark.parametrize("name", PROGRAMS)
def test_lazy(name: str) -> None:
    judge(PROGRAMS[name], lambda fn, arguments: clew.trace(fn))


@pytest.mark.parametrize("array", [outside.MAPPED, outside.MASKED, outside.TAGGED], ids=lambda one: type(one).__name__)
def test_what_arrays_of_other_classes_hold_is_guarded(array: Any) -> None:
    _reset()
    program = PROGRAMS["read_from_arrays_of_other_classes"].make()
    captured = clew.trace(program, (np.ones(4),))
    assert same(captured(np.ones(4)), program(np.ones(4)))
    array[0] = 9.0
    with pytest.raises(clew.GuardError, match="is unchanged"):
        captured(np.ones(4))
    _reset()


def test_an_array_of_another_class_is_refused_as_an_argument() -> None:
    with pytest.raises(clew.CaptureError, match="a class of arrays of its own") as refused:
        clew.trace(lambda x, other: x * other[0], (np.ones(4), outside.MAPPED))
    assert "numpy.asarray" in str(refused.value)
