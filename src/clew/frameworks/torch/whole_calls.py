"""Calls that stay one node of a torch program's graph, whatever is inside: leaf modules, wrapped functions, islands.

In comes a call as the program makes it; it is made for real, on plain values. What it may write to is kept before, and
what it shares with the rest of the program must be as the graph knows it, before the call and after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import numpy
import torch

from clew.capture.example.given import changed_one, copies_of
from clew.capture.example.islands import CannotFollow
from clew.capture.example.territory import WholeCall
from clew.frameworks.torch.arrays import guard_kinds
from clew.frameworks.torch.refusals import refusal
from clew.frameworks.torch.scalars import TracedBool
from clew.frameworks.torch.training import TRAINERS
from clew.ir.arguments import leaves

ENDS = (torch.Tensor, torch.nn.Module, numpy.dtype, *TRAINERS)
"""Classes of values whose inside is followed by other means."""


def make_whole(
    recorder: Any,
    op: str,
    target: Any,
    call: Any,
    args: Any,
    kwargs: Any,
    written: Iterable[Any],
    opaque: str,
    inside: Any,
) -> Any:
    """Make the call and record it; ``written`` it may write to, ``opaque`` says why nobody looks inside."""
    if opaque:
        recorder.check_opaque(target, opaque)
    border = None if inside is None else WholeCall(recorder, inside, ENDS, _parts(inside))
    if border is None:
        node_args, node_kwargs = recorder.argument(args), recorder.argument(kwargs)
    else:
        node_args, node_kwargs = border.argument(args), border.keywords(kwargs)
        border.begin()
    written = [value for value in written if isinstance(value, torch.Tensor)]
    recorder._check_frozen(written)
    for value in written:
        recorder._is_written(value)
    if recorder.arrays is not None:
        recorder.arrays.will_write((args, kwargs))
    plain_args, plain_kwargs = recorder.concrete((args, kwargs))
    containers = copies_of((*plain_args, *plain_kwargs.values()))
    with nullcontext() if recorder.arrays is None else recorder.arrays.places.suspended():
        value = recorder._perform(call, plain_args, plain_kwargs, is_plain=True)
    changed = changed_one(containers)
    if changed:
        name = getattr(target, "__qualname__", str(target))
        raise refusal(f"{name}, one call of the graph, changes a {changed} that it is given, which", kind=CannotFollow)
    node = recorder._create(op, target, node_args, node_kwargs, is_result=True)
    if border is not None:
        border.end()
    if opaque:
        node.meta["opaque"] = opaque
        recorder.sizes.stop()  # it may change shapes in place
        guard_kinds(recorder, value, node)
    elif type(value) is tuple or value is None:
        guard_switches(recorder, (args, kwargs))
    works_in_place = inside is None and not opaque and any(value is one for one in written)
    return recorder.result(value, node) if works_in_place else recorder.given_back(value, node, args)


def guard_switches(recorder: Any, given: Any) -> None:
    """A call gave no single tensor: what it gives, weights of attention or None say, may hang on the flags it got."""
    for leaf in leaves(given):
        flag: Any = leaf
        if type(leaf) is TracedBool:
            recorder.guard(flag.place, flag.plain)


def _parts(inside: Any) -> Iterable[Any]:
    """The modules whose attributes a call of the user's may set."""
    return inside.modules() if isinstance(inside, torch.nn.Module) else ()
