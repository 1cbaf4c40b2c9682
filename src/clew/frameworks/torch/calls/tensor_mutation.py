"""What a program does to tensors besides computing: properties set, shapes changed in place, hooks, gradients.

Each becomes a node of its own, in order. What belongs to the world outside (an argument's data, a parameter's
gradient, a hook on either) is noted first, so that the end of the capture can undo it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from clew.capture.guards.notes import CHECKS
from clew.capture.recording.recorder import Scalar
from clew.errors import CaptureError
from clew.frameworks.torch.effects import function_effect
from clew.frameworks.torch.refusals import refusal
from clew.frameworks.torch.transforms.bodies import RecordedBody, run_plainly
from clew.ir.arguments import leaves
from clew.ir.guests import Effect

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

_PLAIN = (int, float, bool, str, bytes, complex, type(None), torch.dtype, torch.device, torch.Size)
_CODE = (type, ModuleType, BuiltinFunctionType, torch.nn.Module)


READ = frozenset("T mT H mH data real imag grad nbytes _version".split())
"""Properties that the graph reads too, at the same place."""
_FACTS = ("dtype", "device", "ndim", "requires_grad", "layout", "is_leaf")


class Undo:
    """How to take back what was done to tensors that are not the program's own, the last first."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], Any]] = []
        self._graded: set[int] = set()
        self.facts: dict[int, dict[str, Any]] = {}
        """What was true of tensors of the outside before the program changed it, by their identity."""

    def keep_facts(self, tensor: torch.Tensor) -> None:
        """Note the facts about a tensor whose strides or dtype are about to change."""
        if id(tensor) not in self.facts:
            self.facts[id(tensor)] = found = {}
            for name in _FACTS:
                with contextlib.suppress(RuntimeError):  # autograd does not tell where a view comes from in some modes
                    found[name] = getattr(tensor, name)

    def add(self, step: Callable[[], Any]) -> None:
        """Note a step; it is done if the capture puts things back."""
        self._steps.append(step)

    def keep_gradient(self, tensor: torch.Tensor) -> None:
        """Note the gradient of a tensor, once: which tensor it is, and what it holds."""
        if tensor.is_leaf and id(tensor) not in self._graded:
            self._graded.add(id(tensor))
            gradient = tensor.grad
            values = None if gradient is None else gradient.detach().clone()
            self.add(lambda: _restore_gradient(tensor, gradient, values))

    def begin(self) -> tuple[int, set[int]]:
        """Note everything anew from here on; the answer is for ``run_from``."""
        graded, self._graded = self._graded, set()
        return len(self._steps), graded

    def run_from(self, first: int, graded: set[int]) -> None:
        """Take back what came after the first steps; they stay, for it may be done again."""
        self._graded = graded
        is_enabled = torch._C.is_grad_enabled()
        torch._C._set_grad_enabled(False)  # not by torch.no_grad, which is recorded
        try:
            with torch._C.DisableTorchFunction():
                for step in reversed(self._steps[first:]):
                    step()
        finally:
            torch._C._set_grad_enabled(is_enabled)

    def run(self) -> None:
        """Take everything back."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            while self._steps:
                self._steps.pop()()


def _restore_gradient(tensor: torch.Tensor, gradient: Any, values: Any) -> None:
    tensor.grad = gradient
    if gradient is not None and not torch.equal(gradient, values):
        gradient.copy_(values)


def perform(recorder: TorchRecorder, traits: Any, writes: bool, func: Any, given: Any, nodes: Any) -> Any:
    """Make a call; if it fails, and does nothing but compute, the program may catch the error."""
    known = recorder.error_notes.failure
    try:
        return recorder.perform(func, *given)
    except Exception as error:
        if known is None and not writes and function_effect(func, *given) is Effect.NONE:
            recorder.error_notes.failure = None
            recorder.note_failure(error, traits.target, *nodes)
        raise


def set_property(recorder: TorchRecorder, func: Any, args: tuple[Any, ...]) -> None:
    """``x.data = y``, ``x.requires_grad = True``, ``p.grad = None``."""
    tensor, value = args
    name = func.__self__.__name__
    if name not in ("data", "requires_grad", "grad"):
        raise refusal(f"assigning to the property {name} of a tensor")
    node_args = (recorder.node_of(tensor), name, recorder.argument(value))
    if name == "data":
        recorder.settle_shapes()
    with torch._C.DisableTorchFunction():
        if recorder.is_outside(tensor):
            recorder.rollback.undo.keep_facts(tensor)
        if name == "data":
            recorder.pass_no_return(tensor, "sets the data of")
            recorder.rollback.undo.add(functools.partial(setattr, tensor, "data", tensor.data))
        elif name == "grad":
            recorder.rollback.undo.keep_gradient(tensor)
        elif tensor.is_leaf:
            recorder.pass_no_return(tensor, "sets requires_grad of")
            recorder.rollback.undo.add(functools.partial(setattr, tensor, "requires_grad", tensor.requires_grad))
    recorder.perform(func, args, {})
    recorder.create(setattr, node_args)


def before_reshaping(recorder: TorchRecorder, name: str, tensor: torch.Tensor) -> None:
    """A shape changes in place: sizes that the program asked for before are those before the change."""
    if name in ("apply_", "map_"):
        raise refusal(f"{name}, which calls a function for each number,")
    recorder.settle_shapes()
    if not recorder.is_outside(tensor):
        return
    if name in ("resize_", "resize_as_", "set_"):
        raise refusal(f"{name} on a tensor that is not the program's own")
    recorder.pass_no_return(tensor, "changes the shape of")
    with torch._C.DisableTorchFunction():
        recorder.rollback.undo.keep_facts(tensor)
        recorder.rollback.undo.add(_Place.of(tensor).put_back)


class _Place(NamedTuple):
    """Which part of its memory a tensor is."""

    tensor: torch.Tensor
    size: torch.Size
    stride: tuple[int, ...]
    offset: int | torch.SymInt

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Place:
        return cls(tensor, tensor.size(), tensor.stride(), tensor.storage_offset())

    def put_back(self) -> None:
        self.tensor.set_(self.tensor.untyped_storage(), self.offset, self.size, self.stride)  # type: ignore[call-overload]


def places_of(recorder: TorchRecorder, out: Any) -> list[_Place]:
    """Where the tensors of the outside lie that a call is given for its results, which may get other sizes by it."""
    with torch._C.DisableTorchFunction():
        found = [one for one in leaves(out) if isinstance(one, torch.Tensor) and recorder.is_outside(one)]
        return [_Place.of(one) for one in found if one.layout is torch.strided]


def check_resized(recorder: TorchRecorder, places: Sequence[_Place]) -> None:
    """Raise if a call has given a tensor of the outside another size."""
    with torch._C.DisableTorchFunction():
        changed = [place for place in places if place.tensor.size() != place.size]
    for place in changed:
        recorder.rollback.undo.add(place.put_back)
    if changed:
        raise refusal("out= with a tensor of another size that is not the program's own")


def backward(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``loss.backward()``: the gradients of all tensors outside are noted, since any of them may be a leaf of it."""
    for tensor in recorder.rollback.watched():
        _check_hooks_on(tensor)
        recorder.rollback.undo.keep_gradient(tensor)
    return recorder.record(func, func.__name__, args, kwargs)


