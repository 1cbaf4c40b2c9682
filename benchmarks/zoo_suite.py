"""The models of examples/models, in plain torch, as a suite of the coverage benchmark.

The inputs of other sizes are made of the zoo's own; a model that does not take them says so when it runs eagerly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

from benchmarks.examination import BATCH, LENGTH, Candidate, Variation

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from models import Entry, captured_zoo


class ZooSuite:
    """Every model of the zoo."""

    def names(self) -> list[str]:
        """All models."""
        return list(captured_zoo)

    def candidates(self, name: str, reasons: list[str]) -> Iterator[Candidate]:
        """The one way to build and call a model of the zoo."""
        entry = captured_zoo[name]
        yield Candidate("zoo", entry.build().eval(), _Maker(entry))


class _Maker:
    """Makes positional arguments: the zoo's own, repeated or cut to the size that is asked for."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def __call__(self, variation: Variation) -> tuple[tuple[Any, ...], dict[str, Any]]:
        inputs = self.entry.inputs(variation.seed)
        return tree_map(lambda leaf: _resized(leaf, variation) if isinstance(leaf, Tensor) else leaf, inputs), {}


def _resized(tensor: Tensor, variation: Variation) -> Tensor:
    """Another batch size in the first place; twice the length of text and sound, or of both sides of an image."""
    batch = len(tensor) + variation.batch - BATCH
    changed = torch.cat([tensor, tensor])[:batch]
    is_image = tensor.dim() == 4
    if is_image and variation.grow:
        return changed.repeat(1, 1, 2, 2)
    if not is_image and tensor.dim() > 1 and variation.length != LENGTH:
        return changed.repeat(*[1] * (tensor.dim() - 1), 2)
    return changed
