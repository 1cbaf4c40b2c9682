"""Shape rules against torch's own operators: right about the example, and about the same call at other sizes."""

from __future__ import annotations

import collections

import pytest
import torch

from benchmarks.opinfo import operators
from clew.frameworks.torch.shape_table import FUNCTIONS, LAYERS
from tests.frameworks.torch.shape_samples import judged

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
