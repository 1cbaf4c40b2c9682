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

from clew.capture.bytecode.instructions import RETURNED
from clew.capture.bytecode.try_blocks import FRAMEWORK, outcome_of, outcome_of_method
from clew.capture.recording.list_proxies import StateListProxy
from clew.capture.recording.operators import written_at
from clew.capture.recording.recorder import PLAIN, SITES, past_forwarding, site_of
from clew.frameworks.torch.calls.dispatch import LEADING, Traits, takes_operands
from clew.frameworks.torch.effects import function_effect
from clew.frameworks.torch.types import ordinary_type
from clew.ir.guests import Effect
from clew.ir.node import Node, set_type

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

UNUSUAL: Any = object()
"""The answer for a call that was not made, because the general path must."""
_KNOWN = PLAIN | {torch.Tensor, torch.nn.Parameter}


def record(
    recorder: TorchRecorder, traits: Traits, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
) -> Any:
    """Make a call of a usual function and record it; ``UNUSUAL`` if something about the call is not."""
    site = SITES.get((id(frame.f_code), frame.f_lasti)) or site_of(frame)
    if site is None or recorder.bodies.is_used or not recorder.running or not recorder.open:
        return UNUSUAL
    if kwargs and not LEADING.isdisjoint(kwargs):
        return UNUSUAL
    nodes, found, are_plain = recorder.nodes, [], not kwargs
    for value in args:
        kind = type(value)
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            entry = nodes.get(id(value))
            if entry is not None and type(entry[1]) is Node and entry[0]() is value:
                found.append(entry[1])
            else:
                found.append(recorder.node_of(value))
        elif kind in PLAIN:
            if value is True:  # a switch, maybe, with which the call writes
                return UNUSUAL
            found.append(value)
        elif kind is StateListProxy:
            return UNUSUAL
        else:
            are_plain = False
            found.append(recorder.argument(value))
    node_args = tuple(found)
    node_kwargs = recorder.argument(kwargs) if kwargs else kwargs
    recorder.depth += 1
    try:
        value = func(*args) if are_plain else func(*recorder.concrete(args), **recorder.concrete(kwargs))
    except Exception as error:
        computes = function_effect(func, args, kwargs) is Effect.NONE
        recorder.note_failure(error, traits.target if computes else None, node_args, node_kwargs)
        raise
    finally:
        recorder.depth -= 1
    op, target, form = traits.op, traits.target, traits.form
    if form is not None and not kwargs and takes_operands(form, args):
        written = written_at(form, site.operation, node_args)
        if written is not None:
            op, (target, node_args) = "call_function", written
    recorder.error_notes.follows = recorder.paths is not None and not recorder.options.refuses_questions
    node = recorder.create_at(site, frame, op, target, node_args, node_kwargs, FRAMEWORK)
    recorder.error_notes.follows = False
    if node.target is outcome_of or node.target is outcome_of_method:
        recorder.ask_for_failure(node)
    return _result(recorder, node, value, args)


def call_layer(
    recorder: TorchRecorder, path: str, call: Any, args: tuple[Any, ...], frame: FrameType | None, is_plain: bool
) -> Any:
    """Make a call of a layer of torch's that only computes, and record it as one node; ``UNUSUAL`` as in ``record``.

    ``frame`` is the one that calls the module, or one further in that hands the call on. A layer ``is_plain`` if all
    its tensors are torch's own: then nobody needs to see what it calls, if there is no mode but the capture's.
    """
    frame = past_forwarding(frame)
    site = None if frame is None else site_of(frame)
    if site is None or recorder.bodies.is_used or not recorder.running or not recorder.open:
        return UNUSUAL
    for value in args:
        if type(value) not in _KNOWN:
            return UNUSUAL
    node_args = tuple([recorder.argument(value) for value in args])
    recorder.depth += 1
    try:
        if is_plain and torch._C._len_torch_function_stack() == 1:
            with torch._C.DisableTorchFunction():
                value = call(*args)
        else:
            value = call(*args)
    except Exception as error:
        recorder.note_failure(error)
        raise
    finally:
        recorder.depth -= 1
    name = recorder.variable_in_the_end(frame) if site.variable == RETURNED else site.variable
    node = recorder.bodies.outermost.create_node("call_module", path, node_args, None, name)
    recorder.note_place(node, site)
    if type(value) is not torch.Tensor:
        return recorder.result(value, node)
    for one in args:
        if one is value:  # in this mode
            return recorder.given_back(value, node, args)
    return _tied(recorder, node, value)


def _result(recorder: TorchRecorder, node: Node, value: Any, args: tuple[Any, ...]) -> Any:
    """The result as the program shall see it: almost always a new tensor, tied to its node and no more."""
    if recorder.folding.is_constant(node):
        recorder.fold_later(node, value)
    if type(value) is not torch.Tensor or recorder.identity.is_asked:
        return recorder.settle(node, value, args)
    for one in args:
        if one is value:
            return recorder.settle(node, value, args)
    return _tied(recorder, node, value)


def _tied(recorder: TorchRecorder, node: Node, value: torch.Tensor) -> torch.Tensor:
    """A tensor that belongs to a node from now on."""
    recorder.nodes[id(value)] = (weakref.ref(value), node)
    known = ordinary_type(value)
    if known is None:
        recorder.note_type(node, value)
    else:
        set_type(node, known)
    return value
