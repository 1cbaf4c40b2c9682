"""Modules that torch.jit has compiled stay one call; a capture leaves their state as it was."""

import pytest
import torch
from torch import nn

import clew
from clew.errors import CaptureError


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(2))
        self.calls = 0

    def forward(self, x):
        self.sum = self.sum + x
        self.calls += 1
        return self.sum * self.calls


class Around(nn.Module):
    def __init__(self, part):
        super().__init__()
        self.part = part

    def forward(self, x):
        return self.part(x) + 1


def function_around(part):
    return lambda x: part(x) + 1


@pytest.fixture
def compiled():
    return lambda: torch.jit.script(nn.Sequential(Counting(), nn.Linear(2, 2)))


@pytest.mark.parametrize("around", [Around, function_around])
def test_state_is_left_alone_by_the_capture_and_written_by_the_graph(around, compiled):
    part, x = compiled(), torch.ones(2)
    other = torch.jit.script(nn.Sequential(Counting(), nn.Linear(2, 2)))
    other.load_state_dict(part.state_dict())
    captured = clew.trace(around(part), (x,))
    assert part[0].calls == 0 and not part[0].sum.any()
    assert [node.op for node in captured.graph.nodes].count("call_module") == 1
    for _ in range(3):
        torch.testing.assert_close(captured(x), around(other)(x))


def test_the_mode_of_a_compiled_module_is_guarded(compiled):
    part, x = compiled(), torch.ones(2)
    captured = clew.trace(function_around(part), (x,))
    part.eval()
    with pytest.raises(clew.GuardError, match=r"\.training, which does not hold"):
        captured(x)


def test_the_inside_is_not_captured(compiled):
    part = compiled()
    with pytest.raises(CaptureError, match=r"(?s)Sequential is compiled by torch.jit.*from_torchscript") as found:
        clew.trace(part, (torch.ones(2),))
    assert part[0].calls == 0, found
    with pytest.raises(CaptureError, match="Counting is compiled by torch.jit"):
        clew.trace(Around(torch.jit.script(Counting())), (torch.ones(2),), leaves="none")
