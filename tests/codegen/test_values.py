"""Literals evaluate back to the same values, as arguments, defaults, results and operands."""

import collections
import datetime
import fractions
import functools
import math
import operator
import types

import numpy
import pytest
import torch

import clew

from . import shapes
from .running import exactly_same, keep, module_of, new_graph, run_both

outer = shapes.Outer()
moved = shapes.Point(1)
moved.extra = 5
VALUES = {
    "nan": math.nan, "inf": math.inf, "minus-inf": -math.inf, "minus-zero": -0.0, "tiny": 5e-324,
    "complex": complex(-0.0, -0.0), "complex-inf": complex(math.nan, -math.inf), "complex-negative": -1 - 2j,
    "huge": 10**6000, "minus-huge": -(10**6000), "bool": True, "bytes": b"'\"\x00\xff", "surrogate": "\ud800",
    "bytearray": bytearray(b"x"), "frozen-sets": frozenset([frozenset(), frozenset([1, "a"])]), "set": {1, 2},
    "empty-set": set(), "range": range(9, -3, -4), "slice": slice(None, -1, -2), "nested": [({"a": [slice(1)]},)],
    "enum-alias": shapes.Colour.CRIMSON, "flags": shapes.Access.READ | shapes.Access.RUN, "no-flag": shapes.Access(0),
    "all-flags": ~shapes.Access(0), "int-flags": shapes.Mode.A | shapes.Mode.B, "odd-int-flag": shapes.Mode(9),
    "word": shapes.Word.YES, "inner-enum": shapes.Outer.Inner.ONE,
    "pair": shapes.Pair(1), "renamed": shapes.Renamed(1, 2, 3), "point": shapes.Point(math.inf, [1]),
    "point3": shapes.Point3(1, 2, [3]), "frozen": shapes.Frozen("a'\n", shapes.Frozen("b")),
    "counted": shapes.Counted(3), "checked": shapes.Checked(3), "keywords": shapes.Keywords(a=1),
    "plain-child": shapes.PlainChild(1, 2), "extended": moved,
    "dtype": torch.bfloat16, "device": torch.device("cuda", 3), "meta": torch.device("meta"),
    "size": torch.Size([2, 0]), "layout": torch.sparse_coo, "format": torch.channels_last_3d,
    "finfo": torch.finfo(torch.float16), "scheme": torch.per_tensor_affine,
    "numpy-float": numpy.float32(0.1), "numpy-int": numpy.int8(-3), "numpy-dtype": numpy.dtype("int16"),
    "numpy-nan": numpy.float64("nan"), "numpy-bool": numpy.bool_(True),
    "class": shapes.Point, "inner-class": shapes.Outer.Inner, "method": outer.method, "class-method": shapes.Outer.make,
    "builtin-method": [3].count, "dict-method": dict.fromkeys, "function": math.sqrt, "module": torch.nn.functional,
    "none-type": type(None), "ellipsis-type": type(...), "function-type": types.FunctionType,
    "partial": functools.partial(operator.add, 2), "fraction": fractions.Fraction(1, 3),
    "date": datetime.date(2020, 1, 2), "ordered": collections.OrderedDict(a=1), "not-implemented": NotImplemented,
    "odd-keys": {None: 1, (1, "a"): 2, 2.5: 3, shapes.Colour.RED: 4, b"k": 5, math.inf: 6},
    "lambda": (lambda: 5), "generic": list[int], "object": object(),
}  # fmt: skip


def same(left, right):
    """Equality for all of the values above; lists and dicts of a graph may have become immutable ones."""
    if isinstance(left, numpy.generic):
        return type(left) is type(right) and left.tobytes() == right.tobytes()
    if isinstance(left, functools.partial):
        return left is right
    if isinstance(left, (torch.finfo,)):
        return left.dtype == right.dtype
    return exactly_same(left, right) or (isinstance(left, (list, dict)) and left == right)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_comes_back(value):
    graph, x = new_graph("x")
    limit = graph.create_node("placeholder", "limit", (value,))
    made = graph.call_function(keep, (x, value, [value]), {"key": (value,)})
    graph.output((made, limit, value))
    ((_, first, second), third), default, last = module_of(graph)(0)
    for found in (first, second[0], third["key"][0], default, last):
        assert same(value, found)
        assert type(found) is type(value) or isinstance(value, (list, dict))


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_is_what_the_interpreter_sees(value):
    graph, x = new_graph("x")
    graph.output(graph.call_function(keep, (x, value)))
    module = module_of(graph)
    (_, code), _ = module(0)
    (_, interpreted), _ = clew.Interpreter(module).run(0)
    assert same(code, interpreted)


