"""ProxyableClassMeta: construction of the user's own class as a node."""

import pytest
import torch

from .facades import importable
from .helpers import of, only, targets


def make_pair(facade):
    class TensorPair(metaclass=facade.ProxyableClassMeta):
        def __init__(self, left, right):
            self.left, self.right = left, right

        def add(self, other):
            return type(self)(self.left + other.left, self.right + other.right)

        def mul(self, other):
            return type(self)(self.left * other.left, self.right * other.right)

    return TensorPair


PAIRS = {id(facade): make_pair(facade) for facade in importable()}


@pytest.fixture
def pair_class(fx):
    return PAIRS.get(id(fx)) or make_pair(fx)


def test_construction_is_a_node(fx, pair_class):
    traced = fx.symbolic_trace(lambda x, y: pair_class(x, y))
    assert only(traced.graph, "call_function").target is pair_class
    result = traced(1, 2)
    assert isinstance(result, pair_class) and (result.left, result.right) == (1, 2)


def test_methods_are_calls(fx, pair_class):
    def uses(x, y):
        return x.add(pair_class(y, y)).mul(x)

    traced = fx.symbolic_trace(uses)
    assert [node.target for node in of(traced.graph, "call_method")] == ["add", "mul"]
    x, y = pair_class(torch.ones(2), torch.ones(2) * 2), torch.ones(2)
    result, expected = traced(x, y), uses(x, y)
    torch.testing.assert_close((result.left, result.right), (expected.left, expected.right))


def test_construction_with_keywords(fx, pair_class):
    traced = fx.symbolic_trace(lambda x: pair_class(left=x, right=3))
    assert set(only(traced.graph, "call_function").kwargs) == {"left", "right"}
    assert traced(1).right == 3


def test_construction_without_proxies_is_real(fx, pair_class):
    made = []

    def uses(x):
        made.append(pair_class(1, 2))
        return x

    fx.symbolic_trace(uses)
    assert isinstance(made[0], pair_class)


def test_construction_with_proxies_in_a_list(fx, pair_class):
    traced = fx.symbolic_trace(lambda x: pair_class([x, x], 1))
    assert pair_class in targets(traced.graph)


def test_ready_instance_is_a_constant(fx, pair_class):
    constant = pair_class(torch.ones(2), torch.ones(2))
    traced = fx.symbolic_trace(lambda x: x.add(constant))
    node = only(traced.graph, "get_attr")
    assert node.target.startswith("_TensorPair_constant_")
    result = traced(pair_class(torch.ones(2), torch.zeros(2)))
    assert result.left.tolist() == [2.0, 2.0]


def test_outside_of_tracing_nothing_changes(fx, pair_class):
    pair = pair_class(1, 2)
    assert (pair.left, pair.right) == (1, 2)


def test_interpreter_runs_the_construction(fx, pair_class):
    traced = fx.symbolic_trace(lambda x, y: pair_class(x, y))
    assert fx.Interpreter(traced).run(1, 2).left == 1
