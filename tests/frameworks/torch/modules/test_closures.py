"""Functions that close over modules, or name them as global variables: their capture reads parameters and modes at each
call, works on the modules themselves, and refuses where a module is not what it was."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew

ROWS = torch.linspace(-1, 1, 12).reshape(4, 3)
SHARED = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.second = nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 3)
        self.scale, self.calls = 2.0, 0

    def forward(self, x):
        self.calls += 1
        if self.training:
            x = x + 1
        return F.dropout(self.second(self.drop(self.first(x))), 0.3, self.training) * self.scale


def closing_over(model):
    def predict(x):
        return torch.softmax(model(x), -1)

    return predict


def by_name(x):
    return SHARED[0](x) * 2 + helper(x)


def helper(x):
    return SHARED(x)


def alike(one, other, x=ROWS, seed=0):
    """Both give the same from the same random state, and leave the same one behind."""
    found = []
    for program in (one, other):
        torch.manual_seed(seed)
        found.append((program(x), torch.get_rng_state()))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize("mode", [True, False])
def test_the_mode_is_that_of_the_module_at_the_call(mode):
    model, twin = Net().train(mode), Net()
    twin.load_state_dict(model.state_dict())
    program, captured = closing_over(twin), clew.trace(closing_over(model), (ROWS,))
    for now in (mode, not mode, mode):
        twin.train(now)
        model.train(now)
        alike(program, captured)
    model.drop.train(True)
    twin.drop.train(True)
    alike(program, captured)
    assert not any("training" in guard.expression for guard in captured.guards)
    assert model.calls == twin.calls


def test_the_code_calls_modules_by_the_names_of_variables():
    captured = clew.trace(by_name, (ROWS,))
    assert "SHARED[0](x) * 2" in captured.code
    assert "self." not in captured.code
    assert [node.target for node in captured.graph.nodes if node.op == "call_module"] == [
        "SHARED.0", "SHARED.0", "SHARED.1", "SHARED.2",
    ]  # fmt: skip


def test_a_local_variable_of_the_same_name_is_another():
    model = nn.Linear(3, 3)

    def double(rows):
        model = rows * 2
        return model + 1

    captured = clew.trace(lambda x: double(model(x)) + model(x), (ROWS,))
    assert torch.equal(captured(ROWS), (model(ROWS) * 2 + 1) + model(ROWS))
    assert "model = " not in captured.code


def test_buffers_of_the_module_itself_are_written():
    captured = clew.trace(by_name, (ROWS,))
    before, expected = copy.deepcopy(SHARED.state_dict()), copy.deepcopy(SHARED)
    captured(ROWS)
    expected[0](ROWS)
    expected(ROWS)
    assert torch.equal(SHARED[1].running_mean, expected[1].running_mean)
    assert not torch.equal(SHARED[1].running_mean, before["1.running_mean"])


def test_parameters_are_those_of_the_call():
    model = Net().eval()
    captured = clew.trace(closing_over(model), (ROWS,))
    model.first.weight = nn.Parameter(torch.ones(4, 3))
    alike(closing_over(model), captured)
    model.double()
    alike(closing_over(model), captured, ROWS.double())
    loss = captured(ROWS.double())[:, 0].sum()
    loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_copy_works_on_the_same_module():
    model = Net().eval()
    captured = copy.deepcopy(clew.trace(closing_over(model), (ROWS,)))
    with torch.no_grad():
        model.second.weight.zero_()
    alike(closing_over(model), captured)
    model.drop.p = 0.1
    with pytest.raises(clew.GuardError, match="parts and settings of model"):
        captured(ROWS)


def replace_part(model):
    model.drop = nn.Identity()


def hook(model):
    model.first.register_forward_hook(lambda part, args, result: result * 2)


def set_scale(model):
    model.scale = 3.0


def test_a_number_of_the_module_is_read_at_each_call():
    model = Net().eval()
    program = closing_over(model)
    captured = clew.trace(program, (ROWS,))
    set_scale(model)
    assert torch.equal(captured(ROWS), program(ROWS))


@pytest.mark.parametrize("change", [replace_part, hook])
def test_other_parts_and_hooks_are_refused(change):
    model = Net().eval()
    captured = clew.trace(closing_over(model), (ROWS,))
    captured(ROWS)
    change(model)
    with pytest.raises(clew.GuardError):
        captured(ROWS)


def test_another_module_in_the_variable_is_refused():
    model = nn.Linear(3, 3)

    def program(x):
        return model(x) + 1

    captured = clew.trace(program, (ROWS,))
    model = nn.Linear(3, 3)
    with pytest.raises(clew.GuardError, match="model"):
        captured(ROWS)


def test_a_function_may_switch_the_module():
    model = Net()

    def program(x):
        model.eval()
        y = model(x)
        model.train()
        return y + model(x)

    captured = clew.trace(program, (ROWS,))
    model.eval()
    alike(program, captured)
    assert model.training
    model.eval()
    captured(ROWS)
    assert model.training


def test_a_training_step_of_a_module_around():
    def build():
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return model, step

    (model, step), (twin, other) = build(), build()
    captured = clew.trace(other, (ROWS,))
    for seed in range(3):
        alike(step, captured, seed=seed)
    assert all(map(torch.equal, model.state_dict().values(), twin.state_dict().values()))


def test_a_lazy_graph_follows_the_mode_with_one_capture():
    model = Net()
    lazy = clew.trace(closing_over(model))
    for mode in (True, False, True):
        model.train(mode)
        alike(closing_over(model), lazy)
    assert len(lazy.captures) == 1
