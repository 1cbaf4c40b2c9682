"""Types print themselves and are read back; values know their types."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch

from clew.errors import TextError
from clew.ir.arguments import immutable_dict, immutable_list
from clew.ir.types import ArrayType, DictType, ListType, ObjectType, ScalarType, TupleType, Type, parse_type, type_of

INT = ScalarType("int")

TEXTS = [
    (ArrayType("float32", (2, "n", 512)), "f32[2, n, 512]"),
    (ArrayType("bool", ()), "bool[]"),
    (ArrayType("bfloat16", (0,), "cuda:0"), "bf16[0]@cuda:0"),
    (ArrayType("float8_e4m3fn", (-1,), "meta"), "float8_e4m3fn[-1]@meta"),
    (ArrayType("int64", ("2*n + 1", "(n+1)//2", "n-1")), "i64[2*n + 1, (n+1)//2, n-1]"),
    (ArrayType("int64", ("3", "a]b", "", " n", "é")), "i64['3', 'a]b', '', ' n', 'é']"),
    (ArrayType("f32", (1,)), "'f32'[1]"),
    (ArrayType("<U3", (1,), "/job:a"), "'<U3'[1]@'/job:a'"),
    (ArrayType("int", (1,)), "int[1]"),
    (INT, "int"),
    (ScalarType("None"), "None"),
    (TupleType(()), "()"),
    (TupleType((INT,)), "(int,)"),
    (TupleType((INT, ListType((INT, INT)))), "(int, [int, int])"),
    (DictType((("a'\n", INT), ("é", TupleType(())))), "{\"a'\\n\": int, 'é': ()}"),
    (ObjectType("m.f.<locals>.C"), "<m.f.<locals>.C>"),
    (ObjectType("a>\n"), "<'a>\\n'>"),
]


@pytest.mark.parametrize(("value_type", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_text_of_types(value_type: Type, text: str) -> None:
    assert str(value_type) == text
    assert parse_type(text) == value_type
    assert parse_type(f" {text} ") == value_type


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a type, found 'the end of the line'"),
        ("f32", "expected the shape of an array: ["),
        ("f32[", "expected a size"),
        ("f32[2", "expected ,"),
        ("f32[2 3]", "expected ,"),
        ("f32[2]@", "expected a device"),
        ("(int", "expected ,"),
        ("{a: int}", "expected a key in quotes, found 'a: int}'"),
        ("{'a' int}", "expected :, found 'int}'"),
        ("<a", "expected >"),
        ("int int", "'int' is left over"),
        ("'int'", "expected the shape of an array: ["),
        ("'\\q'[1]", "expected a type"),
        (f"f32[{'1' * 5000}]", "expected a size, found '1111"),
    ],
)
def test_bad_types(text: str, message: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_type(text)
    assert message in str(caught.value)


class Thing:
    pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "int"),
        (True, "bool"),
        (None, "None"),
        (1j, "complex"),
        ((1, [2.0, "a"]), "(int, [float, str])"),
        (immutable_list([b""]), "[bytes]"),
        ({"a": 1}, "{'a': int}"),
        (immutable_dict({"a": 1}), "{'a': int}"),
        ({1: 2}, "<builtins.dict>"),
        (collections.OrderedDict(a=1), "<collections.OrderedDict>"),
        (Thing(), "<tests.ir.test_types.Thing>"),
        (torch.zeros(2, 3), "f32[2, 3]"),
        (torch.zeros((), dtype=torch.int8, device="meta"), "i8[]@meta"),
        ([torch.zeros(1)], "[f32[1]]"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_types_of_values(value: Any, text: str) -> None:
    assert str(type_of(value)) == text


def test_equal_types_are_one_key() -> None:
    assert len({ArrayType("float32", (2, "n")), ArrayType("float32", (2, "n"))}) == 1
    assert ArrayType("float32", (2,)) != ArrayType("float32", (2,), "cuda:0")
