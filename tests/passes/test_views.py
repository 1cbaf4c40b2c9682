"""Which indices of one array select different elements."""

from __future__ import annotations

import itertools

import torch

from clew.passes.views import are_apart, spread

INDICES = [
    0, 1, -1, slice(1, None), slice(None, 1), slice(-1, None), (..., 0), (..., 0, None), (None, ..., 1), (0, ..., 1),
    (..., slice(1, None)), (slice(None), 1), (1, ..., None), (..., -1), (None, 0),
    (..., torch.tensor([True, False, False])),
]  # fmt: skip


def test_what_is_apart_never_meets() -> None:
    found = 0
    for one, other in itertools.product(INDICES, INDICES):
        if are_apart(spread(one, 2), spread(other, 2)):
            written = torch.zeros(3, 3)
            written[one] = 1
            assert not written[other].any(), (one, other)
            found += 1
    assert found > 20
