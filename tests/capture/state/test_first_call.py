"""State that a first call settles: later calls find it settled, and a graph holds for them if nothing else differs."""

from __future__ import annotations

import copy

import pytest
import torch

import clew


class Settings:
    """What a module keeps in an object of its own."""

    def __init__(self) -> None:
        self.mode = None
        self.flag = False
        self.count = 5
        self.seen = torch.zeros(2)


class Settling(torch.nn.Module):
    """Settles its mode at the first call, and does one more thing then."""

    def __init__(self, more: str) -> None:
        super().__init__()
        self.more = more
        self.settings = Settings()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add one, in the mode that the first call has settled."""
        if self.settings.mode is None:
            self.settings.mode = "sum"
            if self.more == "count":
                self.settings.count = 0
            elif self.more == "tensor":
                self.settings.seen = x
            elif self.more == "flag":
                self.settings.flag = True
        return x + 1 if self.settings.mode == "sum" else x


def changed_by_user(module: torch.nn.Module) -> None:
    """Set what the first call has set to something else, but for the mode."""
    module.settings.count = 50
    module.settings.seen = torch.full((2,), 7.0)
    module.settings.flag = False


def test_one_settled_place_holds_for_later_calls() -> None:
    model = Settling("nothing")
    captured, twin = clew.trace(model, (torch.ones(2),)), copy.deepcopy(model)
    for size in (2, 3, 1):
        x = torch.rand(size)
        assert torch.equal(captured(x), twin(x)) and captured.settings.mode == twin.settings.mode == "sum"
    captured.settings.mode = twin.settings.mode = "none"
    with pytest.raises(clew.GuardError, match="first call"):
        captured(torch.ones(2))


@pytest.mark.parametrize("more", ["count", "tensor", "flag"])
def test_what_else_only_the_first_call_does_is_not_done_again(more: str) -> None:
    model = Settling(more)
    captured, twin = clew.trace(model, (torch.ones(2),)), copy.deepcopy(model)
    assert torch.equal(captured(torch.ones(2)), twin(torch.ones(2)))
    for module in (captured, twin):
        changed_by_user(module)
    twin(torch.rand(2))
    with pytest.raises(clew.GuardError, match="mode"):
        captured(torch.rand(2))
    assert captured.settings.count == twin.settings.count and captured.settings.flag == twin.settings.flag
    assert torch.equal(captured.settings.seen, twin.settings.seen)
