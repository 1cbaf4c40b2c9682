"""The usual call: a compiled function or method of torch that only computes, called right from the user's program.

Most calls are of this kind, and a capture takes as long as recording them does. So they have a path of their own, which
looks up what depends on the function (``traits``) and on the place in the program (``sites``) instead of finding it out
again. Whatever is unusual about a call sends it, before it is made, to the general path, ``TorchRecorder.call``; an
unusual result is handed to the recorder as there. Both paths record the same.
"""

from __future__ import annotations

import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from clew.capture.example.attempts import FRAMEWORK
from clew.capture.example.operators import written_at
from clew.capture.example.sites import site_of
from clew.frameworks.torch.forms import takes_operands
from clew.frameworks.torch.traits import LEADING, Traits
from clew.frameworks.torch.types import ordinary_type
from clew.ir.node import Node, set_type

if TYPE_CHECKING:
    from clew.frameworks.torch.recording import TorchRecorder

UNUSUAL: Any = object()
"""The answer for a call that was not made, because the general path must."""
_PLAIN = frozenset({int, float, bool, str, type(None), complex, bytes, type(...)})


def record(
    recorder: TorchRecorder, traits: Traits, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
) -> Any:
    """Make a call of a usual function and record it; ``UNUSUAL`` if something about the call is not."""
    site = site_of(frame)
    if site is None or recorder.bodies.is_used or not recorder.running or not recorder.open:
        return UNUSUAL
    if kwargs and not LEADING.isdisjoint(kwargs):
        return UNUSUAL
    node_args, are_plain = _arguments(recorder, args)
    if node_args is None:
        return UNUSUAL
    node_kwargs = recorder.argument(kwargs) if kwargs else kwargs
    value = _perform(recorder, func, args, kwargs, are_plain and not kwargs)
    op, target = ("call_method", traits.name) if traits.is_method else ("call_function", func)
    form = traits.form
    if form is not None and not kwargs and takes_operands(form, args):
        written = written_at(form, site.operation, node_args)
        if written is not None:
            op, (target, node_args) = "call_function", written
    node = recorder.create_at(site, frame, op, target, node_args, node_kwargs, FRAMEWORK)
    return _result(recorder, node, value, args)


def _arguments(recorder: TorchRecorder, args: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, bool]:
    """What the node holds for the arguments, None if these may let the call write; whether torch can have them as
    they are."""
    nodes, kinds, found, are_plain = recorder._nodes, recorder.array_kinds, [], True
    for value in args:
        kind = type(value)
        if kind in kinds:
            entry = nodes.get(id(value))
            if entry is not None and type(entry[1]) is Node and entry[0]() is value:
                found.append(entry[1])
            else:
                found.append(recorder.node_of(value))
        elif kind in _PLAIN:
            if value is True:  # a switch, maybe
                return None, are_plain
            found.append(value)
        else:
            are_plain = False
            found.append(recorder.argument(value))
    return tuple(found), are_plain


def _perform(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], are_plain: bool) -> Any:
    """Make the call, as ``TorchRecorder._perform`` does."""
    if not are_plain:
        return recorder._perform(func, args, kwargs)
    recorder.depth += 1
    try:
        return func(*args)
    except Exception as error:
        recorder.note_failure(error)
        raise
    finally:
        recorder.depth -= 1


def _result(recorder: TorchRecorder, node: Node, value: Any, args: tuple[Any, ...]) -> Any:
    """The result as the program shall see it: almost always a new tensor, tied to its node and no more."""
    if recorder.folding.is_constant(node):
        recorder.fold_later(node, value)
    if type(value) is not torch.Tensor:
        return recorder.settle(node, value, args)
    for one in args:
        if one is value:
            return recorder.settle(node, value, args)
    recorder._nodes[id(value)] = (weakref.ref(value), node)
    known = ordinary_type(value)
    if known is None:
        recorder.note_type(node, value)
    else:
        set_type(node, known)
    return value
