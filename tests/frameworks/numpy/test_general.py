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


HANDED_ON = [first, flat, product, sums, same_dtype, takes_out]
SEEN = [by_class, tries, shows, indices]


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


@pytest.mark.parametrize("program", HANDED_ON)
def test_ranks_and_dtypes_that_are_only_handed_on_are_free(program):
    captured = clew.trace(program, (FLOATS,))
    for x in INPUTS:
        assert same(outcome(program, x), outcome(captured, x))


@pytest.mark.parametrize("program", SEEN)
def test_what_sees_the_class_or_rank_is_guarded(program):
    captured = clew.trace(program, (FLOATS,))
    assert holds(captured, FLOATS[::-1].copy())
    assert not all(holds(captured, x) for x in INPUTS[1:])


def unpacks(x):
    (size,) = x.shape
    return x * size


def updates(x):
    first = x[0]
    kept = first
    first += 1
    return kept, first


def counts(x):
    total = 0
    for row in x:
        total += row
    return total


@pytest.mark.parametrize("program", [unpacks, updates, counts])
@pytest.mark.parametrize("example", INPUTS[:3])
def test_a_rank_that_decides_what_is_written_to_is_guarded(program, example):
    captured = clew.trace(program, (example.copy(),)) if program is not unpacks else clew.trace(program, (FLOATS,))
    for x in INPUTS:
        if holds(captured, x):
            assert same(outcome(program, x), outcome(captured, x))


def test_a_size_that_nobody_uses_is_asked_for():
    def program(x):
        x.shape[1]
        return x

    captured = clew.trace(program, (numpy.ones((2, 3)),))
    with pytest.raises(clew.GuardError, match=r"x.ndim > 1"):
        captured(FLOATS)


def test_numbers_may_be_of_other_classes_or_arrays():
    def program(x, factor):
        return x * factor + factor / 2

    captured = clew.trace(program, (FLOATS, 2.0))
    for factor in (3, 0.5, numpy.float32(2), numpy.int8(3), FLOATS, 1j):
        assert same(program(FLOATS, factor), captured(FLOATS, factor))


@pytest.mark.parametrize("seeing", [str, lambda n: isinstance(n, float), lambda n: {n: 1}, lambda n: [0] * int(n)])
def test_the_class_of_a_number_is_guarded_where_it_is_seen(seeing):
    def program(n):
        return seeing(n)

    captured = clew.trace(program, (2.0,))
    for number in (2.0, 2, numpy.float64(2), numpy.int64(2), 2.5):
        try:
            found = captured(number)
        except clew.GuardError:
            continue
        assert found == program(number) and repr(found) == repr(program(number))


def test_a_mask_is_no_array_of_places():
    def program(x, chosen):
        return x[chosen][0]

    x = numpy.arange(6.0).reshape(2, 3)
    captured = clew.trace(program, (x, numpy.array([0, 1])))
    mask = numpy.array([True, False])
    assert same(program(x, mask), captured(x, mask))


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


def test_branches_rely_on_neither():
    def program(x):
        return x + 1 if x.sum() > 0 else x - 1

    captured = clew.trace(program, (FLOATS,))
    for x in INPUTS:
        if x.dtype.kind != "c":
            assert same(outcome(program, x), outcome(captured, x))


def test_constants_and_numbers_keep_their_dtypes():
    def program(x, factor=2):
        return x * numpy.float32(0.5) + factor

    captured = clew.trace(program, (FLOATS,))
    for x in INPUTS:
        for factor in (2, 5):
            assert same(program(x, factor), captured(x, factor))
