"""Sizes that layers decide, and sizes inside of branches, are guarded at the entrance, and rightly so."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from clew.errors import GuardError
from clew.frameworks.torch.entry_facts import common_size, windows


def _computed(captured: Any) -> list[str]:
    return [str(one) for one in captured.guards if one.kind == "computed"]


class Windows(nn.Module):
    """As vision models that pad what does not fit into windows."""

    def __init__(self, stride: int = 2) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, stride=stride, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        height, width = y.shape[2:]
        if height % 4 > 0 or width % 4 > 0:
            y = nn.functional.pad(y, (0, -width % 4, 0, -height % 4))
        return y.sum((2, 3)) * y.shape[2]


@pytest.mark.parametrize("size", [8, 15, 16, 31, 17, 12])
def test_what_a_convolution_gives_is_guarded_before_it_runs(size: int) -> None:
    model = Windows()
    captured = clew.trace(model, (torch.randn(2, 3, 16, 16),), control_flow="guard")
    assert not _computed(captured)
    assert [one.kind for one in captured.guards if "% 4" in str(one)] == ["size", "size"]
    x = torch.randn(1, 3, size, 16)
    if (size + 1) // 2 % 4:
        with pytest.raises(GuardError, match="% 4"):
            captured(x)
    else:
        assert torch.allclose(captured(x), model(x))


def test_settings_of_the_layer_count_as_they_are_at_the_call() -> None:
    model, x = Windows(), torch.randn(2, 3, 16, 16)
    captured = clew.trace(model, (x,), control_flow="guard")
    captured.conv.stride = model.conv.stride = (1, 1)
    assert torch.allclose(captured(x), model(x))
    captured.conv.stride = (3, 3)  # six windows
    with pytest.raises(GuardError, match="% 4"):
        captured(x)


@pytest.mark.parametrize("settings", [(3, 1, 0, 1), (3, 2, 1, 1), (4, 4, 0, 1), (2, 3, 1, 2), (1, 1, 0, 1)])
def test_windows_are_counted_as_torch_counts_them(settings: tuple[int, int, int, int]) -> None:
    kernel, stride, padding, dilation = settings
    layer = nn.Conv1d(1, 1, kernel, stride, padding, dilation)
    for size in range(5, 20):
        found = windows(size, layer.weight.shape, layer.stride, layer.padding, layer.dilation, 0)
        assert found == layer(torch.ones(1, size)).shape[-1]
    assert windows(9, layer.weight.shape, layer.stride, "same", layer.dilation, 0) == -1


def test_of_two_sizes_the_one_that_is_not_one_counts() -> None:
    for left, right in ((1, 5), (5, 1), (4, 4), (0, 1), (1, 0), (1, 1)):
        assert common_size(left, right) == torch.broadcast_shapes((left,), (right,))[0]


def test_sizes_inside_of_a_branch_are_those_of_what_is_handed_to_it() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        if y.sum() > 0:
            rows = (x * 2).transpose(0, 1).reshape(x.shape[1], -1)
            x = rows.view(rows.shape[0], x.shape[0]).t()
        return x.reshape(x.shape[0] * x.shape[1])

    captured = clew.trace(program, (torch.randn(2, 3), torch.ones(1)))
    for given in ((torch.randn(4, 5), torch.ones(2)), (torch.randn(1, 7), -torch.ones(1))):
        assert torch.equal(captured(*given), program(*given))
    assert not _computed(captured)


def test_the_number_of_items_follows_from_the_sizes() -> None:
    def program(x: Tensor) -> Tensor:
        y = torch.cat([torch.tensor([]), x], dim=-1)
        return y * y.numel() if y.shape[0] > 1 and y.numel() > 0 else x

    captured = clew.trace(program, (torch.randn(2, 3),), control_flow="guard")
    assert not _computed(captured)
    assert torch.equal(captured(torch.ones(4, 5)), program(torch.ones(4, 5)))
    with pytest.raises(GuardError):
        captured(torch.ones(2, 0))


def test_parts_of_a_product_with_a_weight_are_as_many_as_the_weight_says() -> None:
    class Split(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.lin = nn.Linear(4, width)

        def forward(self, x: Tensor) -> Tensor:
            assert x.shape[0] > 1
            first, second, third = self.lin(x).chunk(3, -1)
            return first + second * third

    captured = clew.trace(Split(12), (torch.randn(2, 4),), control_flow="guard")
    assert not _computed(captured)
    assert "(self.lin.weight.shape[0] % 3) == 0" in [str(one) for one in captured.guards]
    wider = Split(24)
    captured.lin = wider.lin
    x = torch.randn(5, 4)
    assert torch.allclose(captured(x), wider(x))
    captured.lin = nn.Linear(4, 11)
    with pytest.raises(GuardError, match="% 3"):
        captured(x)


def test_sizes_that_are_left_to_a_view() -> None:
    def program(x: Tensor, mask: Tensor) -> Tensor:
        seen = mask.view(x.shape[0], -1)
        return x * seen.sum() if seen.shape[1] > 3 else x

    captured = clew.trace(program, (torch.randn(2, 4), torch.ones(2, 4)), control_flow="guard")
    assert not _computed(captured)
    for rows, shape in [(3, (3, 5)), (3, (1, 15)), (1, (4, 1))]:
        x, mask = torch.randn(rows, 4), torch.ones(*shape)
        assert torch.equal(captured(x, mask), program(x, mask))
    with pytest.raises(GuardError):
        captured(torch.randn(2, 4), torch.ones(2, 3))
    for rows in (0, 3):  # which the view itself cannot do
        with pytest.raises((GuardError, RuntimeError)):
            captured(torch.randn(rows, 4), torch.ones(2, 4))


def test_sizes_that_layers_decide_are_told_after_a_write() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv1d(1, 2, 2, stride=2)

        def forward(self, x: Tensor) -> Tensor:
            x = x * 1
            x.add_(1)
            y = self.conv(x)
            return y * 2 if y.shape[2] > 1 else y

    model = Model()
    captured = clew.trace(model, (torch.randn(1, 1, 8),), control_flow="guard")
    assert not _computed(captured)
    assert torch.equal(captured(x := torch.randn(1, 1, 4)), model(x))
    with pytest.raises(GuardError):
        captured(torch.randn(1, 1, 2))
