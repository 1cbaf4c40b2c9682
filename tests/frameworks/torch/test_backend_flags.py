"""Flags of torch's back ends that a program sets for a while: ``with`` blocks of the graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import clew

X = torch.randn(1, 2, 3, 4)


def flags() -> tuple[bool, ...]:
    cuda = torch.backends.cuda
    others = torch.backends.cudnn.enabled, torch._C._get_mkldnn_enabled()
    return cuda.flash_sdp_enabled(), cuda.math_sdp_enabled(), *others


def attends(x: Tensor) -> Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(x, x, x)


@sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True)
def decorated(x: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x)


def without_cudnn(x: Tensor) -> Tensor:
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=False):
        y = x * 2
    return x + y


def branches(x: Tensor) -> Tensor:
    with torch.backends.mkldnn.flags(enabled=False):
        if x.sum() > 0:
            return x * 2
        return x - 1


def fails_inside(x: Tensor) -> Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return x @ x


@pytest.mark.parametrize("program", [attends, decorated, without_cudnn, branches])
def test_a_block_is_a_block_of_the_graph(program: Callable[[Tensor], Tensor]) -> None:
    before = flags()
    captured = clew.trace(program, (X,))
    assert "with torch" in captured.code and flags() == before
    for x in (X, -X.abs(), X.abs()):
        assert torch.equal(captured(x), program(x)) and flags() == before
    text, objects = clew.text_and_objects(captured.graph)
    assert clew.same_graph(clew.parse(text, objects=objects), captured.graph)
    assert clew.explain(captured).opaque == []


def test_the_flags_are_set_inside_and_only_there() -> None:
    seen = []

    class Seeing(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((func.__name__, flags()[0]))
            return func(*args, **(kwargs or {}))

    captured = clew.trace(attends, (X,))
    with Seeing():
        captured(X)
    assert ("scaled_dot_product_attention", False) in seen and flags()[0]


def test_flags_are_put_back_where_the_block_fails() -> None:
    before = flags()
    captured = clew.trace(fails_inside, (torch.ones(2, 2),))
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        captured(torch.ones(2, 3))
    assert flags() == before


def test_a_module_with_such_a_block_is_entered_and_saved(tmp_path: Path) -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return without_cudnn(self.inner(attends(x)))

    model = Outer()
    captured = clew.trace(model, (X,))
    assert "self.inner(" in captured.code
    clew.save(captured, tmp_path / "outer.clew")
    assert torch.equal(clew.load(tmp_path / "outer.clew")(X), model(X))


def test_a_setting_that_stays_is_refused_as_before() -> None:
    def stays(x: Tensor) -> Tensor:
        torch.backends.cudnn.enabled = False
        return x * 2

    before = flags()
    with pytest.raises(clew.CaptureError, match=r"setting torch.backends.cudnn.enabled"):
        clew.trace(stays, (X,))
    assert flags() == before
