"""Usual calls are recorded on a path of their own, all others on a general one: both record the same."""

import re
import weakref

import pytest
import torch
from torch.nn import functional

import clew
from clew.capture.bytecode.try_blocks import attempt, attempt_method, outcome_of, outcome_of_method
from clew.capture.patches import Patches
from clew.frameworks.torch import recorder
from clew.frameworks.torch.calls.dispatch import USUAL, traits_of
from clew.ir.arguments import all_nodes

MATRIX = torch.tensor([[1.0, -2.0], [3.0, 4.0]])


def operators(x):
    y = 2 - x
    z = y * x + 1
    return (z @ x)[0] / 2


def named_arguments(x):
    return torch.softmax(x, dim=-1).mean(dim=0, keepdim=True).expand(x.shape[0], -1)


def sizes(x):
    n = x.shape[0]
    return x.view(n * 2).reshape(2, n) + torch.zeros(n, n)


def same_object(x):
    y = x.contiguous()
    return y + x.to(torch.float32)


def writes(x):
    y = x.clone()
    y.add_(1)
    return torch.add(y, 1, out=torch.empty_like(y))


def switch(x):
    return functional.dropout(x, 0.5, True) + torch.sum(x, 0, True)


def parts(x):
    first, second = torch.split(x, 1)
    values, places = torch.sort(x, dim=1)
    return torch.cat([first, second]) + values + places.squeeze()


def guarded(x):
    try:
        y = torch.linalg.cholesky(x @ x.T) + x.relu()
    except torch.linalg.LinAlgError:
        y = x
    return y


def at_constants(x):
    return x + torch.arange(4.0).view(2, 2).exp()


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        self.scale = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        try:
            x = self.inner(x) * self.scale
        except RuntimeError:
            x = x - 1
        return torch.tanh(x)


PROGRAMS = [operators, named_arguments, sizes, same_object, writes, switch, parts, guarded, at_constants]


def _spelled(value):
    """Arguments as text; graphs among them, whose nodes are described by themselves, without their addresses."""
    return re.sub(r"0x[0-9a-f]+", "", str(value))


def described(captured):
    """All that a capture says of its nodes."""
    return [
        (node.name, node.op, node.target, _spelled((node.args, node.kwargs)), node.source, node.value_type, node.meta)
        for node in all_nodes(captured.graph)
    ]


@pytest.mark.parametrize("program", [*PROGRAMS, Block()], ids=[*(one.__name__ for one in PROGRAMS), "module"])
def test_both_paths_record_the_same(program, monkeypatch):
    clew.trace(program, args=(MATRIX,))  # functions are met for the first time
    quick = described(clew.trace(program, args=(MATRIX,)))
    monkeypatch.setattr(recorder, "USUAL", {})
    assert quick == described(clew.trace(program, args=(MATRIX,)))


def test_which_functions_are_usual():
    for function in (torch.relu, torch.Tensor.add, torch.Tensor.view, torch.cat):
        assert traits_of(function).is_usual
        assert function in USUAL
    unusual = (torch.Tensor.add_, torch.Tensor.item, torch.squeeze, torch.split, functional.relu, torch.Tensor.size)
    assert not any(traits_of(function).is_usual for function in unusual)


def test_an_except_around_a_module_is_seen_inside_of_it():
    def program(x):
        try:
            return block(x)
        except ValueError:
            return x

    class Inner(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x + 1).sum()

    block = Inner()
    tried = (attempt, attempt_method, outcome_of, outcome_of_method)
    captured = clew.trace(program, args=(MATRIX,))
    assert sum(node.target in tried for node in all_nodes(captured.graph)) == 3
    plain = clew.trace(block, args=(MATRIX,))
    assert not any(node.target in tried for node in all_nodes(plain.graph))


def test_nothing_that_was_computed_on_the_way_is_kept(monkeypatch):
    made, most = [], 0
    original = recorder.RecordingMode.__torch_function__

    def counting(self, func, types, args=(), kwargs=None):
        nonlocal most
        value = original(self, func, types, args, kwargs)
        if isinstance(value, torch.Tensor):
            made.append(weakref.ref(value))
            most = max(most, sum(one() is not None for one in made))
        return value

    monkeypatch.setattr(recorder.RecordingMode, "__torch_function__", counting)

    def program(x):
        for _ in range(20):
            x = torch.relu(x + 1) * 2 - x.mean()
        return x

    captured = clew.trace(program, args=(MATRIX,))
    assert len(made) == 100
    assert most == 4  # the variable, two operands, and what a call gives
    assert captured(MATRIX).equal(program(MATRIX))


def test_a_function_is_led_elsewhere_by_its_code_and_back():
    def add(left, right=1, *, more=0):
        return left + right + more

    held, code, names = add, add.__code__, set(globals())
    with Patches() as patches:
        patches.in_body(add, lambda original: lambda *args, **kwargs: ("led", original(*args, **kwargs)))
        assert held(1, more=2) == ("led", 4)
    assert add(1) == 2
    assert add.__code__ is code
    assert set(globals()) == names
