"""Constant folding: constants are computed once, and nobody can tell."""

import copy

import pytest
import torch
from hypothesis import given, settings
from torch import nn

import clew
from tests.passes.programs import lines, owner_of, passed, targets
from tests.strategies import runnable_graphs

X = torch.rand(2, 4)


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(4.0))
        self.weight = nn.Parameter(torch.ones(4))
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        scale = torch.sin(self.table * 2) + 1
        return self.linear(x * scale) * (self.weight * 2)


def test_golden():
    captured = passed(clew.constant_folding, Positions(), X)
    assert lines(captured) == [
        "%scale: f32[4] = attr _folded0",
        "%mul_1: f32[2, 4] = function operator.mul(%x, %scale)",
        "%linear: f32[2, 4] = module linear(%mul_1)",
        "%weight: f32[4] = attr weight",
        "%mul_2: f32[4] = function operator.mul(%weight, 2)",
        "%mul_3: f32[2, 4] = function operator.mul(%linear, %mul_2)",
        "return %mul_3",
    ]
    assert captured.graph.find_nodes(op="get_attr")[0].source.text.startswith("scale = torch.sin")


def test_state_stays_and_is_watched():
    model = Positions()
    captured = clew.constant_folding(clew.trace(model, (X,)))
    assert list(captured.state_dict()) == list(model.state_dict())
    captured.load_state_dict({**model.state_dict(), "table": torch.arange(4.0)})
    assert torch.equal(captured(X), model(X))
    captured.load_state_dict({**model.state_dict(), "table": torch.arange(4.0) + 1})
    with pytest.raises(clew.GuardError, match=r"self\.table is unchanged"):
        captured(X)


def test_a_moved_capture_refuses():
    captured = clew.constant_folding(clew.trace(Positions(), (X,))).double()
    with pytest.raises(clew.GuardError, match=r"self\.table is unchanged"):
        captured(X.double())


def test_a_copy_watches_its_own():
    captured = clew.constant_folding(clew.trace(Positions(), (X,)))
    twin = copy.deepcopy(captured)
    twin.table.add_(1)
    captured(X)
    with pytest.raises(clew.GuardError):
        twin(X)


def factories():
    """``x + torch.ones(4) * 3`` as a graph; a capture would have folded it."""
    graph = clew.Graph()
    x = graph.placeholder("x")
    ones = graph.call_function(torch.ones, (4,))
    graph.output(graph.call_function(torch.add, (x, graph.call_function(torch.mul, (ones, 3)))))
    return clew.GraphModule({}, graph)


def test_the_settings_of_torch_are_guarded():
    captured = clew.constant_folding(factories())
    assert targets(captured) == ["_folded0", "add"]
    assert torch.equal(captured(X), X + torch.ones(4) * 3)
    with torch.autocast("cpu"), pytest.raises(clew.GuardError):
        captured(X)


def test_the_limit():
    class Large(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.arange(4.0))

        def forward(self, x):
            return x + (self.table[:, None] * 2).repeat(1, 1024).sum(1)

    model = Large()
    free = clew.constant_folding(clew.trace(model, (X,)))
    assert targets(free) == ["_folded0", "add"]
    bound = clew.constant_folding(clew.trace(model, (X,)), limit=1024)
    assert targets(bound) == ["_folded0", "repeat", "sum", "add"]
    assert torch.equal(bound(X), model(X))


def returned(x):
    return x + 1, torch.ones(3) * 2


def returned_view(x):
    table = torch.ones(3) * 2
    return x + 1, table.view(3, 1)


def written(x):
    table = torch.ones(4) * 2
    table.add_(x[0])
    return x + table


def written_in_branch(x):
    table = torch.ones(4) * 2
    if x.sum() > 0:
        table.add_(1)
    return x + table


@pytest.mark.parametrize("program", [returned, returned_view, written, written_in_branch])
def test_what_is_written_or_returned_is_new_each_time(program):
    captured = clew.constant_folding(clew.trace(program, (X,)))
    first = captured(X)
    if isinstance(first, tuple):
        first[1].zero_()
    torch.testing.assert_close(captured(X), program(X), rtol=0, atol=0)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return x + self.count * 2


def test_state_that_the_program_writes_is_no_constant():
    model = Counting()
    captured = clew.constant_folding(clew.trace(copy.deepcopy(model), (X,)))
    for _ in range(3):
        assert torch.equal(captured(X), model(X))


def modes(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.ones(4, 4) @ torch.ones(4, 4)
    return x @ y.float()


def test_modes_inside():
    passed(clew.constant_folding, modes, X)


def branch(x):
    if x.sum() > 0:
        return x + torch.arange(4.0) * 2
    return x


def test_inside_of_branches():
    captured = passed(clew.constant_folding, branch, X)
    body = captured.graph.find_nodes(op="call_function", target=clew.cond)[0].args[1]
    assert [node.target for node in body.find_nodes(op="get_attr")] == ["_folded0"]


def test_plain_values():
    captured = passed(clew.constant_folding, lambda x: x.reshape(torch.ones(2, 4).shape) * len(torch.ones(3)), X)
    assert "reshape" in targets(captured) and "shape" not in clew.to_text(captured.graph).replace("reshape", "")


def test_what_raises_raises_when_it_runs():
    graph = clew.Graph()
    x = graph.placeholder("x")
    bad = graph.call_function(torch.ones, (-1,))
    graph.output(graph.call_function(torch.add, (x, bad)))
    module = clew.constant_folding(clew.GraphModule({}, graph))
    with pytest.raises(RuntimeError):
        module(X)


@given(runnable_graphs())
@settings(max_examples=60, deadline=None)
def test_random_programs(drawn):
    graph, attributes, inputs = drawn
    module = owner_of(graph, attributes)
    expected = module(*inputs)
    clew.constant_folding(module)
    module.graph.lint()
    torch.testing.assert_close(module(*inputs), expected, rtol=0, atol=0, equal_nan=True)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor([1.0, 2.0]))

    def forward(self, x):
        return x * torch.sqrt(self.scale * 2)


def test_under_the_compiler():
    torch._dynamo.reset()
    x = torch.randn(3, 2)
    captured = clew.constant_folding(clew.trace(Scaled(), (x,)))
    assert "sqrt" not in captured.code
    compiled = torch.compile(captured, backend="eager")  # the guard on the buffer breaks the graph of the compiler
    torch.testing.assert_close(compiled(x), Scaled()(x))
    captured.scale.add_(1)
    with pytest.raises(clew.GuardError, match=r"self\.scale is unchanged"):
        compiled(x)
