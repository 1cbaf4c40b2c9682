"""The formulas of arithmetic: each operation takes what one counts by hand, and none is free for want of a formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import clew
from clew.tools.costs import TABLE, operation_name


def t(*sizes: int) -> torch.Tensor:
    return torch.rand(sizes)


def image() -> torch.Tensor:
    return t(2, 4, 8, 8)  # 512 elements


Case = tuple[str, Callable[..., Any], tuple[Any, ...], int, int]

CASES: list[Case] = [
    # name, program, inputs, multiply-adds, other operations
    ("add", lambda x, y: x + y, (t(3, 5), t(3, 5)), 0, 15),
    ("add of a row", lambda x, y: x + y, (t(3, 5), t(5)), 0, 15),
    ("add with alpha", lambda x, y: torch.add(x, y, alpha=2), (t(3, 5), t(3, 5)), 0, 30),
    ("exp", torch.exp, (t(3, 5),), 0, 15),
    ("in place", lambda x: x.clone().mul_(2), (t(3, 5),), 0, 15),
    ("sigmoid: neg, exp, add, div", torch.sigmoid, (t(3, 5),), 0, 4 * 15),
    ("silu: sigmoid, mul", F.silu, (t(3, 5),), 0, 5 * 15),
    ("gelu: div, erf, add, mul, mul", F.gelu, (t(3, 5),), 0, 5 * 15),
    ("gelu by tanh", lambda x: F.gelu(x, approximate="tanh"), (t(3, 5),), 0, 8 * 15),
    ("clamp: max, min", lambda x: x.clamp(0, 1), (t(3, 5),), 0, 2 * 15),
    ("compare", lambda x: x > 0.5, (t(3, 5),), 0, 15),
    ("sum of all", torch.sum, (t(3, 5),), 0, 14),
    ("sum of rows", lambda x: x.sum(1), (t(3, 5),), 0, 3 * 4),
    ("mean of rows", lambda x: x.mean(1), (t(3, 5),), 0, 3 * (4 + 1)),
    ("largest of rows", lambda x: x.max(1).values, (t(3, 5),), 0, 3 * 4),
    ("larger of two", lambda x, y: torch.max(x, y), (t(3, 5), t(3, 5)), 0, 15),
    ("variance: mean, sub, square, sum, div", lambda x: x.var(1), (t(3, 5),), 0, 3 * (5 + 5 + 5 + 4 + 1)),
    ("softmax", lambda x: x.softmax(-1), (t(3, 5),), 0, 3 * (4 + 5 + 5 + 4 + 5)),
    ("softmax of columns", lambda x: torch.softmax(x, dim=0), (t(3, 5),), 0, 5 * (2 + 3 + 3 + 2 + 3)),
    ("log softmax", lambda x: F.log_softmax(x, -1), (t(3, 5),), 0, 3 * (4 + 5 + 5 + 4 + 1 + 5)),
    ("logsumexp", lambda x: x.logsumexp(1), (t(3, 5),), 0, 3 * (4 + 5 + 5 + 4 + 1 + 1)),
    ("cumulated sum", lambda x: x.cumsum(1), (t(3, 5),), 0, 3 * 4),
    ("norm", lambda x: x.norm(dim=1), (t(3, 5),), 0, 3 * (5 + 4 + 1)),
    ("matrix times matrix", torch.mm, (t(2, 3), t(3, 5)), 2 * 3 * 5, 0),
    ("matrix times vector", torch.mv, (t(2, 3), t(3)), 2 * 3, 0),
    ("vector times vector", torch.dot, (t(7), t(7)), 7, 0),
    ("batches", lambda x, y: x @ y, (t(4, 2, 3), t(4, 3, 5)), 4 * 2 * 3 * 5, 0),
    ("batches of one matrix", torch.matmul, (t(4, 2, 3), t(3, 5)), 4 * 2 * 3 * 5, 0),
    ("sum and product", torch.addmm, (t(5), t(2, 3), t(3, 5)), 2 * 3 * 5, 2 * 5),
    ("einsum of a product", lambda x, y: torch.einsum("bij,bjk->bik", x, y), (t(4, 2, 3), t(4, 3, 5)), 120, 0),
    ("einsum of three", lambda x, y, z: torch.einsum("ij,jk,kl->il", x, y, z), (t(2, 3), t(3, 5), t(5, 7)), 30 + 70, 0),
    ("einsum of an outer product", lambda x, y: torch.einsum("i,j->ij", x, y), (t(3), t(5)), 0, 15),
    ("einsum of a sum", lambda x: torch.einsum("ij->i", x), (t(3, 5),), 0, 3 * 4),
    ("linear", F.linear, (t(2, 3), t(5, 3)), 2 * 3 * 5, 0),
    ("linear with bias", F.linear, (t(2, 3), t(5, 3), t(5)), 2 * 3 * 5, 2 * 5),
    ("layer", nn.Linear(3, 5), (t(2, 3),), 2 * 3 * 5, 2 * 5),
    ("bilinear", nn.Bilinear(3, 4, 5), (t(2, 3), t(2, 4)), 2 * 5 * 3 * (4 + 1), 2 * 5),
    ("convolution", nn.Conv2d(4, 6, 3, bias=False), (image(),), 2 * 6 * 6 * 6 * 4 * 9, 0),
    ("padded, with bias", nn.Conv2d(4, 6, 3, padding=1), (image(),), 2 * 6 * 64 * 4 * 9, 2 * 6 * 64),
    ("in groups", nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False), (image(),), 512 * 9, 0),
    ("with steps", nn.Conv1d(4, 6, 2, stride=2, bias=False), (t(2, 4, 8),), 2 * 6 * 4 * 4 * 2, 0),
    ("transposed", nn.ConvTranspose2d(4, 6, 3, bias=False), (image(),), 512 * 6 * 9, 0),
    ("largest of windows", nn.MaxPool2d(2), (image(),), 0, 128 * 3),
    ("mean of windows", nn.AvgPool2d(2), (image(),), 0, 128 * 4),
    ("mean of all windows", nn.AdaptiveAvgPool2d(1), (image(),), 0, 512),
    ("overlapping windows", nn.AdaptiveAvgPool1d(3), (t(1, 1, 8),), 0, 3 + 4 + 3),
    ("batch norm: sub, mul, weight, bias", nn.BatchNorm2d(4).eval(), (image(),), 0, 4 * 512 + 2 * 4),
    ("layer norm", nn.LayerNorm(5), (t(3, 5),), 0, 15 * (1 + 1 + 1 + 1 + 1 + 2) + 2 * 3),
    ("rms norm", nn.RMSNorm(5), (t(3, 5),), 0, 15 * (1 + 1 + 1 + 1) + 2 * 3),
    ("group norm", nn.GroupNorm(2, 4), (image(),), 0, 512 * 7 + 2 * 2 * 2),
    ("embedding", nn.Embedding(10, 4), (torch.tensor([1, 2]),), 0, 0),
    (
        "attention: two products; scale, max, sub, exp, sum, div",
        F.scaled_dot_product_attention,
        (t(2, 3, 4, 8), t(2, 3, 5, 8), t(2, 3, 5, 6)),
        2 * 3 * 4 * 5 * (8 + 6),
        2 * 3 * 4 * (5 + 4 + 5 + 5 + 4 + 5),
    ),
    (
        "lstm",
        nn.LSTM(3, 4),
        (t(6, 2, 3),),
        6 * 2 * 4 * 4 * (3 + 4),
        6 * 2 * (3 * 4 * 4 + (3 * 4 + 2 + 3 + 1) * 4),
    ),
    ("eigenvalues of a symmetric matrix", torch.linalg.eigvalsh, (t(2, 6, 6),), 0, 2 * 4 * 6**3 // 3),
    ("eigenvalues", torch.linalg.eigvals, (t(6, 6),), 0, 10 * 6**3),
    ("singular values", torch.linalg.svdvals, (t(2, 6, 3),), 0, 2 * (4 * 6 * 9 - 4 * 27 // 3)),
    ("singular vectors", lambda x: torch.linalg.svd(x, full_matrices=False)[0], (t(6, 3),), 0, 14 * 6 * 9 + 8 * 27),
    ("all of them", lambda x: torch.linalg.svd(x)[0], (t(6, 3),), 0, 4 * 36 * 3 + 8 * 6 * 9 + 9 * 27),
    ("views", lambda x: x.reshape(5, 3).transpose(0, 1).unsqueeze(0)[..., 1:], (t(3, 5),), 0, 0),
    ("copies", lambda x, y: torch.cat([x, y]).to(torch.float64), (t(3, 5), t(3, 5)), 0, 0),
    ("mean squared error", F.mse_loss, (t(3, 5), t(3, 5)), 0, 15 * 2 + 15),
    ("cross entropy", F.cross_entropy, (t(3, 5), torch.tensor([0, 1, 2])), 0, 3 * 24 + 2 * 3),
    ("upsampled", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (image(),), 0, 4 * 512 * 7),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_counted_by_hand(case: Case) -> None:
    _, program, inputs, macs, others = case
    captured = clew.trace(program, args=inputs)
    found = clew.profile(captured, *inputs)
    assert not found.unknown
    assert (found.macs, found.flops - 2 * found.macs) == (macs, others)


ASKS_FOR_DEVICES = ("lstm",)  # torch's function compares the devices of its arguments, so the capture is guarded


@pytest.mark.parametrize("case", [case for case in CASES if case[0] not in ASKS_FOR_DEVICES], ids=lambda case: case[0])
def test_the_same_without_data(case: Case) -> None:
    _, program, inputs, macs, others = case
    captured = clew.trace(program, args=inputs)
    found = clew.profile(captured, *(value.to("meta") for value in inputs))
    assert (found.macs, found.flops - 2 * found.macs, found.seconds) == (macs, others, None)


def test_what_has_no_formula_is_unknown() -> None:
    captured = clew.trace(lambda x: torch.linalg.matrix_exp(x) + 1, args=(t(4, 4),))
    found = clew.profile(captured, t(4, 4))
    assert found.unknown and found.flops == 16
    (row,) = [row for row in found.nodes if row.unknown]
    assert row.to_dict()["flops"] is None and row.to_dict()["macs"] is None
    assert "?" in found.table() and "at least" in str(found) and "no formula is known for" in str(found)


class Doubled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(t(5, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight) * 2


def test_a_module_of_the_user_that_stays_one_node_is_counted_by_its_operators() -> None:
    model = nn.Sequential(Doubled())
    captured = clew.trace(model, args=(t(2, 3),), leaves=lambda module, path: path == "0")
    (call,) = captured.graph.find_nodes(op="call_module")
    found = clew.profile(captured, t(2, 3))
    assert [row.node for row in found.nodes] == [call]
    assert (found.macs, found.flops, found.unknown) == (30, 70, [])


def test_functions_of_numpy() -> None:
    x, y = np.ones((2, 3)), np.ones((3, 5))
    found = clew.profile(clew.trace(lambda x, y: np.exp(x @ y).sum(axis=1), args=(x, y)), x, y)
    assert (found.macs, found.flops) == (30, 60 + 10 + 2 * 4) and not found.unknown
    assert [row.bytes for row in found.nodes] == [8 * (6 + 15 + 10), 8 * 20, 8 * (10 + 2)]


@pytest.mark.parametrize(
    ("written", "name"),
    [("add_", "add"), ("__radd__", "add"), ("__and__", "bitwise_and"), ("add.Tensor", "add"), ("AddV2", "add")]
    + [("_softmax", "softmax"), ("_scaled_dot_product_flash_attention", "scaled_dot_product_attention")],
)
def test_names(written: str, name: str) -> None:
    assert operation_name(written) == name and name in TABLE
