"""The effect of a node with bodies is that of the worst node in them."""

from __future__ import annotations

import torch

import clew
from clew.ir.effects import effect_of, worst
from clew.ir.guests import Effect


def test_the_worst_of_several_effects_counts() -> None:
    assert worst([]) is Effect.NONE
    assert worst([Effect.NONE, Effect.RANDOM]) is Effect.RANDOM
    assert worst([Effect.RANDOM, Effect.WRITE]) is Effect.WRITE
    assert worst([Effect.UNKNOWN, Effect.WRITE, Effect.RANDOM]) is Effect.UNKNOWN


def test_a_branch_that_draws_and_writes_is_no_mere_draw() -> None:
    def program(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            x = x + torch.rand(2)
        else:
            total += 1
        return x

    captured = clew.trace(program, args=(torch.ones(2), torch.zeros(2)))
    (branch,) = captured.graph.find_nodes(op="call_function", target=clew.cond)
    assert effect_of(branch) is Effect.WRITE
