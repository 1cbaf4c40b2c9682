"""Attributes that captured programs put on tensors."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import clew
from clew.errors import GuardError


def _on_argument(x, name):
    setattr(x, name, x.sum() * 2)
    x.length = x.shape[0]
    return x + 4


def _on_result(x):
    y = x * 2
    y.length, y.parts = x.shape[0], [x.sum(), "sum"]
    return {"y": y, "again": y}


def test_attributes_of_an_argument():
    x = torch.arange(3.0)
    graph = clew.trace(_on_argument, (x, "total"))
    assert not vars(x)
    one, other = torch.arange(5.0), torch.arange(5.0)
    assert torch.equal(graph(one, "total"), _on_argument(other, "total"))
    assert one.length == other.length == 5 and torch.equal(one.total, other.total)
    assert torch.equal(graph(one, "total"), _on_argument(other, "total"))  # nobody asks for what is there already
    assert one.length == other.length == 5 and torch.equal(one.total, other.total)


def test_attributes_of_a_result():
    graph = clew.trace(_on_result, (torch.arange(3.0),))
    result = graph(torch.arange(4.0))
    assert result["y"] is result["again"] and result["y"].length == 4
    assert torch.equal(result["y"].parts[0], torch.tensor(6.0)) and result["y"].parts[1] == "sum"


def test_attributes_of_a_parameter():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x):
            self.weight.norm_of_x = x.norm()
            return x * self.weight

    model = Model()
    graph = clew.trace(model, (torch.ones(3),))
    assert not hasattr(model.weight, "norm_of_x")
    x = torch.arange(3.0)
    assert torch.equal(graph(x), x * model.weight)
    assert torch.equal(model.weight.norm_of_x, x.norm())


def test_attributes_of_a_tensor_around_the_program():
    weight = torch.ones(3)
    weight.scale = 2.0

    def program(x):
        return x * weight * weight.scale

    graph = clew.trace(program, (torch.ones(3),))
    assert torch.equal(graph(torch.ones(3)), torch.full((3,), 2.0))
    weight.scale = 3.0
    with pytest.raises(GuardError, match="attributes of weight"):
        graph(torch.ones(3))


def test_a_first_call_keeps_what_was_put():
    lazy = clew.trace(_on_argument)
    for count in (3, 3, 6):
        x = torch.arange(float(count))
        lazy(x, "total")
        assert x.length == count and type(x.length) is int and torch.equal(x.total, x.sum() * 2)


def test_branches_that_put_attributes():
    def program(x):
        y = x + 1
        if x.sum() > 0:
            y.way = "plus"
        else:
            y.way = "minus"
        return y

    graph = clew.trace(program, (torch.ones(2),))
    for x in (torch.ones(2), -torch.ones(2), torch.ones(3)):
        try:
            assert graph(x).way == program(x).way
        except GuardError:
            continue


def test_guards_name_the_attributes_that_the_program_asks_for():
    def program(x):
        try:
            return x * x.scale
        except AttributeError:
            return x + 1

    scaled = torch.ones(2)
    scaled.scale, scaled.other = 3, "not asked for"
    captured = clew.trace(program, (scaled,))
    assert "x.scale == 3" in str(captured.guards) and "other" not in str(captured.guards)
    plain = clew.trace(program, (torch.ones(2),))
    with pytest.raises(GuardError, match=r"not hasattr\(x, 'scale'\)"):
        plain(scaled)
    del scaled.scale
    assert torch.equal(plain(scaled), torch.full((2,), 2.0))
