"""Arguments of other kinds than in the example: None, texts, items of dicts that are missing, lists of any length."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import clew
from clew import GuardError

X = numpy.array([1.0, -2.0, 3.0])
MATRIX = numpy.arange(6.0).reshape(2, 3)


def normalised(x, mask=None, mode="l2", floor=None):
    if mask is not None:
        x = x * mask
    if mode == "l2":
        size = numpy.sqrt((x * x).sum())
    elif mode == "l1":
        size = numpy.abs(x).sum()
    else:
        size = x.max()
    if floor is not None:
        size = numpy.maximum(size, floor)
    return x / size


def reported(x, mode="mean"):
    if mode not in ("mean", "sum"):
        raise ValueError(f"no such mode: {mode}")
    return getattr(x, mode)()


def by_items(x, options):
    if "shift" in options:
        x = x - options["shift"]
    return x * options.get("scale", 2.0) + options["offset"]


def matched(x, how):
    match how:
        case "double":
            return x * 2
        case "half" | "halve":
            return x / 2
        case _:
            return x


def total(arrays, weights):
    found = arrays[-1] * 0
    for array, weight in zip(arrays, weights):
        found = found + array * weight
    return found / len(arrays), numpy.stack(arrays).max()


def outcome(function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except (ValueError, KeyError, IndexError) as error:
        return type(error).__name__, str(error)


def same(found: Any, wanted: Any) -> None:
    numpy.testing.assert_equal(found, wanted)


@pytest.mark.parametrize("example", [(X,), (X, X > 0, "l1", 0.5), (X, None, "max")])
def test_each_combination_of_optional_arguments(example: tuple[Any, ...]) -> None:
    graph = clew.trace(normalised, example)
    masks, modes, floors = (None, X > 0, numpy.array([1, 2, 3])), ("l2", "l1", "any"), (None, 0.5, 7)
    for given in itertools.product((X,), masks, modes, floors):
        same(graph(*given), normalised(*given))
    same(graph(MATRIX, MATRIX > 1), normalised(MATRIX, MATRIX > 1))


def test_a_kind_that_was_not_tried_is_refused() -> None:
    graph = clew.trace(normalised, (X,))
    with pytest.raises(GuardError):
        graph(X, [True, False, True])
    with pytest.raises(GuardError):
        graph(X, None, 2)


def test_texts_that_are_told_or_named_are_no_others() -> None:
    graph = clew.trace(reported, (X,))
    for mode in ("mean", "sum"):
        same(graph(X, mode), reported(X, mode))
    with pytest.raises(GuardError):
        graph(X, "max")


def test_texts_of_a_match() -> None:
    graph = clew.trace(matched, (X, "double"))
    for how in ("double", "half", "halve", "other", ""):
        same(graph(X, how), matched(X, how))


def test_items_of_a_dict_in_any_order_and_missing_ones() -> None:
    graph = clew.trace(by_items, (X, {"offset": 1.0, "scale": 3.0}))
    for given in (
        {"scale": 3.0, "offset": 1.0, "other": "text"},
        {"offset": 2},
        {"offset": X, "shift": 0.5},
        {"shift": X, "scale": X, "offset": 0.0},
    ):
        same(graph(X, given), by_items(X, given))
    with pytest.raises(GuardError, match="offset"):
        graph(X, {"scale": 1.0})


def test_lists_of_any_length() -> None:
    graph = clew.trace(total, ([X, X + 1], [1.0, 2.0]))
    for count in (1, 2, 5):
        arrays, weights = [X * n for n in range(count)], [float(n) for n in range(count)]
        same(graph(arrays, weights), total(arrays, weights))
    same(graph([X, X, X], [1.0]), total([X, X, X], [1.0]))
    same(outcome(graph, [], []), outcome(total, [], []))
    with pytest.raises(GuardError, match="each item of arrays"):
        graph([X, "text"], [1.0, 2.0])


def test_a_list_that_is_changed_or_given_back_has_its_length() -> None:
    def grows(arrays, x):
        arrays.append(x)
        return arrays[0] + x

    given = [X, X]
    graph = clew.trace(grows, (list(given), X))
    with pytest.raises(GuardError, match="len"):
        graph([X], X)
    graph(given, X)
    assert len(given) == 3


def written_to(arrays):
    for array in arrays:
        array += 1
    return arrays[0].sum()


def test_arrays_in_a_list_are_written_to_and_put_back() -> None:
    example = [X.copy(), X.copy()]
    graph = clew.trace(written_to, (example,))
    assert all((array == X).all() for array in example)
    found, wanted = [X.copy() for _ in range(3)], [X.copy() for _ in range(3)]
    same(graph(found), written_to(wanted))
    same(found, wanted)


def test_a_lambda_that_gives_back_what_it_is_given() -> None:
    graph = clew.trace(lambda values: values, (X,))
    assert graph(MATRIX) is MATRIX
