"""Where calls of torch's transforms are caught, however the program came by them.

Most are caught in the functions that do the work, so that it does not matter whether a program wrote ``torch.vmap``,
imported ``vmap`` by name, or made the transformed function long before the capture. Outside of a capture, and inside a
call that stays one node, each is the original.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.checkpoint
from torch._functorch import apis, eager_transforms
from torch.autograd import functional

from clew.capture.bytecode.try_blocks import PASSING
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.recording.opaque_calls import CannotFollow
from clew.frameworks.torch.refusals import refusal
from clew.frameworks.torch.transforms.bodies import Current, call_with, record, transform_with

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

PASSING.add(torch.utils.checkpoint._StopRecomputationError)
_checkpoint: Any = torch.utils.checkpoint.checkpoint
_FUNCTIONALS = ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp")
_JACOBIANS = ("jacrev", "jacfwd", "hessian", "linearize")


def install(patches: Patches, current: Current) -> None:
    """Let the transforms report to the capture that ``current`` names, if one is recording."""
    raw = _checkpoint.__wrapped__
    patches.in_dict(vars(raw), "__dynamo_disable", lambda original: _taking(original, _checkpoint, current), raw)
    patches.in_dict(vars(apis), "vmap_impl", lambda original: _vmap(original, current))
    for name, transform in (("grad_impl", torch.func.grad), ("grad_and_value_impl", torch.func.grad_and_value)):
        patches.in_dict(vars(eager_transforms), name, functools.partial(_grad, transform=transform, current=current))
    patches.in_dict(vars(eager_transforms), "_vjp_with_argnums", lambda original: _vjp(original, current))
    patches.in_dict(vars(eager_transforms), "_jvp_with_argnums", lambda original: _jvp(original, current))
    for home, names, make in (
        (functional, _FUNCTIONALS, lambda original: _taking(original, original, current)),
        (torch.func, _JACOBIANS, lambda original: _transforming(original, current)),
    ):
        for name in names:
            patches.in_dict(vars(home), name, noted(make))
    flexible = sys.modules.get("torch.nn.attention.flex_attention")
    if flexible is not None:
        patches.in_dict(vars(flexible), "flex_attention", noted(lambda original: _compiled(original, current)))


def _compiled(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function that torch compiles, with the functions that it is given, at its first call."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(*args, **kwargs)
        why = "torch compiles it together with the functions that it is given"
        if any(map(callable, (*args, *kwargs.values()))):
            raise refusal(f"{original.__name__} with functions of the program", why, CannotFollow)
        return recorder.whole("call_function", original, original, args, kwargs, (), why, original)

    return call


def _taking(original: Callable[..., Any], target: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function whose first argument is a function."""

    @functools.wraps(original)
    def take(function: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(function, *args, **kwargs)
        return record(recorder, (call_with, target), function, lambda b, a, k: original(b, *a, **k), args, kwargs)

    return take


def _transforming(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function that makes a function of another one."""

    @functools.wraps(original)
    def transform(function: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return original(function, *args, **kwargs)
        options = dict(zip(("argnums",), args, strict=False)) | kwargs

        def transformed(*inputs: Any, **named: Any) -> Any:
            recorder = current()
            if recorder is None:
                return original(function, **options)(*inputs, **named)
            return _apply(recorder, original, options, function, inputs, named)

        return transformed

    return transform


def _apply(
    recorder: TorchRecorder, transform: Any, options: dict[str, Any], function: Any, args: Any, kwargs: Any
) -> Any:
    given = recorder.argument(options)
    plain = recorder.concrete(options)
    return record(
        recorder,
        (transform_with, transform, given),
        function,
        lambda body, inputs, named: transform(body, **plain)(*inputs, **named),
        args,
        kwargs,
    )


def _vmap(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def vmap_impl(
        func: Any, in_dims: Any, out_dims: Any, randomness: str, chunk_size: Any, *args: Any, **kwargs: Any
    ) -> Any:
        recorder = current()
        if recorder is None:
            return original(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)
        given = {"in_dims": in_dims, "out_dims": out_dims, "randomness": randomness, "chunk_size": chunk_size}
        usual = {"in_dims": 0, "out_dims": 0, "randomness": "error", "chunk_size": None}
        options = {name: value for name, value in given.items() if value is not usual[name]}
        return _apply(recorder, torch.vmap, options, func, args, kwargs)

    return vmap_impl


def _grad(original: Callable[..., Any], transform: Any, current: Current) -> Callable[..., Any]:
    def impl(func: Any, argnums: Any, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        recorder = current()
        if recorder is None:
            return original(func, argnums, has_aux, args, kwargs)
        options = {"argnums": argnums} | ({"has_aux": True} if has_aux else {})
        return _apply(recorder, transform, options, func, args, kwargs)

    return impl


def _vjp(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def vjp(func: Any, *primals: Any, argnums: Any = None, has_aux: bool = False) -> Any:
        recorder = current()
        if recorder is None:
            return original(func, *primals, argnums=argnums, has_aux=has_aux)
        options = {"argnums": argnums, "has_aux": has_aux}
        target, kept = (original, options) if argnums is not None else (torch.func.vjp, {"has_aux": has_aux})
        run = functools.partial(original, **options)
        head = (call_with, target)
        kept = {name: value for name, value in kept.items() if value is not False}
        return record(recorder, head, func, lambda body, args, kwargs: run(body, *args), primals, kept)

    return vjp


def _jvp(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def jvp(func: Any, primals: Any, tangents: Any, argnums: Any, *, strict: bool = False, has_aux: bool) -> Any:
        recorder = current()
        options = {"strict": strict, "has_aux": has_aux}
        if recorder is None or argnums is not None:
            return original(func, primals, tangents, argnums, **options)
        run = functools.partial(original, argnums=None, **options)
        kept = {name: value for name, value in options.items() if value}
        head = (call_with, torch.func.jvp)
        return record(recorder, head, func, lambda body, args, kwargs: run(body, *args), (primals, tangents), kept)

    return jvp
