"""Dead code: what nobody uses goes, with writes that nobody sees; what somebody sees stays."""

import pytest
import torch
from hypothesis import given, settings
from torch import nn

import clew
from tests.passes.programs import lines, owner_of, passed, targets
from tests.strategies import runnable_graphs

X = torch.rand(3, 3)


def private_writes(x):
    table = torch.zeros(3, 3)
    table.add_(x)
    table[0] = 1.0
    table += 1
    row = table[1]
    row.mul_(2)
    return x.relu()


def test_golden():
    captured = passed(clew.dead_code, private_writes, X)
    assert lines(captured) == ["%relu: f32[3, 3] = method relu(%x)", "return %relu"]


def seen_by_result(x):
    table = torch.zeros(3, 3)
    row = table[0]
    row.add_(1)
    return table + x


def seen_by_caller(x):
    x[0].add_(1)
    return x.sum()


def seen_in_buffer(x):
    table = torch.zeros(3)
    table.add_(1)
    x.copy_(table)


def draws(x):
    torch.zeros(3).normal_()
    torch.rand(3)
    return x + torch.rand(3)


@pytest.mark.parametrize("program", [seen_by_result, seen_by_caller, seen_in_buffer])
def test_what_somebody_sees_stays(program):
    before = len(clew.trace(program, (X.clone(),)).graph.nodes)
    captured = clew.trace(program, (X.clone(),))
    clew.dead_code(captured)
    assert len(captured.graph.nodes) == before
    ours, theirs = X.clone(), X.clone()
    torch.testing.assert_close(captured(ours), program(theirs), rtol=0, atol=0)
    assert torch.equal(ours, theirs)


def test_random_numbers_stay():
    captured = clew.trace(draws, (X,))
    clew.dead_code(captured)
    torch.manual_seed(0)
    ours = captured(X)
    torch.manual_seed(0)
    assert torch.equal(ours, draws(X))


class Auxiliary(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 3)
        self.other = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

    def forward(self, x):
        self.other(x)
        return self.head(x)


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_dead_batch_norm_goes_with_its_mode_guarded(symbolic):
    captured = passed(clew.dead_code, Auxiliary().eval(), X, symbolic=symbolic)
    assert targets(captured) == ["head"]
    assert {str(one) for one in captured.guards if one.kind == "mode"} == {
        "not self.other[1].training",
        "not self.other[2].training",
    }
    captured.train()
    with pytest.raises(clew.GuardError, match=r"not self\.other\[1\]\.training"):
        captured(X)
    captured.eval()
    captured(X)


def test_a_batch_norm_in_training_stays():
    captured = clew.trace(Auxiliary(), (X,))
    clew.dead_code(captured)
    assert targets(captured) == ["other.0", "other.1", "other.2", "head"]
    captured = clew.trace(Auxiliary().eval(), (X,))
    clew.dead_code(captured, modes=False)
    assert targets(captured) == ["other.0", "other.1", "other.2", "head"]


def test_a_hooked_layer_stays():
    model = Auxiliary().eval()
    model.other[1].register_forward_hook(lambda *_: None)
    captured = clew.symbolic_trace(model)
    clew.dead_code(captured)
    assert "other.1" in targets(captured)


def branched(x):
    if x.sum() > 0:
        table = torch.zeros(3)
        table.add_(1)
        x = x * 2
    return x


def test_inside_of_branches():
    captured = passed(clew.dead_code, branched, X)
    body = captured.graph.find_nodes(op="call_function", target=clew.cond)[0].args[1]
    assert [node.op for node in body.nodes] == ["placeholder", "call_function", "output"]


def test_a_predicate_decides_alone():
    captured = clew.symbolic_trace(private_writes)
    clew.dead_code(captured, lambda node: node.op in ("placeholder", "output"))
    assert targets(captured) == ["relu"]


@given(runnable_graphs())
@settings(max_examples=60, deadline=None)
def test_random_programs(drawn):
    graph, attributes, inputs = drawn
    module = owner_of(graph, attributes)
    expected = module(*inputs)
    clew.dead_code(module)
    module.graph.lint()
    torch.testing.assert_close(module(*inputs), expected, rtol=0, atol=0, equal_nan=True)
