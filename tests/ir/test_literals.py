"""Values as expressions: each evaluates back to the same value, and what cannot goes by name."""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.ir.arguments import immutable_dict, immutable_list
from clew.ir.graph import Graph
from clew.ir.literals import Speller, unquote
from tests.strategies import OTHER_LITERALS, Access, Colour, Label, Level, Point, Span


def name_of(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else "UNNAMED"


def spell(value: Any) -> str:
    return Speller(name_of, lambda node: node.name).spell(value)


KNOWN = {kind.__name__: kind for kind in (Point, Label, Span, Colour, Access, Level, collections.OrderedDict)}


class Words(list):  # type: ignore[type-arg]
    """A list that is made like any other."""


class Counted(list):  # type: ignore[type-arg]
    """A list that is made of something else than its items."""

    def __init__(self, count: int) -> None:
        super().__init__(range(count))


@pytest.mark.parametrize(
    "value",
    [1, True, -0.0, 1e-300, "a'\"\n\u2028", b"\x00'", (1,), (), [1, [2]], {"a": {}}, {1, 2}, set(), 1 + 2j,
     slice(1, None),
     *(value for value in OTHER_LITERALS if not isinstance(value, type) and not callable(value)),
     Span(1, (2,)), Point([1], {"a": 2}), collections.OrderedDict(a=1)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_expressions_evaluate_back(value: Any) -> None:
    text = spell(value)
    assert "\n" not in text
    again = eval(text, dict(KNOWN))  # the expressions are our own
    assert type(again) is type(value)
    assert again == value or (math.isnan(value) and math.isnan(again))


def test_immutable_containers_are_spelled_like_their_models() -> None:
    assert spell(immutable_list([1, immutable_dict({"a": 2})])) == "[1, {'a': 2}]"


def test_nodes_are_spelled_by_the_callers_function() -> None:
    graph = Graph()
    assert spell([graph.placeholder("x"), (graph.placeholder("y"),)]) == "[x, (y,)]"


@dataclasses.dataclass
class Derived:
    x: int
    y: int = dataclasses.field(init=False, default=0)


@dataclasses.dataclass
class Later:
    x: int

    def __post_init__(self) -> None:
        self.x += 1


@dataclasses.dataclass
class WithInitVar:
    x: int
    scale: dataclasses.InitVar[int] = 1


@dataclasses.dataclass(init=False)
class OwnInit:
    x: int

    def __init__(self, y: int) -> None:
        self.x = y


class Undecorated(Point):
    def __init__(self) -> None:
        super().__init__(1, 2)


def with_more() -> Point:
    point = Point(1, 2)
    point.z = 3  # type: ignore[attr-defined]
    return point


@pytest.mark.parametrize(
    "value",
    [Derived(1), Later(1), WithInitVar(1), OwnInit(1), Undecorated(), with_more(), Counted(2),
     collections.defaultdict(list), object(), 3 .__add__],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_its_constructor_does_not_rebuild_goes_by_name(value: Any) -> None:
    assert spell(value) == "UNNAMED"


def test_plain_subclasses_of_containers_are_rebuilt() -> None:
    assert spell(Words([1, 2])) == "Words([1, 2])"
    words = Words([1])
    words.note = 1  # type: ignore[attr-defined]
    assert spell(words) == "UNNAMED"


def test_very_long_numbers() -> None:
    assert spell(10**5000) == hex(10**5000)
    assert int(spell(-(10**5000)), 16) == -(10**5000)


@given(st.text(st.characters(codec=None)))
def test_strings_are_unquoted(text: str) -> None:
    assert unquote(repr(text)) == text
    assert unquote(ascii(text)) == text


def test_unknown_escapes_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown escape"):
        unquote("'\\N{BULLET}'")
    with pytest.raises(ValueError, match="there is no character"):
        unquote("'\\Uffffffff'")
