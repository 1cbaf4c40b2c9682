"""Parameters of a program whose default is a tensor: an input like any other, which may be left out."""

from __future__ import annotations

import pytest
import torch

import clew
from clew.errors import GuardError

SHIFT = torch.arange(3.0)


def shifted(x, shift=SHIFT, *, scale=torch.ones(3)):
    return x if shift is None else x * scale + shift


def test_a_default_that_is_left_out_may_be_given_too():
    graph = clew.trace(shifted, (torch.ones(3),))
    x = torch.randn(3)
    assert torch.equal(graph(x), shifted(x))
    assert torch.equal(graph(x, x, scale=x), shifted(x, x, scale=x))
    with pytest.raises(GuardError):
        graph(x, None)


def test_a_default_that_is_written_to_is_followed():
    def counting(x, count=torch.zeros(())):
        count += 1
        return x * count

    graph = clew.trace(counting, (torch.ones(2),))
    assert [float(graph(torch.ones(2))[0]) for _ in range(3)] == [1.0, 2.0, 3.0]
