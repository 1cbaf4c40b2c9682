"""Names of nodes: unique, valid, never a keyword or a builtin, the same in the code."""

import builtins
import keyword

import pytest
import torch

from .helpers import names, node_called


def named(fx, *wanted):
    graph = fx.Graph()
    return [graph.create_node("call_function", torch.rand, name=name).name for name in wanted]


def test_repeated_name_is_numbered(fx):
    assert named(fx, "a", "a", "a") == ["a", "a_1", "a_2"]


def test_numbered_name_is_kept_when_free(fx):
    assert named(fx, "a_5", "a_5") == ["a_5", "a_6"]


def test_number_taken_already_is_skipped(fx):
    result = named(fx, "a", "a_1", "a", "a")
    assert len(set(result)) == 4
    assert result[:2] == ["a", "a_1"]


@pytest.mark.parametrize("word", [word for word in keyword.kwlist if word != "None"])
def test_keyword_is_never_a_name(fx, word):
    (name,) = named(fx, word)
    assert name != word and name.isidentifier() and not keyword.iskeyword(name)


@pytest.mark.parametrize("word", ["max", "sum", "len", "print", "list", "range", "type", "object", "__import__"])
def test_builtin_is_never_a_name(fx, word):
    (name,) = named(fx, word)
    assert name != word and not hasattr(builtins, name)


@pytest.mark.parametrize("word", ["inf", "nan", "torch", "device"])
def test_names_that_code_needs_are_not_taken(fx, word):
    graph = fx.Graph()
    node = graph.create_node("call_function", torch.zeros, (2,), {"device": torch.device("cpu")}, name=word)
    graph.output((node, float("inf"), torch.float32))
    value, infinite, dtype = fx.GraphModule({}, graph)()
    assert value.tolist() == [0.0, 0.0] and infinite == float("inf") and dtype is torch.float32


@pytest.mark.parametrize("word", ["a.b", "a-b", "a b", "a:b", "a/b", "1a", "", "ünïcode", "a\nb", "a;import os", "a'b"])
def test_illegal_characters_are_replaced(fx, word):
    (name,) = named(fx, word)
    assert name.isidentifier() and name.isascii()


def test_dot_becomes_underscore(fx):
    assert named(fx, "a.b") == ["a_b"]


def test_leading_digit_gets_an_underscore(fx):
    assert named(fx, "0") == ["_0"]


def test_magic_method_loses_its_underscores(fx):
    graph = fx.Graph()
    assert graph.call_method("__add__", (graph.placeholder("x"), 1)).name == "add"


def test_method_names_are_snake_cased(fx):
    graph = fx.Graph()
    assert graph.call_method("someMethod", (graph.placeholder("x"),)).name == "some_method"


def test_placeholder_called_like_a_builtin_keeps_its_target(fx):
    graph = fx.Graph()
    node = graph.placeholder("max")
    graph.output(node)
    assert node.target == "max"
    assert fx.GraphModule({}, graph)(max=3) == 3


def test_placeholder_called_self(fx):
    graph = fx.Graph()
    x = graph.placeholder("self")
    graph.output(x)
    assert x.target == "self"


def test_node_called_like_a_global_of_the_code(fx):
    def relu(x):
        return x + 100

    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.create_node("call_function", torch.relu, (x,), name="relu")
    second = graph.create_node("call_function", relu, (first,), name="relu")
    graph.output(second)
    assert fx.GraphModule({}, graph)(torch.tensor(-1.0)) == 100.0


def test_two_functions_of_one_name(fx):
    def make(offset):
        def shift(x):
            return x + offset

        return shift

    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(make(10), (graph.call_function(make(1), (x,)),)))
    assert fx.GraphModule({}, graph)(0) == 11


def test_names_are_unique_after_many_copies(fx):
    traced = fx.symbolic_trace(lambda x: torch.relu(torch.relu(x)))
    graph = fx.Graph()
    for _ in range(5):
        graph.graph_copy(traced.graph, {})
    assert len(set(names(graph))) == len(names(graph)) == 15


def test_manual_name_collision_with_an_automatic_one(fx):
    graph = fx.Graph()
    a = graph.create_node("placeholder", "foo_1")
    b = graph.create_node("placeholder", "foo")
    c = graph.create_node("placeholder", "foo")
    assert len({a.name, b.name, c.name}) == 3


def test_names_in_code_are_names_of_nodes(fx):
    traced = fx.symbolic_trace(lambda first, second: torch.relu(first) + second)
    for name in ("first", "second", "relu", "add"):
        assert node_called(traced.graph, name)
        assert name in traced.code


def test_variable_names_do_not_depend_on_the_users_locals(fx):
    def one(x):
        anything = torch.relu(x)
        return anything

    assert names(fx.symbolic_trace(one).graph)[1] == "relu"


def test_erased_names_are_not_given_again_at_once(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    first = graph.call_function(torch.neg, (x,))
    graph.erase_node(first)
    second = graph.call_function(torch.neg, (x,))
    assert second.name.startswith("neg")
    graph.output(second)
    graph.lint()
