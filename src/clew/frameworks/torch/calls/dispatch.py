"""What a function of torch is, and which functions are not recorded as plain calls.

Comes in: a function that the program called, and its arguments. Goes out: its traits, looked up once for each function
(the operator that it may be written as, whether it writes, whether the fast path may record it), and for questions such
as ``x.size()`` or ``bool(x)`` a handler. A method that writes in place stays a method: it reads better.
"""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import sys
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any

import torch

from clew.capture.bytecode.statements import is_only_shown
from clew.capture.python.messages import marked
from clew.capture.recording import outputs
from clew.capture.recording.operators import OperatorForm
from clew.capture.recording.outputs import DrainedIterator
from clew.capture.recording.recorder import Scalar
from clew.errors import CaptureError
from clew.frameworks.torch.calls import tensor_mutation
from clew.frameworks.torch.effects import WRITING_DUNDERS
from clew.frameworks.torch.modules import optimizers
from clew.frameworks.torch.scalars import FACT_PROPERTIES, TracedBool, is_decided
from clew.ir.source import user_frame

if TYPE_CHECKING:
    from clew.frameworks.torch.capture import Run
    from clew.frameworks.torch.recorder import TorchRecorder


# ---- flags that decide what a call is --------------------------------------------------------------------------------

_OF_VALUES = frozenset({"training", "train", "use_input_stats"})
"""Flags of torch's Python functions that decide about numbers alone."""


