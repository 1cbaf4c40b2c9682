"""What clients and tests of torch.fx rely on beyond the documented interface."""

import operator
import subprocess
import sys

import pytest
import torch
import torch.fx
from torch import nn

import clew.fx as fx
from clew.fx import PH
from clew.fx.experimental.graph_gradual_typechecker import GraphTypeChecker

TensorType = fx.tensor_type.TensorType


def test_torch_dynamo_can_be_imported_while_installed():
    program = "import clew.fx\nwith clew.fx.install():\n    import torch._dynamo\n"
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=300)


def test_symbolic_values_count_as_torch_fx_for_libraries():
    asked = []

    def program(x):
        asked.append((isinstance(x, torch.fx.Proxy), isinstance(x, fx.Proxy), isinstance(x.shape, torch.fx.Proxy)))
        return x + 1

    fx.symbolic_trace(program)
    assert asked == [(True, True, True)]
    assert not isinstance(torch.rand(1), torch.fx.Proxy)


def test_a_use_can_be_replaced_by_a_nest():
    graph = fx.Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    pair = graph.call_function(torch.stack, ((x, y),))
    first = graph.call_function(operator.getitem, (pair, 0))
    graph.output(first)
    assert pair.replace_all_uses_with((x, y)) == [first]
    assert first.args == ((x, y), 0)
    assert first in x.users and first in y.users and first not in pair.users
    graph.erase_node(pair)
    graph.lint()
    assert fx.GraphModule({}, graph)(1, 2) == 1


def test_a_symbolic_value_is_taken_apart_as_the_nest_that_it_stands_for():
    def program(b, a):
        return a["a"] if b else a["z"][1]

    fixed = {"a": {"a": PH, "z": [PH, PH]}, "b": False}
    traced = fx.symbolic_trace(program, concrete_args=fixed)
    given = {"a": {"a": torch.rand(2), "z": [torch.rand(2), torch.rand(2)]}, "b": False}
    again = fx.symbolic_trace(traced)
    torch.testing.assert_close(again(**given), program(**given))
    assert "tree_flatten_spec" in traced.code
    assert "tree_flatten_spec" not in again.code


def test_methods_of_torchscript_are_calls_of_methods():
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))

    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = scripted

        def forward(self, x):
            return self.inner.forward(x) * 2

    traced, x = fx.symbolic_trace(Holder()), torch.rand(1, 2)
    assert "forward" in [node.target for node in traced.graph.nodes if node.op == "call_method"]
    torch.testing.assert_close(traced(x), scripted(x) * 2)


def test_a_method_that_is_missing():
    tracer = fx.Tracer()
    tracer.traced_func_name = "backwards"
    with pytest.raises(AssertionError, match="traced_func_name=backwards doesn't exist in Linear"):
        tracer.trace(nn.Linear(1, 1))


def test_methods_can_be_wrapped_by_the_private_list():
    from clew.fx._symbolic_trace import _wrapped_methods_to_patch

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.rand(1, 8))

        def forward(self, x):
            return self.table.expand(x.size(0), 8)

    model, x = Table(), torch.rand(3)
    _wrapped_methods_to_patch.append((torch.Tensor, "expand"))
    try:
        traced = fx.symbolic_trace(model)
    finally:
        _wrapped_methods_to_patch.pop()
    assert "expand" in [node.target for node in traced.graph.nodes]
    torch.testing.assert_close(traced(x), model(x))


def test_gradual_types_of_writes_in_place():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm2d(2)

        def forward(self, x: TensorType((2, 2, 5, 4))):
            out = self.norm(x)
            out += x
            return out

    traced = fx.symbolic_trace(Residual())
    GraphTypeChecker({}, traced).type_check()
    written = next(node for node in traced.graph.nodes if node.target in (operator.add, operator.iadd))
    assert written.type == TensorType((2, 2, 5, 4))
