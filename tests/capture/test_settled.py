"""State that the first call sets and all later ones find so: one graph holds before and after."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from clew.errors import GuardError


class Classifier(nn.Module):
    """Tells from its first labels what kind of problem it has, as the classifiers of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(problem=None, width=4)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        logits = self.head(x)
        if self.config.problem is None:
            self.config.problem = "one" if labels.dtype == torch.long else "many"
        if self.config.problem == "one":
            return nn.functional.cross_entropy(logits, labels)
        return nn.functional.binary_cross_entropy_with_logits(logits, labels)


class Starting(nn.Module):
    """Does something else in its first call."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(stage="first")

    def forward(self, x: Tensor) -> Tensor:
        if self.config.stage == "first":
            self.config.stage = "later"
            return x * 2
        return x * 3


def labels_for(rows: int, many: bool) -> Tensor:
    return torch.rand(rows, 3) if many else torch.arange(rows) % 3


@pytest.mark.parametrize("many", [False, True])
def test_the_kind_of_problem_is_told_once(many: bool) -> None:
    torch.manual_seed(0)
    module, twin = Classifier(), Classifier()
    twin.load_state_dict(module.state_dict())
    captured = clew.trace(twin, args=(torch.ones(2, 4), labels_for(2, many)))
    assert twin.config.problem is None
    for rows in (2, 1, 5):
        x = torch.randn(rows, 4)
        labels = labels_for(rows, many)
        assert torch.equal(captured(x, labels), module(x, labels))
        assert captured.config.problem == module.config.problem
    captured.config.problem = "none of them"
    with pytest.raises(GuardError, match="problem"):
        captured(torch.ones(2, 4), labels_for(2, many))


def test_a_first_call_that_does_something_else() -> None:
    captured = clew.trace(Starting(), args=(torch.ones(2),))
    assert torch.equal(captured(torch.ones(3)), torch.full((3,), 2.0))
    with pytest.raises(GuardError, match="stage"):
        captured(torch.ones(3))


def test_a_function_around_an_object_that_settles() -> None:
    settings: Any = SimpleNamespace(scale="unset")

    def program(x: Tensor) -> Tensor:
        if settings.scale == "unset":
            settings.scale = "double"
        return x * 2 if settings.scale == "double" else x

    captured = clew.trace(program, args=(torch.ones(2),))
    for _ in range(2):
        assert torch.equal(captured(torch.ones(3)), torch.full((3,), 2.0))
        assert settings.scale == "double"
    settings.scale = "single"
    with pytest.raises(GuardError):
        captured(torch.ones(3))
