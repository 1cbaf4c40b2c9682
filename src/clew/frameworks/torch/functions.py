"""``torch.autograd.Function``: a call of ``apply`` stays one call, with its own backward.

Where modules or lists go into it the inside matters: what it does to them would be hidden. Without gradients ``apply``
is its ``forward``, so that is entered then, and the graph holds only while gradients are off. What ``apply`` does to
the results of such a ``forward`` besides giving them back, for inputs among them or marks on them, is refused.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import FunctionCtx, _SingleLevelFunction

from clew.capture.example.recorder import Scalar
from clew.frameworks.torch.refusals import refusal
from clew.ir.arguments import leaves

_PLAIN = (torch.Tensor, int, float, bool, str, type(None), torch.dtype, torch.device, torch.Size)


def apply(recorder: Any, cls: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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


def _entered(recorder: Any, cls: Any, args: tuple[Any, ...]) -> Any:
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