def check_flags(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse traced flags of a function written in Python, as torch's compiled code does: one decides whether the call
    writes (``inplace``), of which rank its result is, or whether it gives several. One that follows from modes is
    guarded."""
    if type(func) is not FunctionType:
        return
    given = list(kwargs.items())
    if any(type(value) is TracedBool for value in args):
        given += zip(_parameters(func), args, strict=False)
    flags: list[tuple[str, Any]] = [(name, value) for name, value in given if type(value) is TracedBool]
    for name, flag in flags:
        if name in _OF_VALUES:
            continue
        if not recorder.is_of_modes(flag.place):
            raise TypeError(f"{func.__name__}(): argument '{name}' must be bool, not TracedBool")
        recorder.guard(flag.place, flag.plain)


@functools.lru_cache(maxsize=1024)
def _parameters(func: FunctionType) -> tuple[str, ...]:
    return tuple(inspect.signature(func).parameters)


# ---- questions and other calls with handlers of their own ------------------------------------------------------------


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
    """Python asks whether a tensor is true: a path that the program takes."""
    answer = recorder.perform(func, args, {})
    if is_decided(recorder, recorder.node_of(args[0])):
        return answer
    return recorder.truth(recorder.node_of(args[0]), answer, is_data=True)


def _text(recorder: TorchRecorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor becomes text: guarded unless it is only shown to people."""
    frame = user_frame(2)
    mark = marked(frame, f"{{:{args[1]}}}" if func.__name__ == "__format__" else "{!r}", args[0])
    if mark is not None:
        return mark
    with recorder.paused():
        text = func(*recorder.concrete(args), **recorder.concrete(kwargs))
    if not is_only_shown(frame, recorder.paths is None):
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


# ---- what is known of a function -------------------------------------------------------------------------------------

_BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "true_divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "pow": operator.pow, "matmul": operator.matmul, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_DUNDERS = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
FORMS = {
    **{name: OperatorForm(function) for name, function in _BINARY.items()},
    **{
        f"__{name.strip('_')}__": OperatorForm(getattr(operator, name))
        for name in [*_DUNDERS, *"lt le gt ge eq ne".split()]
    },
    **{f"__r{name.strip('_')}__": OperatorForm(getattr(operator, name), is_reflected=True) for name in _DUNDERS},
    "__div__": OperatorForm(operator.truediv),
    "__rdiv__": OperatorForm(operator.truediv, is_reflected=True),
    **{name: OperatorForm(operator.neg) for name in ("neg", "negative", "__neg__")},
    **{name: OperatorForm(operator.pos) for name in ("positive", "__pos__")},
    **{name: OperatorForm(operator.invert) for name in ("bitwise_not", "__invert__")},
    "__getitem__": OperatorForm(operator.getitem),
    "__setitem__": OperatorForm(operator.setitem),
}
_NUMBERS = frozenset({int, float, bool, complex})


def takes_operands(form: OperatorForm, args: tuple[Any, ...]) -> bool:
    """Whether these are operands of such an operator: tensors and plain numbers, or the index of one."""
    if len(args) == 2 and form.function is not operator.getitem:
        other = args[1]
        return type(other) in _NUMBERS or isinstance(other, (torch.Tensor, Scalar))
    return True


FACTS = FACT_PROPERTIES | {"names"}
"""Properties that programs branch on."""
SPLITS = frozenset({"split", "split_with_sizes"})
"""Functions that take a tensor apart by a list of sizes."""
VARYING = frozenset(
    "unbind split chunk tensor_split hsplit vsplit dsplit split_with_sizes unsafe_split unsafe_chunk "
    "gradient nonzero nonzero_numpy where stride dim_order unravel_index".split()
)
"""Functions that give as many results as a size or the rank of a tensor says, some of them only if asked so."""
RANKED = frozenset({"squeeze", "squeeze_", "flatten", "tensordot"})
ESCAPES = frozenset(
    "numpy __array__ data_ptr untyped_storage storage __dlpack__ _typed_storage __cuda_array_interface__".split()
)
RESHAPING = frozenset(
    "t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ resize_ resize_as_ set_ as_strided_ apply_ map_".split()
)
REFUSED = frozenset("share_memory_".split())
UNUSUAL = frozenset({"__get__", "__set__", "item", "tolist", *HANDLERS, *ESCAPES, *REFUSED})
"""What is not simply recorded."""
SWITCHES = frozenset({"inplace", "training", "use_input_stats", "max_norm"})
"""Arguments with which some functions write to a tensor that they get."""
LEADING = SWITCHES | {"generator", "out"}
"""Arguments by name that decide what a call does besides computing."""
_COMPILED = frozenset({BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType})


class Traits:
    """What is known of one function; ``is_usual`` if a call that only computes is recorded with no more ado."""

    __slots__ = ("form", "is_method", "is_usual", "op", "target", "writes")

    def __init__(self, func: Any) -> None:
        name: str = getattr(func, "__name__", "")
        self.is_method = bool(torch.overrides.is_tensor_method_or_property(func)) or _is_of_tensors(func)
        self.op = "call_method" if self.is_method else "call_function"
        self.target: Any = name if self.is_method else func
        self.form: OperatorForm | None = FORMS.get(name) if self.is_method else None
        self.writes = (name[-1:] == "_" and name[:2] != "__") or name in WRITING_DUNDERS
        special = self.writes or name in UNUSUAL or name in RANKED or name in VARYING or name in ("tensor", "repeat")
        self.is_usual = type(func) in _COMPILED and not special


def _is_of_tensors(func: Any) -> bool:
    """Whether a function is a compiled method of tensors: torch's own list leaves out ``new_ones`` and its like."""
    return type(func) is MethodDescriptorType and func.__objclass__ in torch.Tensor.__mro__


_TRUE = id(True)


def may_switch(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether one of the arguments may be a switch that is on, or that may be on at another call."""
    if _TRUE in map(id, args) or TracedBool in map(type, args):
        return True
    switches = [kwargs[name] for name in SWITCHES if name in kwargs] if kwargs else []
    return any(type(switch) is TracedBool or bool(switch) for switch in switches)


@functools.lru_cache(maxsize=4096)
def traits_of(func: Any) -> Traits:
    """The traits of a function; remembered, because torch's own answer takes long."""
    traits = Traits(func)
    if traits.is_usual:
        USUAL[func] = traits
    return traits


USUAL: dict[Any, Traits] = {}
"""Functions that were seen on the fast path: compiled ones of torch's own, so there are only so many."""
