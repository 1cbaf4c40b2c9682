"""Captures of NumPy programs hold for other ranks and dtypes, unless the program could see them."""

from __future__ import annotations

import numpy
import pytest

import clew

FLOATS = numpy.array([1.0, -2.0, 3.0])
INPUTS = [
    FLOATS,
    numpy.arange(6, dtype=numpy.float32).reshape(2, 3),
    numpy.arange(4),
    numpy.arange(4, dtype=numpy.uint8),
    numpy.array([True, False]),
    numpy.arange(24.0).reshape(2, 3, 4),
    numpy.arange(3) + 1j,
]
STRANGE = [
    numpy.array(3.0),
    numpy.array([1, 2], dtype=object),
    numpy.array(["a"]),
    numpy.array(["2020-01-01"], "M8[D]"),
]


def line(x):
    return x * 2 + 1


def softmax(x):
    e = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def centred(x):
    return (x - x.mean()) / (x.std() + 1e-5)


def writes(x):
    y = x.copy()
    y += 1
    y[y > 2] = 0
    return y, y[1:], numpy.where(y > 0, y, 1)


GENERAL = [line, softmax, centred, writes]


def first(x):
    return x[0] * 2


def flat(x):
    return x.reshape(x.shape[0], -1)


def product(x):
    return x @ x.T


def sums(x):
    return x.sum(0), numpy.sum(x, axis=0)


BY_RANK = [first, flat, product, sums]


def same_dtype(x):
    return x.astype(x.dtype) + numpy.zeros(3, x.dtype)[0]


def is_float(value):
    return isinstance(value, float)


def by_class(x):
    return x * (2.0 if is_float(x.max()) else 3.0)


def tries(x):
    try:
        return x & 1
    except TypeError:
        return x + 1


def shows(x):
    return f"{x.sum()}"


def takes_out(x):
    return x * x.max().item()


def indices(x):
    return numpy.where(x > 0)


BY_DTYPE = [same_dtype, by_class, tries, shows, takes_out, indices]


def outcome(program, x):
    try:
        return program(x.copy())
    except clew.GuardError:
        raise
    except Exception as error:
        return type(error)


def same(one, other):
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, (type, str)):
        return one == other
    is_alike = type(one) is type(other) and one.dtype == other.dtype and one.shape == other.shape
    return is_alike and one.tobytes() == other.tobytes()


def holds(captured, x):
    try:
        outcome(captured, x)
    except clew.GuardError:
        return False
    return True


@pytest.mark.parametrize("program", GENERAL + BY_RANK + BY_DTYPE)
@pytest.mark.parametrize("example", INPUTS[:3])
def test_nothing_is_wrong(program, example):
    captured = clew.trace(program, (example.copy(),))
    for x in INPUTS + STRANGE:
        if holds(captured, x):
            assert same(outcome(program, x), outcome(captured, x))


@pytest.mark.parametrize("program", GENERAL)
@pytest.mark.parametrize("example", INPUTS[:3])
def test_what_sees_neither_rank_nor_dtype_is_general(program, example):
    captured = clew.trace(program, (example.copy(),))
    assert all(holds(captured, x) for x in INPUTS)
    assert not any(holds(captured, x) for x in STRANGE)


@pytest.mark.parametrize("program", BY_RANK)
def test_what_sees_the_rank_holds_for_other_dtypes(program):
    captured = clew.trace(program, (FLOATS,))
    assert [holds(captured, x) for x in INPUTS] == [x.ndim == 1 for x in INPUTS]


@pytest.mark.parametrize("program", BY_DTYPE)
def test_what_may_see_the_dtype_is_guarded(program):
    captured = clew.trace(program, (FLOATS,))
    assert holds(captured, FLOATS[::-1].copy())
    assert not any(holds(captured, x) for x in INPUTS[1:])


def test_items_by_arrays_have_another_rank_if_these_are_masks():
    def program(x, chosen):
        return x[chosen][0]

    x = numpy.arange(6.0).reshape(2, 3)
    captured = clew.trace(program, (x, numpy.array([0, 1])))
    with pytest.raises(clew.GuardError):
        captured(x, numpy.array([True, False]))


def test_arrays_of_no_axes_are_numbers():
    captured = clew.trace(line, (numpy.array(3.0),))
    assert captured(numpy.array(4.0)) == 9.0
    with pytest.raises(clew.GuardError, match="ndim"):
        captured(FLOATS)


def test_the_guards_say_so():
    shown = str(clew.trace(line, (FLOATS,)).guards)
    assert "x holds numbers" in shown
    assert "x.ndim > 0" in shown
    assert "float64" not in shown


def test_branches_rely_on_both():
    def program(x):
        return x + 1 if x.sum() > 0 else x - 1

    captured = clew.trace(program, (FLOATS,))
    assert not holds(captured, INPUTS[1])


def test_constants_and_numbers_keep_their_dtypes():
    def program(x, factor=2):
        return x * numpy.float32(0.5) + factor

    captured = clew.trace(program, (FLOATS,))
    for x in INPUTS:
        for factor in (2, 5):
            assert same(program(x, factor), captured(x, factor))
