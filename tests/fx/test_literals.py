"""Literals as arguments: each is printed so that the code gives the same value back."""

import collections
import dataclasses
import enum
import math
import typing

import pytest
import torch

from . import wrapped
from .helpers import of, only, targets
from .literal_classes import Colour


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(typing.NamedTuple):
    x: typing.Any
    y: typing.Any


Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Options:
    scale: float
    shape: tuple = (1, 2)


def keep(*args, **kwargs):
    """Returns what it was called with."""
    return args, kwargs


LITERALS = {
    "int": 3, "negative": -3, "big": 10**30, "float": 0.1, "tiny": 1e-300, "inf": math.inf, "minus-inf": -math.inf,
    "complex": 1 + 2j, "true": True, "none": None, "ellipsis": ..., "string": "text", "quotes": "it's \"quoted\"",
    "newline": "a\nb", "unicode": "é", "injection": "'); import os; ('", "slice": slice(1, None, 2),
    "range": range(1, 5, 2), "dtype": torch.float16, "device": torch.device("cpu"),
    "device-index": torch.device("cuda", 1), "layout": torch.strided,
    "memory-format": torch.channels_last, "size": torch.Size([1, 2]), "tuple": (1, (2,)),
    "empty-tuple": (), "list": [1, [2.5, None]], "empty-list": [], "dict": {"a": 1, "b": {"c": (1,)}}, "empty-dict": {},
    "int-keys": {1: "a", 2: "b"}, "enum": Colour.RED, "string-enum": Colour.BLUE, "int-enum": Level.HIGH,
    "list-of-inf": [math.inf, -math.inf], "dict-of-dtype": {"d": torch.int64}, "slices": (slice(None), slice(0, 3)),
    "nested-enum": [Colour.RED, (Colour.BLUE,)], "mixed": ("a", 1, 2.0, None, True, torch.float32),
    "negative-zero": -0.0, "list-of-dtypes": [torch.float32, torch.int64],
}  # fmt: skip


@pytest.mark.parametrize("value", LITERALS.values(), ids=LITERALS.keys())
def test_positional_literal_comes_back(fx, value):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(keep, (x, value)))
    (_, result), _ = fx.GraphModule({}, graph)(0)
    assert result == value
    assert isinstance(value, tuple) or str(result) == str(value)


@pytest.mark.parametrize("value", LITERALS.values(), ids=LITERALS.keys())
def test_keyword_literal_comes_back(fx, value):
    graph = fx.Graph()
    graph.output(graph.call_function(keep, (), {"key": value}))
    _, result = fx.GraphModule({}, graph)()
    assert result == {"key": value}


@pytest.mark.parametrize("value", LITERALS.values(), ids=LITERALS.keys())
def test_literal_in_the_output(fx, value):
    graph = fx.Graph()
    graph.output((value, [value]))
    assert fx.GraphModule({}, graph)() == (value, [value])


@pytest.mark.parametrize("value", LITERALS.values(), ids=LITERALS.keys())
def test_literal_in_the_interpreter(fx, value):
    graph = fx.Graph()
    graph.output(graph.call_function(keep, (value,)))
    (result,), _ = fx.Interpreter(fx.GraphModule({}, graph)).run()
    assert result == value


@pytest.mark.parametrize("value", LITERALS.values(), ids=LITERALS.keys())
def test_literal_in_a_traced_call(fx, value):
    traced = fx.symbolic_trace(lambda x: wrapped.by_name(x, [value]))
    assert list(only(traced.graph, "call_function").args[1]) == [value]


def test_nan_comes_back(fx):
    graph = fx.Graph()
    graph.output((math.nan, [math.nan]))
    single, (listed,) = fx.GraphModule({}, graph)()
    assert math.isnan(single) and math.isnan(listed)


def test_inf_and_nan_traced(fx):
    traced = fx.symbolic_trace(lambda x: (x + math.inf, x + math.nan, x - math.inf))
    a, b, c = traced(torch.tensor(1.0))
    assert a == math.inf and math.isnan(b) and c == -math.inf


def test_inf_as_default(fx):
    def bounded(x, low=-math.inf, high=math.inf):
        return x

    traced = fx.symbolic_trace(bounded)
    assert [node.args for node in of(traced.graph, "placeholder")[1:]] == [(-math.inf,), (math.inf,)]
    assert traced(3) == 3