def _check_hooks_on(tensor: torch.Tensor) -> None:
    """Raise where a hook on a tensor that is not the program's own may do what could not be taken back."""
    with torch._C.DisableTorchFunction():
        on_gradient, after = tensor._backward_hooks or {}, getattr(tensor, "_post_accumulate_grad_hooks", None)
    if after:
        raise refusal("backward() where a hook runs after a gradient has arrived")
    for hook in on_gradient.values():
        for value in _reached(hook):
            if not isinstance(value, (*_PLAIN, *_CODE, torch.Tensor)):
                raise refusal(f"backward() with a hook on a gradient that uses a {type(value).__name__}")


def retain_grad(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor shall keep its gradient."""
    if recorder.is_outside(args[0]) and not args[0].is_leaf:
        raise refusal("retain_grad on an argument, which could not be taken back,")
    return recorder.record(func, func.__name__, args, kwargs)


class Handle:
    """The handle of a hook: removing it is recorded too."""

    def __init__(self, recorder: TorchRecorder, handle: Any, node: Any) -> None:
        self._recorder, self._handle, self._node = recorder, handle, node
        self.id = handle.id

    def remove(self) -> None:
        """Take the hook away."""
        self._handle.remove()
        if self._recorder.open and not self._recorder.depth:
            self._recorder.create_node("call_method", "remove", (self._node,), {})


def register_hook(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that sees the gradient: as it is if it uses nothing of this run, as a captured body otherwise."""
    tensor, hook = args
    node_args = (recorder.node_of(tensor), _hook_argument(recorder, hook, tensor))
    handle = recorder.perform(func, (tensor, lambda *given: run_plainly(recorder, hook, given, {})), {})
    recorder.rollback.undo.add(handle.remove)
    recorder.pass_no_return(tensor, "puts a hook on")
    return Handle(recorder, handle, recorder.create_node("call_method", func.__name__, node_args, {}))


def _hook_argument(recorder: TorchRecorder, hook: Any, tensor: torch.Tensor) -> Any:
    traced = False
    for value in _reached(hook):
        if issubclass(type(value), Scalar) or isinstance(value, torch.Tensor):
            traced = True
        elif not isinstance(value, (*_PLAIN, *_CODE)) and not recorder.surroundings.holds(value):
            raise refusal(f"a hook that uses a {type(value).__name__} of this run")
    if not traced:
        recorder.check_opaque(hook, "a hook runs after the program has ended")
        return hook
    body = RecordedBody(recorder, hook)
    with recorder.paused(), torch.no_grad(), recorder.new_mode():  # torch has turned the mode off for this call
        body(torch.ones_like(tensor))
    if any(node.target in CHECKS for node in body.nodes()):
        raise refusal("a hook that decides by the values of a gradient")
    return recorder.create(functools.partial, (body.graph, *body.values))


def _reached(function: Any, depth: int = 4) -> Iterator[Any]:
    """The objects that a function has at hand besides its arguments and its module."""
    if isinstance(function, functools.partial):
        parts: list[Any] = [function.func, *function.args, *function.keywords.values()]
    elif isinstance(function, MethodType):
        parts = [function.__func__, function.__self__]
    elif isinstance(function, FunctionType):
        parts = [*inspect.getclosurevars(function).nonlocals.values(), *(function.__defaults__ or ())]
        parts += (function.__kwdefaults__ or {}).values()
    else:
        yield function
        return
    for part in parts:
        if depth:
            yield from _reached(part, depth - 1)
        else:
            raise CaptureError("a hook holds functions in functions, too deep to follow")
