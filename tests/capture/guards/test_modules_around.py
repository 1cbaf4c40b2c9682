"""Modules that variables around a program hold are guarded if code that ran names them."""

from __future__ import annotations

import pickle

import pytest
import torch

import clew
from clew.errors import GuardError

LAYER = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)).eval()


class Net(torch.nn.Module):
    """Has a method that uses a module of its file, and that ``forward`` does not call."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 3)

    def head(self, x: torch.Tensor) -> torch.Tensor:
        return LAYER(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) + 1


class Headed(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return LAYER(self.first(x))


class Chosen(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return LAYERS[0](self.first(x))


LAYERS = (LAYER,)


def subjects(captured: clew.GraphModule) -> str:
    return "\n".join(guard.label or str(guard) for guard in captured.guards)


@pytest.fixture(autouse=True)
def in_evaluation():
    yield
    LAYER.eval()


def test_a_module_that_no_code_which_ran_names_is_not_guarded() -> None:
    x = torch.randn(2, 3)
    net = Net()
    captured = clew.trace(net, (x,))
    assert "LAYER" not in subjects(captured) and "Sequential" not in subjects(captured)
    LAYER.train()
    assert torch.equal(captured(x), net(x))
    assert torch.equal(pickle.loads(pickle.dumps(captured))(x), net(x))


@pytest.mark.parametrize("kind", [Headed, Chosen])
def test_one_that_was_used_is_guarded(kind: type[Net]) -> None:
    x = torch.randn(2, 3)
    net = kind()
    captured = clew.trace(net, (x,))
    assert torch.equal(captured(x), net(x))
    LAYER.train()
    with pytest.raises(GuardError, match="training"):
        captured(x)


def test_attributes_are_no_variables_of_the_same_name() -> None:
    """What a class calls its attributes says nothing about variables of that name."""
    captured = clew.trace(WithAttribute().eval(), (torch.randn(2, 3),))
    assert [guard.kind for guard in captured.guards] == ["type"]


part = torch.nn.Linear(3, 3)


class WithAttribute(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x) + 1
