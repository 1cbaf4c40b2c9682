"""A captured torch program and its original, call by call: both run on copies of the same input in the same world.

Comes in: the two programs and example calls. Goes out: one case for each call, with the first node that differs where
there is one. Arguments, state and random numbers are put back after every run.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.errors import GuardError
from clew.tools.calls import Call, named
from clew.tools.cases import EQUAL, GUARDED, WRONG, Case
from clew.tools.examples import calls_of, copied, made_from
from clew.tools.locate import NOWHERE, locate
from clew.tools.observe import Observation, first_difference, observe
from clew.tools.pictures import Tolerance, difference, walk
from clew.tools.world import World


def compare(captured: Any, fn: Any, inputs: Any, atol: float, rtol: float, gradients: bool) -> list[Case]:
    """The calls that were given, then noise of the same form and other batch sizes made from the first of them."""
    calls = calls_of(inputs, captured)
    wanted = [*named(calls), *made_from(calls[0])]
    world = World(fn, captured, [value for _, value in walk(calls) if isinstance(value, torch.Generator)])
    return [_case(name, captured, fn, call, world, Tolerance(atol, rtol), gradients) for name, call in wanted]


def _case(name: str, captured: Any, fn: Any, call: Call, world: World, tolerance: Tolerance, gradients: bool) -> Case:
    got = _observed(captured, call, world, True, gradients)
    if isinstance(got.error, GuardError):
        return _guarded(name, _observed(_nothing, call, world, True, False), got, got.error)
    wanted = _observed(fn, call, world, False, gradients)
    detail = first_difference(wanted, got, tolerance)
    if detail is None:
        return Case(name, EQUAL, "" if wanted.error is None else f"both raise {type(wanted.error).__name__}")
    node, reason = locate(captured, fn, call, world, tolerance) if wanted.error is None else NOWHERE
    line = "" if node is None or node.source is None else node.source.describe()
    return Case(name, WRONG, f"{detail}; {reason}" if reason else detail, None if node is None else node.name, line)


def _nothing(*args: Any, **kwargs: Any) -> None:
    """A program that leaves everything as it is."""


def _observed(program: Any, call: Call, world: World, of_capture: bool, gradients: bool) -> Observation:
    try:
        return observe(program, copied(call), world, of_capture, gradients)
    finally:
        world.put_back()


def _guarded(name: str, untouched: Observation, got: Observation, error: GuardError) -> Case:
    """A refused call must have changed nothing."""
    marks = (difference(untouched.aspects[aspect], seen, aspect, Tolerance()) for aspect, seen in got.aspects.items())
    mark = next((text for text in marks if text is not None), None)
    if mark is not None:
        return Case(name, WRONG, f"a guard failed after something was changed: {mark}", None, error.where)
    return Case(name, GUARDED, error.what, None, error.where)
