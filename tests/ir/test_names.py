"""Names: valid, unique, shadowing nothing, at constant cost."""

from __future__ import annotations

import builtins
import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.ir.names import Namespace, snake_case


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (["x", "x", "x"], ["x", "x_1", "x_2"]),
        (["x_1", "x", "x_1"], ["x_1", "x", "x_2"]),
        (["len", "len"], ["len_1", "len_2"]),
        (["for"], ["for_1"]),
        (["torch"], ["torch_1"]),
        (["layer1.0.conv"], ["layer1_0_conv"]),
        (["0"], ["_0"]),
        (["*args", "**kwargs"], ["_args", "_kwargs"]),
        ([""], ["_unnamed"]),
        (["_"], ["_"]),
        (["a b\n"], ["a_b_"]),
    ],
)
def test_names(candidates: list[str], expected: list[str]) -> None:
    namespace = Namespace()
    assert [namespace.create_name(candidate) for candidate in candidates] == expected


@given(st.lists(st.text(max_size=8), max_size=20))
def test_names_are_valid_unique_and_shadow_nothing(candidates: list[str]) -> None:
    namespace = Namespace()
    names = [namespace.create_name(candidate) for candidate in candidates]
    assert len(set(names)) == len(names)
    for name in names:
        assert name.isidentifier() and name.isascii()
        assert not keyword.iskeyword(name)
        assert name == "_" or name not in dir(builtins)
        assert name in namespace


def test_the_same_object_keeps_its_name() -> None:
    namespace = Namespace()
    thing = object()
    assert namespace.create_name("thing", thing) == namespace.create_name("other", thing) == "thing"
    assert namespace.create_name("len", len) == "len"


def test_a_copy_goes_on_by_itself() -> None:
    namespace = Namespace()
    namespace.create_name("x")
    twin = namespace.copy()
    assert twin.create_name("x") == namespace.create_name("x") == "x_1"


def test_reserved_names_are_not_given() -> None:
    namespace = Namespace()
    namespace.reserve("x")
    assert namespace.create_name("x") == "x_1"


def test_snake_case() -> None:
    assert snake_case("pascalCase") == "pascal_case"
    assert snake_case("LayerNorm") == "layer_norm"
