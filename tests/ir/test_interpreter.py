"""Interpreter: node by node it gives what the generated code gives, effects and modes included."""

import operator

import pytest
import torch
from torch import nn

import clew
from clew.errors import MissingAttribute, MissingInput

X = torch.rand(3, 3)


class Writes(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("steps", torch.zeros(3))

    def forward(self, x, scale=2.0):
        self.steps.add_(1)
        total = torch.zeros(3, 3)
        total[0] = x[0]
        with torch.no_grad():
            y = self.linear(x) * scale
        return [y + self.steps, total]


def test_interpreter_and_code_agree_on_state():
    interpreted, generated = clew.symbolic_trace(Writes()), clew.symbolic_trace(Writes())
    generated.load_state_dict(interpreted.state_dict())
    for _ in range(3):
        torch.testing.assert_close(clew.Interpreter(interpreted).run(X), generated(X))
    assert torch.equal(interpreted.steps, generated.steps)


def test_values_are_dropped_after_their_last_use():
    alive = []

    class Looks(clew.Interpreter):
        def run_node(self, n):
            alive.append({node.name for node in self.env})
            return super().run_node(n)

    Looks(clew.symbolic_trace(lambda x: torch.neg(torch.neg(torch.neg(x))))).run(X)
    assert alive[-1] == {"neg_2"}


def test_plain_lists_reach_the_functions():
    graph = clew.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(list.append, ([x], x)))
    seen = []

    class Looks(clew.Interpreter):
        def call_function(self, target, args, kwargs):
            seen.append(type(args[0]))
            return super().call_function(target, args, kwargs)

    assert Looks(clew.GraphModule(nn.Module(), graph)).run(1) is None
    assert seen == [list]


def test_an_error_leads_to_the_users_line():
    def fails(x):
        return operator.matmul(x, x[:1])

    traced = clew.symbolic_trace(fails)
    with pytest.raises(RuntimeError) as caught:
        clew.Interpreter(traced).run(X)
    assert any("operator.matmul(x, x[:1])" in note for note in caught.value.__notes__)


def test_a_missing_input_is_named():
    with pytest.raises(MissingAttribute, match="parameter y"):
        clew.Interpreter(clew.symbolic_trace(lambda x, y: x + y)).run(X)


def test_inputs_may_be_passed_by_name():
    def program(x, scale=1.0, *rest, shift, **named):
        return x * scale + shift, rest, named

    traced = clew.trace(program, (torch.ones(2),), {"shift": 3.0})
    run = clew.Interpreter(traced).run
    for args, kwargs in [((torch.ones(3),), {"shift": 2.0}), ((), {"shift": 1.0, "x": torch.ones(4)})]:
        assert torch.equal(run(*args, **kwargs)[0], program(*args, **kwargs)[0])
    wider = clew.trace(program, (torch.ones(2),), {"shift": 3.0, "more": 1})
    assert clew.Interpreter(wider).run(torch.ones(2), shift=3.0, more=5)[2] == {"more": 5}


def test_a_name_that_is_no_input_or_comes_twice_is_told():
    run = clew.Interpreter(clew.trace(lambda x, y: x + y, (torch.ones(2), 1.0))).run
    with pytest.raises(MissingInput, match="the graph has no input 'z'(?s:.*)its inputs are x, y"):
        run(torch.ones(2), z=2.0)
    with pytest.raises(MissingInput, match="the input 'x' is passed twice"):
        run(torch.ones(2), x=2.0)


def test_a_long_graph_needs_no_deep_stack():
    graph = clew.Graph()
    value = graph.placeholder("x")
    for _ in range(20_000):
        value = graph.call_function(operator.add, (value, 1))
    graph.output(value)
    assert clew.Interpreter(clew.GraphModule(nn.Module(), graph)).run(0) == 20_000


def test_an_error_leaves_the_with_blocks_around_it() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cpu"):
            return x.reshape(2)

    captured = clew.trace(program, (torch.ones(2),))
    assert torch.is_grad_enabled()
    with pytest.raises(RuntimeError, match="shape"):
        clew.Interpreter(captured).run(torch.ones(3))
    assert torch.is_grad_enabled()
    assert not torch.is_autocast_enabled("cpu")
