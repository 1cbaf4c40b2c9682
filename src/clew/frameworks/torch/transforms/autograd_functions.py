"""``torch.autograd.Function``: a call of ``apply`` stays one call, with its own backward.

Where modules or lists go into it the inside matters: what it does to them would be hidden. Without gradients ``apply``
is its ``forward``, so that is entered then, and the graph holds only while gradients are off. What ``apply`` does to
the results of such a ``forward`` besides giving them back, for inputs among them or marks on them, is refused.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.autograd.function import FunctionCtx, _SingleLevelFunction

from clew.capture.patches import Patches
from clew.capture.recording.recorder import Scalar
from clew.frameworks.torch.refusals import refusal
from clew.ir.arguments import leaves

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

_PLAIN = (torch.Tensor, int, float, bool, str, type(None), torch.dtype, torch.device, torch.Size)


def record_apply(
    recorder: TorchRecorder, cls: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A call of ``cls.apply``, which is ``function``, in a program that is being captured."""
    if _is_entered(cls, args) and not kwargs:
        return _entered(recorder, cls, args)
    why = "it has a backward of its own"
    return recorder.whole("call_function", function, function, args, kwargs, leaves((args, kwargs)), why, function)


def _is_entered(cls: Any, args: tuple[Any, ...]) -> bool:
    """Whether something goes in that may be changed unseen, in a call that will have no backward."""
    if torch._C.is_grad_enabled() or cls.setup_context is not _SingleLevelFunction.setup_context:
        return False
    return any(not isinstance(arg, _PLAIN) and not issubclass(type(arg), (Scalar, tuple)) for arg in args)


def _entered(recorder: TorchRecorder, cls: Any, args: tuple[Any, ...]) -> Any:
    recorder.guard(recorder.create(torch.is_grad_enabled, ()), False)
    recorder.rely("requires_grad")
    context = FunctionCtx()
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    with recorder.paused():
        needs = tuple(isinstance(arg, torch.Tensor) and arg.requires_grad for arg in args)
    context.needs_input_grad = needs  # type: ignore[attr-defined]
    result = cls.forward(context, *args)
    given = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
    if hasattr(context, "dirty_tensors") or any(leaf is tensor for leaf in given for tensor in tensors):
        raise refusal(f"{cls.__name__}.apply", "its forward gives inputs back, or writes to them")
    return result


Current: TypeAlias = "Callable[[], TorchRecorder | None]"


def install(patches: Patches, current: Current) -> None:
    """Let all of it report to the capture that ``current`` names, if one is recording."""
    patches.on_method(torch.nn.Module, "__setattr__", functools.partial(_set, current=current))
    patches.on_method(torch.Tensor, "__hash__", functools.partial(_hash, current=current))
    patches.on_class(torch.autograd.Function, "apply", functools.partial(_apply, current=current))
    patches.on_class(torch.jit.ScriptFunction, "__call__", functools.partial(_script, current=current))


def _script(original: Any, current: Current) -> Any:
    """A function compiled by torch.jit stays one call."""

    def __call__(function: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        call = original.__get__(function, type(function))
        if recorder is None:
            return call(*args, **kwargs)
        why = "it is compiled by torch.jit"
        return recorder.whole("call_function", function, call, args, kwargs, leaves((args, kwargs)), why)

    return __call__


def _apply(original: Any, current: Current) -> Any:
    """``Function.apply`` may stay one call."""

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        function = original.__get__(None, cls)
        if recorder is None:
            return function(*args, **kwargs)
        return record_apply(recorder, cls, function, args, kwargs)

    return classmethod(apply)


def _hash(original: Callable[[Any], int], current: Current) -> Callable[[Any], int]:
    """A tensor is asked for its hash: the program may put it into a set, which tells objects apart."""

    def __hash__(tensor: Any) -> int:
        recorder = current()
        if recorder is not None and recorder.running and not recorder.relied.hashed:
            frame: Any = sys._getframe(1)
            if frame.f_code.co_name == "__hash__":  # the method itself, which leads here
                frame = frame.f_back
            home = frame.f_globals.get("__name__", "")
            recorder.relied.hashed = home.partition(".")[0] not in ("torch", "clew", "weakref")
        return original(tensor)

    return __hash__


def _set(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """The program sets an attribute of a module, its mode say: from then on its inside is followed."""

    def __setattr__(module: Any, name: str, value: Any) -> None:
        recorder = current()
        if recorder is not None and recorder.running:
            recorder.touched.add(id(module))
        original(module, name, value)

    return __setattr__
