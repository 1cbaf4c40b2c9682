"""A captured function that is interpreted node by node keeps the promise of its call: a failed guard leaves no mark."""

from __future__ import annotations

import pytest
import torch

import clew
from clew.errors import CaptureError, GuardError


def test_a_failed_guard_leaves_no_mark_in_the_interpreter() -> None:
    kept = torch.zeros(2)

    def f(x: torch.Tensor) -> torch.Tensor:
        kept.add_(x)
        return x * len([0] * int(x.sum().item()))

    captured = clew.trace(f, args=(torch.ones(2),), control_flow="guard")
    with pytest.raises(GuardError):
        clew.Interpreter(captured).run(torch.full((2,), 3.0))
    assert kept.tolist() == [0, 0]
    assert clew.Interpreter(captured).run(torch.ones(2)).tolist() == [2, 2] and kept.tolist() == [1, 1]


class Block(torch.nn.Module):
    """A part whose inside is captured."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.scale = torch.nn.Linear(2, 2), 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * self.scale


class Model(torch.nn.Module):
    """A module with such a part."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.shift = Block(), 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x) + self.shift


def test_what_a_captured_module_would_not_notice_is_refused() -> None:
    captured = clew.trace(Model(), args=(torch.ones(2),))
    x, block = torch.ones(2), captured.block
    before = captured(x)
    with pytest.raises(CaptureError, match="a hook is put on a part"):
        block.register_forward_hook(lambda module, args, result: result + 1)
    for owner, name in ((block, "scale"), (captured, "shift"), (block, "forward")):
        with pytest.raises(CaptureError, match="captured module"):
            setattr(owner, name, 5.0)
    assert torch.equal(captured(x), before)
    block.layer.register_forward_hook(lambda module, args, result: result + 1)
    assert torch.equal(captured(x), before + 2)


def test_a_lazy_graph_sets_attributes_of_its_original() -> None:
    model = Model()
    lazy = clew.trace(model)
    x = torch.ones(2)
    before = lazy(x)
    lazy.shift = 5.0
    assert model.shift == 5.0 and torch.equal(lazy(x), before + 4)
