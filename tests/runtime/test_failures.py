"""Errors in generated code: the traceback shows the line, a note leads to the user's own, nothing false is said."""

import traceback

import pytest
import torch

import clew
from clew.errors import CodegenError

from .models import small_graph


class Wrong(torch.nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        return torch.matmul(y, y)


BAD = torch.zeros(2, 3)


def failure_of(module, *args):
    with pytest.raises(RuntimeError) as caught:
        module(*args)
    return caught.value, "".join(traceback.format_exception(caught.value))


def test_the_traceback_shows_the_generated_line():
    error, text = failure_of(clew.symbolic_trace(Wrong()), BAD)
    assert "matmul = torch.matmul(relu, relu)" in text
    assert len(error.__notes__) == 1
    assert "In the generated forward of Wrong" in error.__notes__[0]
    assert "test_failures.py" in error.__notes__[0] and "torch.matmul(y, y)" in error.__notes__[0]


def test_a_failure_in_an_inner_graph_module_is_told_for_both():
    graph = clew.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    error, _ = failure_of(clew.GraphModule({"inner": clew.symbolic_trace(Wrong())}, graph, "Outer"), BAD)
    inner, outer = error.__notes__
    assert "of Wrong" in inner and "torch.matmul" in inner
    assert "of Outer" in outer and "self.inner(x)" in outer
    assert "test_failures.py" not in outer


def test_a_failure_before_the_code_runs_gets_no_note():
    module = clew.GraphModule({}, small_graph())

    def refuse(module, inputs):
        raise RuntimeError("no")

    module.register_forward_pre_hook(refuse)
    error, _ = failure_of(module, BAD)
    assert not hasattr(error, "__notes__")


def test_wrong_arguments_get_no_note():
    with pytest.raises(TypeError) as caught:
        clew.GraphModule({}, small_graph())(1, 2, 3)
    assert not hasattr(caught.value, "__notes__")


def test_a_graph_edited_while_it_runs_gets_no_note():
    module = clew.symbolic_trace(Wrong())
    forward = module.forward
    first = next(iter(module.graph.nodes))

    def edit(value):
        first.name = "edited"
        raise RuntimeError("after the edit")

    module.graph.find_nodes(op="call_function")[0].target = edit
    error, _ = failure_of(module, BAD)
    assert not hasattr(error, "__notes__")
    assert forward is not module.forward


def test_an_error_that_is_raised_twice_is_told_once():
    error = RuntimeError("again")

    def fail(x):
        raise error

    graph = clew.Graph()
    graph.output(graph.call_function(fail, (graph.placeholder("x"),)))
    module = clew.GraphModule({}, graph)
    failure_of(module, 1)
    failure_of(module, 1)
    assert len(error.__notes__) == 1


def test_lines_of_a_transformer_claim_no_node():
    module = clew.symbolic_trace(Wrong())
    module.graph.on_generate_code(lambda before: lambda body: ["raise RuntimeError('mine')\n", *body])
    error, _ = failure_of(module, BAD)
    assert "raise RuntimeError('mine')" in error.__notes__[0]
    assert "which comes from" not in error.__notes__[0]


def test_graph_functions_tell_too():
    graph = clew.symbolic_trace(Wrong()).graph
    error, text = failure_of(clew.GraphFunction(None, graph, "wrong"), BAD)
    assert "In the generated forward of wrong" in error.__notes__[0]
    assert "torch.matmul(y, y)" in error.__notes__[0]


def test_code_that_is_no_python_is_a_clear_error():
    module = clew.GraphModule({}, small_graph())
    module.graph.on_generate_code(lambda before: lambda body: ["x = = 1\n", *body])
    with pytest.raises(CodegenError, match="no valid Python"):
        module(1)
