"""What the capture cannot follow stays one call, by itself: a function, or a module."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import torch
from torch import nn

import clew


def in_memory(x: torch.Tensor) -> Any:
    return memoryview(x.detach().numpy())


def smoothed(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(numpy.cumsum(numpy.frombuffer(in_memory(x), numpy.float32)))


def doubled(x: torch.Tensor) -> torch.Tensor:
    return smoothed(x) * 2 + helper(x)[0]


def helper(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    values = inner(x)
    return torch.as_tensor(values.sum()), len(values)


def inner(x: torch.Tensor) -> Any:
    return numpy.frombuffer(in_memory(x), numpy.float32) + numpy.ones(len(x), numpy.float32)


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        values = bytearray(memoryview(x.numpy()))
        return torch.frombuffer(values, dtype=torch.float32).view(-1, 2) * self.calls


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.counted = Counted()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.counted(x) + 1)


def test_functions_that_look_at_memory_stay_calls() -> None:
    captured = clew.trace(doubled, (torch.ones(3),))
    targets = [node.target for node in captured.graph.nodes]
    assert smoothed in targets and inner in targets and helper not in targets and in_memory not in targets
    for size in (3, 5):
        x = torch.rand(size)
        assert torch.equal(captured(x), doubled(x))
    assert [node.meta["opaque"] for node in captured.graph.nodes if node.target is smoothed] == [
        "the capture cannot follow it"
    ]


def test_a_module_that_looks_at_memory_stays_a_call_and_keeps_its_state() -> None:
    model, twin = Model(), Model()
    twin.load_state_dict(model.state_dict())
    captured = clew.trace(model, (torch.ones(3, 2),))
    assert model.counted.calls == 0
    assert [node.target for node in captured.graph.nodes if node.op == "call_module"] == ["counted", "layer"]
    for size in (3, 1):
        x = torch.rand(size, 2)
        torch.testing.assert_close(captured(x), twin(x))
    assert captured.counted.calls == 2


def test_islands_can_be_refused() -> None:
    with pytest.raises(clew.CaptureError, match="numpy"):
        clew.trace(doubled, (torch.ones(3),), opaque="error")


def test_the_program_itself_is_no_island() -> None:
    with pytest.raises(clew.CaptureError, match="numpy"):
        clew.trace(lambda x: str(x.numpy()), (torch.ones(3),))
