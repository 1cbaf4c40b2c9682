"""What torch's own tools make of a graph module: scripting, compiling, state dicts, hooks, parallel replicas."""

import math

import pytest
import torch

import clew

from .models import Block, Tied, double_output

X = torch.randn(4, 3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [Block, Tied])
def test_scripting(kind):
    traced = clew.symbolic_trace(kind()).eval()
    assert torch.equal(torch.jit.script(traced)(X), traced(X))


@pytest.mark.filterwarnings("ignore")
def test_compiling():
    traced = clew.symbolic_trace(Block()).eval()
    compiled = torch.compile(traced, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), traced(X))
    traced.graph.output_node().args = (traced.graph.find_nodes(op="placeholder")[0],)
    torch._dynamo.reset()
    assert torch.equal(torch.compile(traced, backend="eager")(X), X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fullgraph", [True, False])
def test_compiling_code_with_globals(fullgraph):
    def function(x):
        y = torch.relu(x) + math.sqrt(4.0)
        return clew_keep(y, torch.float32)

    traced = clew.symbolic_trace(function)
    if not fullgraph:
        with traced.graph.inserting_before(traced.graph.output_node()):
            traced.graph.call_function(torch._dynamo.graph_break, ())
    compiled = torch.compile(traced, backend="eager", fullgraph=fullgraph)
    assert torch.equal(compiled(X), traced(X))


@clew.wrap
def clew_keep(x, dtype):
    return x.to(dtype) * 2


@pytest.mark.filterwarnings("ignore")
def test_compiling_with_an_error_inside():
    graph = clew.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.matmul, (x, x)))
    with pytest.raises(Exception, match="(?i)shape|size|mat"):
        torch.compile(clew.GraphModule({}, graph), backend="eager")(torch.zeros(2, 3))


def test_state_dicts_are_those_of_the_original():
    original = Block()
    traced = clew.symbolic_trace(original)
    assert traced.state_dict().keys() == original.state_dict().keys()
    other = Block()
    traced.load_state_dict(other.state_dict())
    assert torch.equal(original.weight, other.weight)


def test_moving_to_another_dtype():
    traced = clew.symbolic_trace(Block()).eval()
    assert traced.double()(X.double()).dtype == torch.float64
    assert traced.hidden.dtype == torch.float64


def test_hooks_run_once():
    traced = clew.symbolic_trace(Block()).eval()
    plain = traced(X)
    handle = traced.register_forward_hook(double_output)
    assert torch.equal(traced(X), plain * 2)
    handle.remove()
    assert torch.equal(traced(X), plain)


def test_gradients():
    traced = clew.symbolic_trace(Block())
    traced(X).sum().backward()
    assert all(parameter.grad is not None for parameter in traced.parameters())


def test_functional_calls():
    traced = clew.symbolic_trace(Block()).eval()
    zeros = {name: torch.zeros_like(value) for name, value in traced.named_parameters()}
    expected = (traced.shift - traced.hidden).expand(4, 3)
    assert torch.allclose(torch.func.functional_call(traced, zeros, (X,)), expected)
