"""Names that collide: whatever a node or a parameter is called, the code computes what the graph says."""

import collections
import math
import operator
import typing
from typing import Any

import pytest
import torch

from . import odd_names
from .running import body_of, code_of, exact_node, keep, module_of, new_graph, run_both

PACKAGES = ["math", "operator", "typing", "collections", "numpy", "torch", "functools"]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_node_called_like_a_package(name):
    graph, x = new_graph("x")
    node = graph.create_node("call_function", operator.add, (x, 1), {}, name)
    root = graph.call_function(math.sqrt, (node,))
    other = graph.call_function(operator.truth, (root,), type_expr=typing.Optional[torch.Tensor])
    graph.output((node, root, other, torch.float32, collections.OrderedDict))
    assert run_both(graph, 8.0) == (9.0, 3.0, True, torch.float32, collections.OrderedDict)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_parameter_called_like_a_package(name):
    graph, x = new_graph(name)
    root = graph.call_function(math.sqrt, (x,))
    graph.output((x, root, graph.call_function(operator.truth, (root,)), torch.float32))
    assert run_both(graph, 9.0) == (9.0, 3.0, True, torch.float32)
    assert module_of(graph)(**{name: 4.0})[1] == 2.0


@pytest.mark.parametrize("name", PACKAGES)
def test_a_node_that_bears_the_very_name_of_a_package(name):
    graph, x = new_graph("x")
    node = exact_node(graph, "call_function", name, operator.add, (x, 1))
    graph.output((node, graph.call_function(math.sqrt, (node,)), torch.float16))
    assert run_both(graph, 8.0) == (9.0, 3.0, torch.float16)


@pytest.mark.parametrize("name", ["len", "float", "complex", "frozenset", "range", "slice", "set", "getattr", "print"])
def test_a_parameter_called_like_a_builtin(name):
    graph, x = new_graph(name)
    size = graph.call_function(len, (x,))
    literals = (math.inf, 1j, frozenset([1]), range(2), slice(1), set())
    attribute = graph.call_function(getattr, (x, "odd name", 5))
    graph.output((size, literals, attribute))
    assert run_both(graph, [1, 2]) == (2, literals, 5)


@pytest.mark.parametrize("name", ["len", "float", "slice"])
def test_a_node_that_bears_the_very_name_of_a_builtin(name):
    graph, x = new_graph("x")
    node = exact_node(graph, "call_function", name, operator.add, (x, [3]))
    graph.output((graph.call_function(len, (node,)), math.inf, slice(1)))
    assert run_both(graph, [1, 2]) == (3, math.inf, slice(1))


@pytest.mark.parametrize("kind", ["node", "exact", "parameter"])
def test_self_is_the_root_and_nothing_else(kind):
    graph, x = new_graph("self" if kind == "parameter" else "x")
    if kind == "node":
        x = graph.create_node("call_function", operator.neg, (x,), {}, "self")
    elif kind == "exact":
        x = exact_node(graph, "call_function", "self", operator.neg, (x,))
    graph.output(graph.call_function(operator.add, (x, graph.get_attr("weight"))))
    sign = 1 if kind == "parameter" else -1
    assert run_both(graph, 3.0, root={"weight": 10.0}) == 10.0 + sign * 3.0


def test_a_function_called_forward():
    graph, x = new_graph("x")
    graph.output(graph.create_node("call_function", odd_names.forward, (x,), {}, "y"))
    assert run_both(graph, 2) == ("forward", 2)


def test_an_odd_variadic_parameter_stays_variadic():
    graph, rest = new_graph("*odd name")
    graph.output(rest)
    assert module_of(graph)(1, 2) == (1, 2)


