"""What captures of NumPy programs look like, and that they leave everything as it was."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import clew
from clew.errors import CaptureError, GuardError

WEIGHTS = np.array([1.0, 2.0, 3.0])
PATCHED = [np.zeros, np.array, np.asarray, np.random.rand, np.random.default_rng, np.r_, np.errstate.__enter__]


def _patched() -> list[Any]:
    return [np.zeros, np.array, np.asarray, np.random.rand, np.random.default_rng, np.r_, np.errstate.__enter__]


def test_code_reads_like_the_program() -> None:
    def program(x):
        scaled = x * 2
        with np.errstate(divide="ignore"):
            inverse = 1 / scaled
        inverse[np.isinf(inverse)] = 0
        return inverse.sum(axis=0)

    code = clew.trace(program, (np.ones((2, 3)),)).code
    for line in ("scaled = x * 2", "with numpy.errstate(divide='ignore'):", "inverse = 1 / scaled", "numpy.isinf"):
        assert line in code
    assert "sum(axis=0)" in code


def test_guards_name_the_line() -> None:
    def program(x):
        return x if x.shape[0] > 3 else -x

    graph = clew.trace(program, (np.ones(2),), control_flow="guard")
    with pytest.raises(GuardError, match=r"not \(x.shape\[0\] > 3\)") as error:
        graph(np.ones(5))
    assert "test_captures.py" in str(error.value)
    assert graph(np.ones(2, np.float32)).dtype == np.float32
    assert graph(np.ones((2, 2))).tolist() == [[-1, -1], [-1, -1]]


def test_nothing_stays_patched() -> None:
    def fails(x):
        np.zeros(3)
        raise KeyError("mine")

    before = (*PATCHED, fails.__code__, WEIGHTS.copy())
    with pytest.raises(KeyError, match="mine"):
        clew.trace(fails, (np.ones(2),))
    assert all(map(lambda left, right: left is right, _patched(), before))
    assert fails.__code__ is before[-2]
    assert not [name for name in vars(np) if name.startswith("clew")]
    assert type(WEIGHTS) is np.ndarray


def test_arguments_state_and_random_numbers_are_left_alone() -> None:
    def program(x, items, rng):
        x += WEIGHTS
        WEIGHTS[0] = 9
        items.append(rng.random())
        return np.random.rand()

    x, items, rng = np.zeros(3), [1], np.random.default_rng(2)
    np.random.seed(4)
    wanted, drawn = np.random.default_rng(2).random(), np.random.RandomState(4).rand()
    clew.trace(program, (x, items, rng))
    assert x.tolist() == [0, 0, 0] and items == [1] and WEIGHTS.tolist() == [1, 2, 3]
    assert rng.random() == wanted and np.random.rand() == drawn


def test_constants_are_the_arrays_of_the_program() -> None:
    def program(x):
        return x * WEIGHTS

    graph = clew.trace(program, (np.ones(3),))
    WEIGHTS[1] = 7
    try:
        assert graph(np.ones(3)).tolist() == [1, 7, 3]
    finally:
        WEIGHTS[1] = 2


def test_a_guard_that_fails_late_leaves_no_mark() -> None:
    def program(x):
        x += 1
        return x if x.sum() > 0 else -x

    graph = clew.trace(program, (np.ones(3),), control_flow="guard")
    other = np.full(3, -5.0)
    for call in (graph, clew.Interpreter(graph).run):
        with pytest.raises(GuardError):
            call(other)
        assert other.tolist() == [-5, -5, -5]


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(CaptureError, match="NumPy has no modules"):
        clew.trace(np.sum, (np.ones(3),), leaves="none")
    with pytest.raises(CaptureError, match="array of Python objects"):
        clew.trace(lambda x: x, (np.array([None, []], dtype=object),))


def test_constants_are_computed_once() -> None:
    def program(x):
        return x + np.hanning(4) * 2

    assert "hanning" not in clew.trace(program, (np.ones(4),)).code
    assert "hanning" in clew.trace(program, (np.ones(4),), array_caching=False).code


def test_captures_in_threads() -> None:
    def program(x):
        return np.zeros_like(x) + np.sqrt(np.abs(x)) * len(x)

    results: list[bool] = []

    def capture(size: int) -> None:
        graph = clew.trace(program, (np.ones(size),))
        results.append(bool((graph(np.arange(9.0)) == program(np.arange(9.0))).all()))

    threads = [threading.Thread(target=capture, args=(size,)) for size in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 6