NUMBERS = [-1, 2, -0.5, 2.5, True, 3 + 1j, -2j, math.inf, -math.inf]
BINARY = [operator.pow, operator.sub, operator.add, operator.mul, operator.truediv, operator.eq, operator.ne]


@pytest.mark.parametrize("function", BINARY)
@pytest.mark.parametrize("number", NUMBERS)
def test_operators_with_a_literal_on_either_side(function, number):
    graph, x = new_graph("x")
    graph.output((graph.call_function(function, (x, number)), graph.call_function(function, (number, x))))
    run_both(graph, 2)
    run_both(graph, -3)


@pytest.mark.parametrize("number", [*NUMBERS, 0, -0.0])
@pytest.mark.parametrize("function", [operator.neg, operator.pos, abs])
def test_unary_operators_of_literals(function, number):
    (graph,) = new_graph()
    graph.output(graph.call_function(function, (number,)))
    assert exactly_same(run_both(graph), function(number))


@pytest.mark.parametrize("number", [5, -5, True, 1.5, -1.5, 1e100, 2j, 2**70])
def test_attributes_and_methods_of_literals(number):
    (graph,) = new_graph()
    real = graph.call_function(getattr, (number, "real"))
    graph.output((real, graph.call_method("conjugate", (number,))))
    assert run_both(graph) == (number.real, number.conjugate())


def test_nested_operations_keep_their_order():
    graph, x = new_graph("x")
    square = graph.call_function(operator.pow, (x, 2))
    minus = graph.call_function(operator.neg, (square,))
    other = graph.call_function(operator.pow, (graph.call_function(operator.neg, (x,)), 2))
    compared = graph.call_function(operator.lt, (graph.call_function(operator.lt, (x, 5)), 1))
    graph.output((minus, other, compared))
    assert run_both(graph, 3) == (-9, 9, False)


INDICES = [
    0, -1, None, ..., slice(None), slice(1, None), slice(None, None, 2), slice(-2, None), (), (0,), (slice(None), 0),
    (..., None), (None, slice(0, 1)), [0, 1], ([0, 1], slice(None)), (slice(None, -1), slice(1, 3, 2)), True, (0, (1,)),
    ((0, 1), slice(None)), torch.Size([1, 0]), shapes.Pair(0, 1), (slice(0, 2), [0], ...),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=map(str, range(len(INDICES))))
def test_subscripts(index):
    graph, x = new_graph("x")
    graph.output(graph.call_function(operator.getitem, (x, index)))
    array = numpy.arange(6.0).reshape(2, 3)
    assert numpy.array_equal(module_of(graph)(array), array[index])


class Indices:
    """Tells with what it is subscripted."""

    def __getitem__(self, index):
        return index

    def __setitem__(self, index, value):
        self.seen = (index, value)


@pytest.mark.parametrize("index", INDICES, ids=map(str, range(len(INDICES))))
def test_the_index_itself(index):
    graph, x, n = new_graph("x", "n")
    plain = graph.call_function(operator.getitem, (x, index))
    mixed = graph.call_function(operator.getitem, (x, (slice(n, None), index, slice(None, n, n), n)))
    graph.output((plain, mixed))
    assert run_both(graph, Indices(), 2) == (index, (slice(2, None), index, slice(None, 2, 2), 2))


@pytest.mark.parametrize("index", INDICES, ids=map(str, range(len(INDICES))))
def test_assignment_to_a_subscript(index):
    graph, x, n = new_graph("x", "n")
    done = graph.call_function(operator.setitem, (x, index, (n, slice(n, 3))))
    graph.output((done, x))
    target = Indices()
    assert module_of(graph)(target, 2) == (None, target)
    assert target.seen == (index, (2, slice(2, 3)))


def test_in_place_operators_on_values_that_do_not_change():
    graph, x = new_graph("x")
    added = graph.call_function(operator.iadd, (x, 1))
    multiplied = graph.call_function(operator.imul, (x, 10))
    graph.output((x, added, multiplied))
    assert run_both(graph, 2) == (2, 3, 20)


def test_in_place_operators_on_values_that_change():
    graph, x = new_graph("x")
    graph.call_function(operator.iadd, (x, [9]))
    graph.call_function(operator.iadd, ([1], [2]))
    graph.output(x)
    assert module_of(graph)([1]) == [1, 9]
