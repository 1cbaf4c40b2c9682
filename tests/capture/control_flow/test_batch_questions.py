"""What a library asks about a batch of one is recorded both ways where what follows can be written once, and guarded
where it cannot; what it asks of data on the way to one answer is not checked on the way to the other."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import clew
from clew.errors import GuardError
from clew.ir.arguments import all_nodes

SOURCE = """
import itertools

import torch
from torch import nn
from torch.nn import functional as F


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList(nn.Linear(8, 8) for _ in range(30))

    def layers(self, x):
        for step in self.steps:
            x = torch.tanh(step(x)) + x
        return x


class Expanded(Base):
    def forward(self, x):
        places = torch.arange(x.shape[1])[None]
        if x.shape[0] != places.shape[0]:
            places = places.expand(x.shape[0], -1)
        return self.layers(x + places[:, :, None]), places


class Repeated(Base):
    def forward(self, x):
        noise = torch.ones(x.shape)
        if x.shape[0] > 1 and noise.shape[0] == 1:
            noise = noise.repeat(x.shape[0], 1, 1)
        elif noise.shape[0] > 1 and x.shape[0] == 1:
            x = x.repeat(noise.shape[0], 1, 1)
        if x.shape[0] != noise.shape[0]:
            raise ValueError("other batches")
        return self.layers(x + noise)


class Flagged(Base):
    def forward(self, x, is_causal=True):
        is_causal = x.shape[0] > 1 and is_causal
        return self.layers(F.scaled_dot_product_attention(x, x, x, is_causal=is_causal))


class Numbered(Base):
    def forward(self, x):
        return self.layers(x), 2 if x.shape[0] == 1 else 3


class Upsampled(Base):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose1d(8, 8, 2, stride=2)

    def forward(self, x):
        x = self.up(x.transpose(1, 2)).transpose(1, 2)
        places = torch.zeros(1, 1, 1)
        if x.shape[0] != 1:
            places = places.expand(x.shape[0], -1, -1)
        return self.layers(x + places) + places


class Different(Base):
    def forward(self, x, mask):
        mask = None if mask.all() else mask[:, None, :].expand(-1, x.shape[1], -1)
        x = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
        if x.shape[0] == 1:
            for _ in range(40):
                x = x.sin() + x.cos() * x.abs()
            return x
        return self.layers(x)


class Unrunnable(Base):
    def forward(self, x):
        if x.shape[0] == 1:
            x = x.view(x.shape[1], 8)[None] * 2
        return self.layers(x)


class Noisy(Base):
    def forward(self, x):
        if self.training:
            counts = dict.fromkeys([float(place) for place in range(x.shape[0])], 1)
            x = x + torch.tensor(list(counts))[:, None, None]
        return self.layers(x)


class Calculated(Base):
    def forward(self, x, mask):
        count = int(mask[0].sum()) if mask.all() else int(mask[1].sum() * 3)
        total = count * 2
        return self.layers(x) * total * (total - 1)


class Grouped(Base):
    def forward(self, x, kinds):
        parts = [(kind, len(list(group))) for kind, group in itertools.groupby(kinds.tolist())]
        for kind, count in parts:
            if kind == 0:
                x = x + count
            else:
                x = x * 2 - {1: 3, 2: 4}[kind]
        return self.layers(x)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("batch") / "site-packages"
    folder.mkdir()
    (folder / "batch_library.py").write_text(SOURCE)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("batch_library")
    sys.path.remove(str(folder))
    del sys.modules["batch_library"]


def agree(captured: Any, model: Any, *args: Tensor) -> None:
    torch.testing.assert_close(captured(*args), model(*args), rtol=0, atol=0)


@pytest.mark.parametrize("example", [1, 2])
@pytest.mark.parametrize("name", ["Expanded", "Repeated", "Flagged", "Numbered", "Upsampled"])
def test_each_batch_runs(library: ModuleType, name: str, example: int) -> None:
    model = getattr(library, name)().eval()
    captured = clew.trace(model, (torch.randn(example, 5, 8),))
    linears = [node for node in all_nodes(captured.graph) if node.op == "call_module"]
    assert len(linears) == 30 + (name == "Upsampled")  # as many as one way has
    for rows in (1, 2, 4):
        agree(captured, model, torch.randn(rows, 5, 8))
        agree(captured, model, torch.randn(rows, 7, 8))


def test_ways_with_nothing_in_common_are_guarded_and_a_mask_stays_data(library: ModuleType) -> None:
    model = library.Different().eval()
    full, padded = torch.ones(2, 5, dtype=torch.bool), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    captured = clew.trace(model, (torch.randn(2, 5, 8), full))
    agree(captured, model, torch.randn(2, 5, 8), full)
    agree(captured, model, torch.randn(2, 5, 8), padded)
    with pytest.raises(GuardError, match=r"shape\[0\] == 1"):
        captured(torch.randn(1, 5, 8), full[:1])


def test_a_way_that_the_example_cannot_go_is_guarded(library: ModuleType) -> None:
    model = library.Unrunnable().eval()
    captured = clew.trace(model, (torch.randn(2, 5, 8),))
    agree(captured, model, torch.randn(3, 5, 8))
    with pytest.raises(GuardError, match=r"shape\[0\] == 1"):
        captured(torch.randn(1, 5, 8))


def test_sizes_that_training_relies_on_are_free_in_evaluation(library: ModuleType) -> None:
    model = library.Noisy().eval()
    captured = clew.trace(model, (torch.randn(2, 5, 8),))
    for rows in (1, 2, 4):
        agree(captured, model, torch.randn(rows, 5, 8))
    model.train()
    captured.train()
    agree(captured, model, torch.randn(2, 7, 8))
    with pytest.raises(GuardError, match=r"shape\[0\] == 2"):
        captured(torch.randn(4, 5, 8))


def test_questions_of_the_user_are_branches() -> None:
    def halved(x: Tensor) -> Tensor:
        return x / 2 if x.shape[0] == 1 else x

    captured = clew.trace(halved, (torch.ones(2, 3),))
    agree(captured, halved, torch.ones(1, 3))
    agree(captured, halved, torch.ones(4, 3))
    with pytest.raises(GuardError, match=r"x.shape\[0\] == 1"):
        clew.trace(halved, (torch.ones(2, 3),), control_flow="guard")(torch.ones(1, 3))


def test_numbers_computed_of_a_choice_stand_behind_its_branch(library: ModuleType) -> None:
    model = library.Calculated().eval()
    full, padded = torch.ones(2, 5, dtype=torch.bool), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    for example in (full, padded):
        captured = clew.trace(model, (torch.randn(2, 5, 8), example))
        assert sum(node.op == "call_module" for node in all_nodes(captured.graph)) == 30
        agree(captured, model, torch.randn(2, 5, 8), full)
        agree(captured, model, torch.randn(2, 5, 8), padded)
