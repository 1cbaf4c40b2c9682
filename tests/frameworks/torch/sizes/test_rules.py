"""Shape rules against torch's own operators: right about the example, and about the same call at other sizes."""

from __future__ import annotations

import collections

import pytest
import torch

import clew
from benchmarks.opinfo import operators
from clew.errors import GuardError
from clew.frameworks.torch.sizes.table import FUNCTIONS, LAYERS
from tests.frameworks.torch.sizes.shape_samples import judged

STEP, SAMPLES = 12, 2
HARD = ["matmul", "nn.functional.scaled_dot_product_attention", "cat", "__getitem__", "expand", "einsum", "squeeze",
        "repeat", "unflatten", "tensor_split", "chunk", "split", "movedim", "nn.functional.conv2d", "masked_scatter",
        "nn.functional.pad", "reshape", "unfold", "where", "index_select"]  # fmt: skip


def _ruled() -> list[object]:
    names = {getattr(function, "__name__", "") for function in FUNCTIONS}
    return [one for one in operators() if one.name.split(".")[-1] in names and "sparse" not in one.name]


def test_rules_for_torchs_operators_are_right_at_other_sizes() -> None:
    found: collections.Counter[str] = collections.Counter()
    for operator in _ruled()[::STEP]:
        answers = list(judged(operator, SAMPLES))
        assert [one for one in answers if one[0] in ("wrong", "unlike")] == [], operator
        found.update(kind for kind, _ in answers)
    assert found["right"] > 150 > 10 * found["guarded"]


@pytest.mark.parametrize("name", HARD)
def test_rules_that_are_hard(name: str) -> None:
    for operator in [one for one in operators() if one.name == name]:
        assert [one for one in judged(operator, SAMPLES) if one[0] in ("wrong", "unlike")] == []


def test_layers_are_known_by_their_exact_class() -> None:
    class Wider(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([super().forward(x)] * 2, -1)

    assert torch.nn.Linear in LAYERS and Wider not in LAYERS


GROUPED = {"rows": ((8, 16), (2, 16, 32)), "whole": ((2, 8, 16), (2, 16, 32)),
           "columns": ((2, 8, 16), (16, 32)), "summed": ((8, 16), (16, 32))}  # fmt: skip


@pytest.mark.parametrize("kind", GROUPED)
def test_grouped_products(kind: str) -> None:
    left, right = (torch.randn(*shape, dtype=torch.bfloat16) for shape in GROUPED[kind])
    total = {"rows": 8, "columns": 32, "summed": 16}.get(kind)
    ends = None if total is None else torch.tensor([8 if total > 8 else 3, total], dtype=torch.int32)

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        given = torch._grouped_mm(x, y, offs=ends)
        return given * 2 if min(given.shape) > 1 else given

    captured = clew.trace(program, (left, right), control_flow="guard")
    assert not [one for one in captured.guards if one.kind == "computed"]
    assert torch.equal(captured(left, right), program(left, right))


def test_sizes_of_normed_weights() -> None:
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(2, 2, 4, padding=2), dim=2)

    def program(x: torch.Tensor) -> torch.Tensor:
        given = layer(x)
        return given * 2 if given.shape[2] > 3 else given

    captured = clew.trace(program, (torch.randn(1, 2, 8),), control_flow="guard")
    assert not [one for one in captured.guards if one.kind == "computed"]
    with pytest.raises(GuardError):
        captured(torch.randn(1, 2, 2))
