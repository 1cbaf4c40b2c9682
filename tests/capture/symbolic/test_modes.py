"""no_grad, enable_grad, inference mode and autocast inside a traced program are a part of its graph."""

import pickle

import pytest
import torch
from torch import nn

import clew

X = torch.rand(3, 3)


class SwitchesGradients(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            first = self.linear(x)
            with torch.enable_grad():
                second = self.linear(x)
        third = self.linear(x)
        with torch.set_grad_enabled(False):
            fourth = self.linear(x)
        return [first, second, third, fourth]


@pytest.mark.parametrize("ambient", [True, False])
@pytest.mark.parametrize("traced_under", [True, False])
def test_gradients_are_switched_as_in_the_program(ambient, traced_under):
    module = SwitchesGradients()
    with torch.set_grad_enabled(traced_under):
        traced = clew.symbolic_trace(module)
    with torch.set_grad_enabled(ambient):
        wanted = [value.requires_grad for value in module(X)]
        assert [value.requires_grad for value in traced(X)] == wanted
        assert torch.is_grad_enabled() is ambient
        assert [value.requires_grad for value in clew.Interpreter(traced).run(X)] == wanted
        assert torch.is_grad_enabled() is ambient


@torch.no_grad()
def decorated(x):
    return x * 2


def test_a_decorated_function():
    assert clew.symbolic_trace(decorated)(X.clone().requires_grad_()).requires_grad is False


class SwitchesModes(SwitchesGradients):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            first = self.linear(x)
        with torch.inference_mode():
            second = x + 1
        return first, second, self.linear(x)


def test_autocast_and_inference_mode():
    traced = clew.symbolic_trace(SwitchesModes())
    for module in (traced, clew.symbolic_trace(traced), pickle.loads(pickle.dumps(traced))):
        first, second, third = module(X)
        assert (first.dtype, third.dtype) == (torch.bfloat16, torch.float32)
        assert second.is_inference() and not third.is_inference()
    assert not torch.is_autocast_enabled("cpu") and not torch.is_inference_mode_enabled()


def test_tracing_again_gives_the_same_graph():
    for module in (SwitchesGradients(), SwitchesModes()):
        traced = clew.symbolic_trace(module)
        assert clew.symbolic_trace(traced).code == traced.code


def test_dead_code_elimination_keeps_the_switches():
    traced = clew.symbolic_trace(SwitchesGradients())
    before = len(traced.graph.nodes)
    traced.graph.eliminate_dead_code()
    assert len(traced.graph.nodes) == before


def test_a_failing_trace_leaves_all_modes():
    def fails(x):
        with torch.no_grad(), torch.autocast("cpu"), torch.inference_mode():
            raise KeyError("stop")

    before = (torch.autocast.__enter__, torch.inference_mode.__exit__)
    with pytest.raises(KeyError):
        clew.symbolic_trace(fails)
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu") and not torch.is_inference_mode_enabled()
    assert before == (torch.autocast.__enter__, torch.inference_mode.__exit__)
