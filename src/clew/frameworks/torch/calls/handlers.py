"""Questions that Python itself asks of a tensor, and their answers during a capture: its size, its truth, its text.

Each handler gets the recorder and the call that torch handed over. Sizes are traced; where Python forces a tensor into
a plain value, that is recorded and guarded.
"""

from __future__ import annotations

import copy
import operator
import sys
from typing import TYPE_CHECKING, Any

import torch

from clew.capture.bytecode.statements import is_only_shown
from clew.capture.recording import outputs
from clew.capture.recording.outputs import DrainedIterator
from clew.errors import CaptureError
from clew.frameworks.torch.calls import tensor_mutation
from clew.frameworks.torch.modules import optimizers
from clew.frameworks.torch.scalars import is_decided
from clew.ir.source import user_frame

if TYPE_CHECKING:
    from clew.frameworks.torch.capture import Run
    from clew.frameworks.torch.recorder import TorchRecorder


def _size(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    shape = recorder.shape(args[0])
    return shape if dim is None else shape[operator.index(recorder.concrete(dim))]


def _count(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """How many numbers a tensor holds: the product of its sizes where these are known."""
    return recorder.count(func, args[0])


def _length(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    recorder.numpy_use.met.note(sys._getframe(1))
    return operator.index(recorder.shape(args[0])[0])  # Python's len() takes plain ints only


def _dim(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return recorder.rank(args[0])


def _asked(function: Any) -> Any:
    """Python forces a tensor into a plain value: the value is recorded and guarded."""

    def handler(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if recorder.numpy_use.packages is not None:
            recorder.numpy_use.packages.check_tensor(sys._getframe(1))
        recorder.numpy_use.met.note(sys._getframe(1))
        value = recorder.perform(func, args, {})
        recorder.guard(recorder.create(function, (recorder.node_of(args[0]),)), value)
        return value

    return handler


def _truth(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Python asks whether a tensor is true: a way that the program goes."""
    answer = recorder.perform(func, args, {})
    if is_decided(recorder, recorder.node_of(args[0])):
        return answer
    return recorder.truth(recorder.node_of(args[0]), answer, is_data=True)


def _text(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor becomes text: guarded unless it is only shown to people."""
    with recorder.paused():
        text = func(*recorder.concrete(args), **recorder.concrete(kwargs))
    if not is_only_shown(user_frame(2), recorder.paths is None):
        function = format if func.__name__ == "__format__" else repr
        recorder.guard(recorder.create(function, recorder.argument(args)), text)
    return text


def _hash(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return func(*args)


def _copy(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with recorder.paused():
        value = copy.deepcopy(args[0])
    return recorder.result(value, recorder.create(copy.deepcopy, (recorder.node_of(args[0]),)))


def _profile(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A stretch of the program gets a name for the profiler, or ends: nothing that a call of the graph would give."""
    if args:
        optimizers.check_profile(recorder, args[0])
    with recorder.paused():
        return func(*recorder.concrete(args), **recorder.concrete(kwargs))


HANDLERS = {
    "_record_function_enter": _profile,
    "_record_function_enter_new": _profile,
    "_record_function_exit": _profile,
    "_record_function_exit._RecordFunction": _profile,
    "size": _size,
    "numel": _count,
    "nelement": _count,
    "__len__": _length,
    "dim": _dim,
    "ndimension": _dim,
    "__bool__": _truth,
    "__int__": _asked(int),
    "__float__": _asked(float),
    "__index__": _asked(operator.index),
    "__repr__": _text,
    "__format__": _text,
    "__hash__": _hash,
    "__deepcopy__": _copy,
    "backward": tensor_mutation.backward,
    "retain_grad": tensor_mutation.retain_grad,
    "register_hook": tensor_mutation.register_hook,
    "register_post_accumulate_grad_hook": tensor_mutation.register_hook,
}


def hand_out(kind: str, items: list[Any], value: Any, watched: list[Any]) -> Any:
    """An iterator over values that were computed; it relies on the modes of torch staying what they are."""
    return outputs.hand_out(kind, items, value, watched, modes)


def modes() -> tuple[Any, ...]:
    """What decides how torch computes, besides arguments."""
    autocast = tuple((torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda"))
    return torch._C.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype(), autocast


def drain(run: Run, result: Any) -> Any:
    """The result of a program, an iterator walked to its end; raise if that does more than compute."""
    if type(result) not in outputs.KINDS.values():
        return result
    recorder = run.recorder
    with recorder.paused():
        before = torch.get_rng_state()
    stream = recorder.streams.expected
    found = outputs.drain(result)
    if found is None:
        return result
    with recorder.paused():
        draws = not before.equal(torch.get_rng_state()) or recorder.streams.expected is not stream
    if draws or run.rollback.has_saved() or run.state.entries or run.state.changed():
        raise _refused(found)
    found.watched = [*recorder.rollback.watched(), *(held.value for held in run.inputs.containers)]
    return found


def _refused(found: DrainedIterator) -> CaptureError:
    return CaptureError(
        f"the program gives a {found.kind} that does more than compute",
        why="the original would do so when the values are asked for, the graph when it is called",
        fixes=("give a list",),
    )