@pytest.mark.parametrize("function", [odd_names.math, odd_names.torch, odd_names.List, odd_names.self, odd_names.len])
def test_functions_called_like_what_the_code_needs(function):
    graph, x = new_graph("x")
    called = graph.call_function(function, (x,))
    lengths = graph.call_function(len, (called,), type_expr=typing.List[int])
    root = graph.call_function(math.sqrt, (lengths,))
    graph.output((called, root, torch.float32, graph.get_attr("weight")))
    expected = ((function.__name__, 2), math.sqrt(2), torch.float32, 1.5)
    assert run_both(graph, 2, root={"weight": 1.5}) == expected


def test_two_functions_of_one_name():
    graph, x = new_graph("x")
    first = graph.call_function(odd_names.sqrt, (x,))
    graph.output((first, graph.call_function(odd_names.Holder.sqrt, (x,)), graph.call_function(math.sqrt, (x,))))
    assert run_both(graph, 4.0) == (("sqrt", 4.0), ("Holder.sqrt", 4.0), 2.0)


def test_node_names_that_other_modules_use():
    graph, x = new_graph("x")
    for name in ("keep", "List", "tree", "pytree", "_in_spec", "inf", "nan", "device", "NoneType", "forward"):
        x = graph.create_node("call_function", operator.add, (x, 1), {}, name)
    graph.output(graph.call_function(keep, (x, math.inf, torch.device("cpu"), type(None))))
    (total, *rest), _ = run_both(graph, 0)
    assert total == 10
    assert rest == [math.inf, torch.device("cpu"), type(None)]


def test_parameters_and_nodes_with_exchanged_names():
    (graph,) = new_graph()
    a = exact_node(graph, "placeholder", "b", "a")
    b = exact_node(graph, "placeholder", "a", "b")
    graph.output((a, b))
    assert run_both(graph, 1, 2) == (1, 2)
    assert module_of(graph)(b=2, a=1) == (1, 2)


def test_a_node_called_like_a_parameter_that_comes_later():
    (graph,) = new_graph()
    held = graph.get_attr("y")
    y = graph.placeholder("y")
    graph.output((held, y))
    assert held.name == "y"
    assert run_both(graph, 5, root={"y": 7}) == (7, 5)


def test_two_placeholders_of_one_name():
    graph, first, second = new_graph("x", "x")
    graph.output((first, second))
    assert run_both(graph, 1, 2) == (1, 2)
    assert "def forward(self, x, x_1):" in code_of(graph)


def test_a_renamed_parameter_keeps_its_keyword():
    graph, x = new_graph("x")
    x.name = "renamed"
    graph.output(x)
    assert body_of(graph) == ["renamed = x", "return renamed"]
    assert module_of(graph)(x=3) == 3


@pytest.mark.parametrize("target", ["from", "a b", "ünï", "1x", "", "x\n", "__debug__", "None"])
def test_a_parameter_that_is_no_identifier(target):
    graph, x = new_graph(target)
    graph.output(x)
    assert run_both(graph, 3) == 3


def test_a_submodule_path_of_odd_atoms():
    inner = torch.nn.Module()
    inner.add_module("a b", torch.nn.Identity())
    inner.add_module("class", torch.nn.Identity())
    inner.add_module("__private", torch.nn.Identity())
    inner.add_module("0", torch.nn.Identity())
    graph, x = new_graph("x")
    results = [graph.call_module(f"m.{name}", (x,)) for name in ("a b", "class", "__private", "0")]
    graph.output(results)
    assert run_both(graph, 3, root={f"m.{name}": module for name, module in inner.named_children()}) == [3] * 4


@pytest.mark.parametrize("key", ["in", "a b", "ö", "", "None", "__debug__", "x\n", "self", "keep", "__private"])
def test_keywords_of_any_spelling(key):
    graph, x = new_graph("x")
    graph.output(graph.call_function(keep, (), {key: x, "plain": 1}))
    (_, found) = run_both(graph, 3)
    assert found == {key: 3, "plain": 1}


def test_names_made_by_nodes_of_every_kind_are_unique() -> None:
    graph, x = new_graph("x")
    nodes: list[Any] = [graph.call_function(keep, (x,)) for _ in range(20)]
    graph.output(nodes)
    assert len({node.name for node in nodes}) == 20
