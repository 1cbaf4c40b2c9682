"""Lists below objects and dicts of the state, which a program only appends to, may be of any length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

import clew

Step = Callable[[Any], Any]


class World:
    """What the steps keep their lists in."""


def counted(world: Any) -> Step:
    world.seen = []

    def step(x: Any) -> Any:
        world.seen.append(x.shape)
        return x * len(world.seen)

    return step


def in_a_dict(world: Any) -> Step:
    world.held = {"a": [1.0], "b": []}

    def step(x: Any) -> Any:
        world.held["a"].append(2.0)
        return x * len(world.held["a"]) + len(world.held["b"])

    return step


def in_a_branch(world: Any) -> Step:
    world.seen = []

    def step(x: Any) -> Any:
        if x.sum() > 0:
            world.seen.append(1)
        else:
            world.seen.extend([1, 2])
        return x * len(world.seen)

    return step


def under_two_names(world: Any) -> Step:
    world.seen = world.also = []

    def step(x: Any) -> Any:
        world.seen.append(x)
        return x * len(world.also)

    return step


def looked_at(world: Any) -> Step:
    world.seen = []

    def step(x: Any) -> Any:
        world.seen.append(x)
        return world.seen[0] + x

    return step


def emptied(world: Any) -> Step:
    world.seen = []

    def step(x: Any) -> Any:
        world.seen.append(x)
        if len(world.seen) > 2:
            world.seen.clear()
        return x

    return step


def kept(world: Any) -> Any:
    """How long the lists are."""
    held = getattr(world, "held", None)
    return [len(one) for one in held.values()] if held else len(world.seen)


@pytest.mark.parametrize("array", [numpy.array, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("make", [counted, in_a_dict, in_a_branch])
def test_of_any_length(make: Callable[[Any], Step], array: Any) -> None:
    ours, theirs = World(), World()
    program = make(theirs)
    captured = clew.trace(make(ours), args=(array([1.0, 2.0]),))
    for values in ([1.0, 2.0], [-1.0, -2.0], [3.0, 4.0], [1.0, 2.0]):
        assert captured(array(values)).tolist() == program(array(values)).tolist()
        assert kept(ours) == kept(theirs)


@pytest.mark.parametrize("make", [under_two_names, looked_at, emptied])
def test_otherwise_the_length_is_guarded(make: Callable[[Any], Step]) -> None:
    world = World()
    captured = clew.trace(make(world), args=(numpy.ones(2),))
    captured(numpy.ones(2))
    with pytest.raises(clew.GuardError, match="1 items"):
        captured(numpy.ones(2))
    assert kept(world) == 1