def test_dtype_as_default(fx):
    def cast(x, dtype=torch.float64):
        return x.to(dtype)

    assert fx.symbolic_trace(cast)(torch.ones(1)).dtype is torch.float64


def test_device_in_code(fx):
    traced = fx.symbolic_trace(lambda x: x.to(device=torch.device("cpu"), dtype=torch.int32))
    assert traced(torch.ones(1)).dtype is torch.int32


def test_layout_and_memory_format(fx):
    traced = fx.symbolic_trace(lambda x: torch.empty_like(x, layout=torch.strided, memory_format=torch.preserve_format))
    assert traced(torch.ones(2)).shape == (2,)


def test_ellipsis_and_none_in_index(fx):
    traced = fx.symbolic_trace(lambda x: x[..., None, 1:])
    assert traced(torch.ones(2, 3)).shape == (2, 1, 2)


def test_named_tuple_result(fx):
    traced = fx.symbolic_trace(lambda x: Point(x + 1, [x, x]))
    result = traced(1)
    assert isinstance(result, Point) and result == Point(2, [1, 1])


def test_named_tuple_becomes_a_constructor_call(fx):
    traced = fx.symbolic_trace(lambda x: Pair(x, x * 2))
    assert Pair in targets(traced.graph)
    assert traced(3) == Pair(3, 6)


def test_named_tuple_argument(fx):
    traced = fx.symbolic_trace(lambda x: wrapped.by_name(Point(x, 1), (2,)))
    assert traced.graph.find_nodes(op="call_function", target=Point)


def test_named_tuple_in_hand_made_arguments(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(keep, (Point(x, 2),)))
    ((point,), _) = fx.GraphModule({}, graph)(1)
    assert point == Point(1, 2) and isinstance(point, Point)


def test_dataclass_becomes_a_constructor_call(fx):
    traced = fx.symbolic_trace(lambda x: Options(x, (x, 1)))
    node = traced.graph.find_nodes(op="call_function", target=Options)[0]
    assert set(node.kwargs) == {"scale", "shape"}
    assert traced(3) == Options(3, (3, 1))


def test_enum_from_a_trace(fx):
    traced = fx.symbolic_trace(lambda x: wrapped.by_name(x, [Colour.RED]))
    assert only(traced.graph, "call_function").args[1][0] is Colour.RED


def test_enum_default_argument(fx):
    def chosen(x, colour=Colour.BLUE):
        return x, colour

    assert fx.symbolic_trace(chosen)(1) == (1, Colour.BLUE)


def test_dict_with_int_keys(fx):
    traced = fx.symbolic_trace(lambda x: {1: x, 2: [x]})
    assert traced(5) == {1: 5, 2: [5]}


def test_dict_with_tuple_keys(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output({(1, 2): x})
    assert fx.GraphModule({}, graph)(3) == {(1, 2): 3}


def test_string_arguments(fx):
    traced = fx.symbolic_trace(lambda x: torch.einsum("ij,jk->ik", x, x))
    assert only(traced.graph, "call_function").args[0] == "ij,jk->ik"
    assert traced(torch.ones(2, 2)).shape == (2, 2)


def test_size_argument_is_a_tuple_of_numbers(fx):
    traced = fx.symbolic_trace(lambda x: x.view(torch.Size([2, 2])))
    assert traced(torch.ones(4)).shape == (2, 2)


def test_nodes_inside_slices_in_code(fx):
    traced = fx.symbolic_trace(lambda x, a, b: x[a:b, ::2])
    assert traced(torch.arange(12).reshape(4, 3), 1, 3).tolist() == [[3, 5], [6, 8]]


def test_range_with_constants(fx):
    traced = fx.symbolic_trace(lambda x: wrapped.by_name(range(3), x))
    assert only(traced.graph, "call_function").args[0] == range(3)


def test_torch_operator_as_argument(fx):
    graph = fx.Graph()
    graph.output(graph.call_function(keep, (torch.ops.aten.add.Tensor,)))
    assert fx.GraphModule({}, graph)() == ((torch.ops.aten.add.Tensor,), {})
