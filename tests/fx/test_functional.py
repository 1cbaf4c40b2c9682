"""The sweep: each torch function called on a symbolic value is one call_function of that very function."""

import pytest
import torch

from .functional_cases import METHODS, MORE, ONE, TWO, resolve
from .helpers import only


def traced_target(fx, call):
    graph = fx.Tracer().trace(call)
    graph.lint()
    node = only(graph, "call_function")
    assert list(graph.nodes)[0] in node.all_input_nodes
    return node


@pytest.mark.parametrize("name", ONE)
def test_function_of_one_value(fx, name):
    function = resolve(name)
    assert traced_target(fx, lambda x: function(x)).target is function


@pytest.mark.parametrize("name", TWO)
def test_function_of_two_values(fx, name):
    function = resolve(name)
    node = traced_target(fx, lambda x: function(x, x))
    assert node.target is function
    assert len(node.args) == 2


@pytest.mark.parametrize("function", MORE, ids=lambda function: f"{function.__module__}.{function.__name__}")
def test_function_with_other_arguments(fx, function):
    assert traced_target(fx, MORE[function]).target is function


@pytest.mark.parametrize("name", METHODS)
def test_method(fx, name):
    graph = fx.Tracer().trace(lambda x: getattr(x, name)(1, key=2))
    node = only(graph, "call_method")
    assert node.target == name
    assert node.args[1:] == (1,) and node.kwargs == {"key": 2}


RUNNABLE = [
    "abs", "cos", "exp", "flatten", "relu", "sigmoid", "sin", "square", "sum", "tanh", "nn.functional.gelu",
    "nn.functional.silu", "nn.functional.softplus", "linalg.norm", "special.expit", "max", "mean", "std",
]  # fmt: skip


@pytest.mark.parametrize("name", RUNNABLE)
def test_generated_code_calls_the_same_function(fx, name):
    function = resolve(name)
    x = torch.rand(3, 3)
    traced = fx.symbolic_trace(lambda value: function(value))
    torch.testing.assert_close(traced(x), function(x))
