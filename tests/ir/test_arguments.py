"""Immutable containers and the walks over arguments."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from clew.ir.arguments import (
    immutable_dict,
    immutable_list,
    is_leaf,
    leaves,
    map_aggregate,
    map_arg,
    references,
)
from clew.ir.graph import Graph
from tests.strategies import Span


def change_item(target: Any) -> None:
    target[0] = 1


def delete_item(target: Any) -> None:
    del target[0]


def add_in_place(target: Any) -> None:
    target += [1]


def join_in_place(target: Any) -> None:
    target |= {1: 2}


@pytest.mark.parametrize(
    "change",
    [change_item, delete_item, add_in_place, lambda x: x.append(1), lambda x: x.sort(), lambda x: x.pop(),
     lambda x: x.clear(), lambda x: x.extend([1]), lambda x: x.insert(0, 1), lambda x: x.reverse()],
)  # fmt: skip
def test_lists_refuse_to_change(change: Callable[[Any], None]) -> None:
    items = immutable_list([3, 2])
    with pytest.raises(NotImplementedError, match="immutable.*node.args"):
        change(items)
    assert items == [3, 2]


@pytest.mark.parametrize(
    "change",
    [change_item, delete_item, join_in_place, lambda x: x.update({1: 2}), lambda x: x.pop(0), lambda x: x.clear(),
     lambda x: x.setdefault(5, 1), lambda x: x.popitem()],
)  # fmt: skip
def test_dicts_refuse_to_change(change: Callable[[Any], None]) -> None:
    items = immutable_dict({0: 2})
    with pytest.raises(NotImplementedError, match="immutable"):
        change(items)
    assert items == {0: 2}


@pytest.mark.parametrize("value", [immutable_list([1, [2]]), immutable_dict({"a": [1]})], ids=["list", "dict"])
def test_copies_stay_immutable(value: Any) -> None:
    for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert twin == value
        assert type(twin) is type(value)
    assert copy.deepcopy(value) is not value


def test_immutable_containers_hash() -> None:
    assert hash(immutable_list([1, 2])) == hash(immutable_list([1, 2]))
    assert hash(immutable_dict({"a": 1})) == hash(immutable_dict({"a": 1}))


def test_map_aggregate_keeps_the_shape() -> None:
    nest = (1, [2, {"k": 3}], slice(4, None, 5), Span(6, (7,)))
    mapped = map_aggregate(nest, lambda leaf: leaf and leaf * 10)
    assert mapped == (10, [20, {"k": 30}], slice(40, None, 50), Span(60, (70,)))
    assert type(mapped[1]) is immutable_list
    assert type(mapped[1][1]) is immutable_dict
    assert type(mapped[3]) is Span


def test_leaves_and_references() -> None:
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    nest = ([y, 1], {"a": x, "b": (y, None)}, slice(x, 2))
    assert list(leaves(nest)) == [y, 1, x, y, None, x, 2, None]
    assert references(nest) == [y, x]
    assert map_arg(nest, lambda node: node.name) == (["y", 1], {"a": "x", "b": ("y", None)}, slice("x", 2))
    assert is_leaf(x)
    assert not is_leaf([x])


def test_a_nested_graph_is_a_leaf() -> None:
    inner = Graph()
    inner.placeholder("x")
    assert list(leaves([inner])) == [inner]
    assert references([inner]) == []


def test_map_arg_needs_a_function() -> None:
    with pytest.raises(AssertionError):
        map_arg([], 3)  # type: ignore[arg-type]
