"""Islands: parts of a program that the capture cannot follow, and that therefore stay one call.

When a run meets something that it cannot record (NumPy on a tensor's data, an object of a C library), the innermost
function or module around that place which can be called as a whole becomes an island, and the capture starts over. The
function runs for real at each call of the graph, so nothing in it is frozen. Where there is none, the error stands.
"""

from __future__ import annotations

import traceback
from collections.abc import Container, Iterable
from contextlib import nullcontext
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy
import torch

from clew.capture.patches import Patches
from clew.capture.recording.opaque_calls import CannotFollow, OpaqueCall, changed_one, copies_of
from clew.capture.symbolic.wrap import install_for
from clew.frameworks.torch.modules.optimizers import TRAINERS
from clew.frameworks.torch.numpy_bridge.arrays import guard_kinds
from clew.frameworks.torch.refusals import refusal
from clew.frameworks.torch.scalars import TracedBool
from clew.ir.arguments import leaves
from clew.ir.source import is_hidden

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder


def find_island(error: BaseException, root: Any, parts: Container[Any], known: Container[Any]) -> Any:
    """The innermost function or module, between the program and the place of the error, that can stay one call."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if not is_hidden(frame.f_code)]
    for frame in reversed(frames):
        for found in (_module_of(frame), _function_of(frame)):
            is_part = found in parts if isinstance(found, torch.nn.Module) else found is not None
            if is_part and found is not root and found is not getattr(root, "__func__", None) and found not in known:
                return found
    return None


def _module_of(frame: FrameType) -> Any:
    """The module whose ``forward`` runs in a frame."""
    owner = frame.f_locals.get("self")
    if not isinstance(owner, torch.nn.Module):
        return None
    forward = getattr(type(owner).forward, "__wrapped__", type(owner).forward)
    return owner if isinstance(forward, FunctionType) and _runs(forward, frame) else None


def _function_of(frame: FrameType) -> FunctionType | None:
    """The function that runs in a frame, if it is one that other functions find by its name."""
    found = frame.f_globals.get(frame.f_code.co_name)
    return found if isinstance(found, FunctionType) and _runs(found, frame) else None


def _runs(function: FunctionType, frame: FrameType) -> bool:
    """Whether a frame runs a function, or what stood for its code during the capture."""
    ours, theirs = function.__code__, frame.f_code
    return (ours.co_filename, ours.co_firstlineno, ours.co_name) == (
        theirs.co_filename,
        theirs.co_firstlineno,
        theirs.co_name,
    )


def install(patches: Patches, islands: list[Any], functions: list[Any]) -> None:
    """Let calls of the functions among the islands be recorded as calls."""
    wanted = [island for island in islands if isinstance(island, FunctionType)]
    around = (*functions, *wanted) if wanted else ()
    for names in {id(function.__globals__): function.__globals__ for function in around}.values():
        install_for(patches, names, wanted, beside="__")


ENDS = (torch.Tensor, torch.nn.Module, numpy.dtype, *TRAINERS)
"""Classes of values whose inside is followed by other means."""


def make_whole(
    recorder: TorchRecorder,
    op: str,
    target: Any,
    call: Any,
    given: tuple[Any, Any],
    written: Iterable[Any],
    opaque: str,
    inside: Any,
) -> Any:
    """Make the call and record it; ``written`` it may write to, ``opaque`` says why nobody looks inside."""
    args, kwargs = given
    if opaque:
        recorder.check_opaque(target, opaque)
    border = None if inside is None else OpaqueCall(recorder, inside, ENDS, _parts(inside))
    if border is None:
        node_args, node_kwargs = recorder.argument(args), recorder.argument(kwargs)
    else:
        node_args, node_kwargs = border.argument(args), border.keywords(kwargs)
        border.begin()
    written = [value for value in written if isinstance(value, torch.Tensor)]
    recorder.check_frozen(written)
    for value in written:
        recorder.is_written(value)
    if recorder.arrays is not None:
        recorder.arrays.will_write((args, kwargs))
    plain_args, plain_kwargs = recorder.concrete((args, kwargs))
    containers = copies_of((*plain_args, *plain_kwargs.values()))
    with nullcontext() if recorder.arrays is None else recorder.arrays.places.suspended():
        value = recorder.perform(call, plain_args, plain_kwargs, is_plain=True)
    changed = changed_one(containers)
    if changed:
        name = getattr(target, "__qualname__", str(target))
        raise refusal(f"{name}, one call of the graph, changes a {changed} that it is given, which", kind=CannotFollow)
    node = recorder.create_node(op, target, node_args, node_kwargs, is_result=True)
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


def guard_switches(recorder: TorchRecorder, given: Any) -> None:
    """A call gave no single tensor: what it gives, weights of attention or None say, may hang on the flags it got."""
    for leaf in leaves(given):
        flag: Any = leaf
        if type(leaf) is TracedBool:
            recorder.guard(flag.place, flag.plain)


def _parts(inside: Any) -> Iterable[Any]:
    """The modules whose attributes a call of the user's may set."""
    return inside.modules() if isinstance(inside, torch.nn.Module) else ()
