"""Where calls of torch that take functions are caught: transforms, ``torch.cond`` and its like, ``Function.apply``.

Comes in: what the run replaces. Goes out: each such call as one node, with recorded bodies (``bodies``). Most are
caught in the functions that do the work, so that it does not matter whether a program wrote ``torch.vmap``, imported
``vmap`` by name, or made the transformed function long before. Outside of a capture, and inside a call that stays one
node, each is the original.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.checkpoint
from torch import is_grad_enabled
from torch._functorch import apis, eager_transforms
from torch.autograd import functional
from torch.autograd.function import FunctionCtx, _SingleLevelFunction

from clew.capture.bytecode.try_blocks import PASSING
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.recording.recorder import Scalar
from clew.frameworks.torch.refusals import refusal
from clew.frameworks.torch.transforms.bodies import (
    Current,
    RecordedBody,
    call_with,
    closed,
    operands_of,
    record,
    result_of,
    run_plainly,
    transform_with,
)
from clew.ir.arguments import leaves
from clew.ir.effects import effect_of, pure
from clew.ir.guests import Effect

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder


PASSING.add(torch.utils.checkpoint._StopRecomputationError)
_checkpoint: Any = torch.utils.checkpoint.checkpoint
_FUNCTIONALS = ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp")
_JACOBIANS = ("jacrev", "jacfwd", "hessian", "linearize")


def install(patches: Patches, current: Current) -> None:
    """Let all of them report to the capture that ``current`` names, if one is recording."""
    _install_autograd(patches, current)
    _install_transforms(patches, current)
    _install_control_flow(patches, current)


def _install_transforms(patches: Patches, current: Current) -> None:
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


# ---- torch.cond, while_loop and map ----------------------------------------------------------------------------------
#
# Both ways, and the loop's body, are captured as graphs inside the call. The branch that is not taken is run too, to
# record it; torch demands that branches have no effects, and the random state is put back after it. In the graph a
# plain ``if`` or ``while`` of Python chooses at each call: nothing is guarded.


@pure
def choose(condition: Any, when_true: Any, true_values: Any, when_false: Any, false_values: Any, *operands: Any) -> Any:
    """The result of one of two bodies on the operands."""
    taken = closed(when_true, true_values) if condition else closed(when_false, false_values)
    return taken(*operands)


@pure
def repeat(condition: Any, condition_values: Any, step: Any, step_values: Any, *carried: Any) -> Any:
    """What is carried after as many steps as the condition holds."""
    while closed(condition, condition_values)(*carried):
        carried = tuple(closed(step, step_values)(*carried))
    return carried


@pure
def stacked(function: Any, values: Any, rows: Any, *args: Any) -> Any:
    """What a body gives for each row, stacked: one tensor, or a tuple of some."""
    if not len(rows):
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    found = [closed(function, values)(row, *args) for row in rows]
    return tuple(map(torch.stack, zip(*found, strict=True))) if isinstance(found[0], tuple) else torch.stack(found)


def _install_control_flow(patches: Patches, current: Current) -> None:
    operators = vars(torch._higher_order_ops)
    patches.in_dict(operators, "map", noted(lambda original: _map(original, current), everywhere=True))
    for home in (torch, torch._higher_order_ops):
        patches.in_dict(vars(home), "cond", noted(lambda original: _cond(original, current), everywhere=True))
        patches.in_dict(vars(home), "while_loop", noted(lambda original: _while_loop(original, current), True))


def _body(recorder: TorchRecorder, function: Callable[..., Any], operands: tuple[Any, ...]) -> tuple[RecordedBody, Any]:
    """A function recorded on the operands, and what it gave."""
    body = RecordedBody(recorder, function)
    value = recorder.perform(lambda: body(*operands), (), {})
    body.finished = True
    if any(effect_of(node) is Effect.WRITE for node in body.nodes()):
        raise refusal(f"{body.__name__}, a branch or loop that writes to tensors,")
    return body, value


def _untaken(recorder: TorchRecorder, function: Callable[..., Any], operands: tuple[Any, ...]) -> RecordedBody:
    stream = recorder.streams.expected
    with recorder.paused():
        state = torch.get_rng_state()
    try:
        body, _ = _body(recorder, function, operands)
    finally:
        with recorder.paused():
            torch.set_rng_state(state)
    if recorder.streams.expected is not stream:
        raise refusal(f"{body.__name__}, a branch that draws random numbers from Python or NumPy,")
    return body


def _cond(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
        recorder = current()
        if recorder is None:
            return original(pred, true_fn, false_fn, operands)
        given = tuple(operands)
        with recorder.paused():
            taken = bool(recorder.concrete(pred))
        ways = {taken: _body(recorder, true_fn if taken else false_fn, given)}
        value = ways[taken][1]
        when = {taken: ways[taken][0], not taken: _untaken(recorder, false_fn if taken else true_fn, given)}
        bodies = [part for way in (True, False) for part in (when[way].graph, tuple(when[way].values))]
        node_args = (recorder.argument(pred), *bodies, *operands_of(recorder, given))
        return result_of(recorder, value, recorder.create(choose, node_args))

    return cond


def _while_loop(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def while_loop(cond_fn: Any, body_fn: Any, carried_inputs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(cond_fn, body_fn, carried_inputs)
        carried = tuple(carried_inputs)
        bodies = [_untaken(recorder, function, carried) for function in (cond_fn, body_fn)]
        parts = [part for body in bodies for part in (body.graph, tuple(body.values))]
        node = recorder.create(repeat, (*parts, *operands_of(recorder, carried)))
        with recorder.paused():
            while run_plainly(recorder, cond_fn, carried, {}):
                carried = tuple(run_plainly(recorder, body_fn, carried, {}))
        return result_of(recorder, recorder.concrete(carried), node)

    return while_loop


def _map(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def over_rows(f: Any, xs: Any, *args: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(f, xs, *args)
        if not all(isinstance(one, torch.Tensor) for one in (xs, *args)):
            raise refusal("map over a nest of tensors")
        with recorder.paused():
            row = xs[0] if xs.dim() and len(xs) else None
            shapes = [recorder.shape(xs)[1:], *map(recorder.shape, args)]
        if row is None:
            raise refusal("map over a tensor without rows")
        for size in [size for shape in shapes for size in shape]:  # what fails in torch's own map fails otherwise
            operator.index(size)
        try:
            body, value = _body(recorder, f, (row, *args))
        except RuntimeError as error:  # torch's own map, which compiles the function, raises another one
            raise refusal(f"map of a function that fails ({error})") from error
        if not all(isinstance(one, torch.Tensor) for one in (value if type(value) is tuple else (value,))):
            raise refusal("map of a function that gives other things than tensors")
        node_args = (body.graph, tuple(body.values), *operands_of(recorder, (xs, *args)))
        with recorder.paused():
            found = stacked(lambda *given: run_plainly(recorder, f, given, {}), (), xs, *args)
        return result_of(recorder, found, recorder.create(stacked, node_args))

    return over_rows


# ---- torch.autograd.Function -----------------------------------------------------------------------------------------
#
# A call of ``apply`` stays one call, with its own backward. Where modules or lists go into it the inside matters: what
# it does to them would be hidden. Without gradients ``apply`` is its ``forward``, so that is entered then; the graph
# holds only while gradients are off. What ``apply`` does to the results of such a ``forward`` besides giving them back,
# for inputs among them or marks on them, is refused.


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
    recorder.guard(recorder.create(is_grad_enabled, ()), False)  # torch's own, also while it is replaced
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


def _install_autograd(patches: Patches, current: Current) -> None:
    patches.on_method(torch.nn.Module, "__setattr__", functools.partial(_set, current=current))
    patches.on_method(torch.Tensor, "__hash__", functools.partial(_hash, current=current))
    apply = vars(torch.autograd.Function)["apply"].__func__  # in its body: programs keep ``Own.apply`` by other names
    patches.in_body(apply, functools.partial(_apply_function, current=current))
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


def _apply_function(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """``Function.apply`` may stay one call."""

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(cls, *args, **kwargs)
        function = MethodType(vars(torch.autograd.Function)["apply"].__func__, cls)
        return record_apply(recorder, cls, function, args, kwargs)

    return apply


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
