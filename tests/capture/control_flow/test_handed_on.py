"""Which parameters a function only hands on to calls of the framework, and what a capture does with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import clew
from clew.capture.control_flow.argument_uses import handed_on
from clew.frameworks.numpy.capture import Run

X = np.arange(12.0).reshape(3, 4)


def shaped(x, shape):
    return x.reshape(shape).sum(axis=0)


def by_module_and_method(x, axes=None, *, dtype="float32"):
    y = np.sort(x * 2)
    return y.mean(axis=axes).astype(dtype)


def item(x, part):
    return (-x.T)[part]


def asks(x, shape):
    return x if shape is None else x.reshape(shape)


def returned(x, shape):
    return x.reshape(shape), shape


def inside(x, shape):
    return [row.reshape(shape) for row in x]


def of_another(x, shape, other):
    return other.reshape(shape)


def own_function(x, shape):
    return _helper(x, shape)


def of_a_variable_set_twice(x, shape):
    y = x
    y = [y]
    return y.reshape(shape)


def written_to(x, values, place):
    return np.add(x, 1, out=place), np.array(values)


def _helper(x, shape):
    return x


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (shaped, {"shape"}),
        (by_module_and_method, {"axes", "dtype"}),
        (item, {"part"}),
        (asks, set()),
        (returned, set()),
        (inside, set()),
        (of_another, set()),
        (own_function, set()),
        (of_a_variable_set_twice, set()),
        (written_to, {"values"}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_found_in_the_source(function: Any, wanted: set[str]) -> None:
    assert handed_on(function, {"x"}, Run.framework) - {"x"} == wanted


def test_any_shape_axis_and_dtype() -> None:
    graph = clew.trace(shaped, (X, (4, 3)))
    for shape in ((4, 3), [2, 6], (2, 2, 3), 12):
        assert np.array_equal(graph(X, shape), shaped(X, shape))
    general = clew.trace(by_module_and_method, (X,))
    for call in ((X, None), (X, (0, 1)), (X, 0), (X[0],)):
        for dtype in ("float32", int, np.dtype("f8")):
            found, wanted = general(*call, dtype=dtype), by_module_and_method(*call, dtype=dtype)
            assert type(found) is type(wanted) and np.array_equal(found, wanted) and found.dtype == wanted.dtype


def test_what_is_seen_of_the_result_is_guarded() -> None:
    def seen(x, axes):
        result = x.sum(axis=axes)
        return result if isinstance(result, np.ndarray) else 0.0

    def unpacked(x, mode):
        first, second = np.linalg.qr(x, mode)
        return second

    for function, example, other in ((seen, (0,), None), (unpacked, "reduced", "r")):
        graph = clew.trace(function, (X, example))
        assert np.array_equal(graph(X, example), function(X, example))
        with pytest.raises(clew.GuardError):
            graph(X, other)
