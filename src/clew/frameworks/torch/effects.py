"""What functions and methods of torch do besides computing their result.

Pure is what torch's own records vouch for: the schema of the operator behind a C function (it says what is written
and what draws random numbers), and the list of functions that torch lets tensor-like objects override, which are all
functions of tensors. The tables below hold what those records do not say. Everything else is unknown.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.nn import functional
from torch.overrides import get_overridable_functions

from clew.frameworks.torch.calls import named_arguments, operator_of, packet
from clew.frameworks.torch.operators import operator_effect
from clew.frameworks.torch.rules import argument_effect, ends_in_place
from clew.frameworks.torch.tracers import TRACERS
from clew.ir.guests import Effect

WRITING_DUNDERS = frozenset(
    "__iadd__ __isub__ __imul__ __idiv__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__ __ixor__ "
    "__ilshift__ __irshift__ __imatmul__ __setitem__ __delitem__ __setattr__ __delattr__ __setstate__ __set__ "
    "__delete__ __init__".split()
)
_WRITING_METHODS = frozenset(
    "backward register_hook register_post_accumulate_grad_hook retain_grad record_stream set_data module_load "
    "reinforce resize resize_as resize_as_sparse".split()
)
# Lists and arrays of NumPy have methods of these names that write: pure only where the object is surely a tensor.
_WRITING_ELSEWHERE = frozenset({"sort", "put"})

_PURE_FACTORIES = (
    "arange as_tensor asarray bartlett_window blackman_window broadcast_shapes can_cast empty empty_permuted "
    "empty_quantized empty_strided eye from_dlpack from_numpy frombuffer full hamming_window hann_window is_storage "
    "is_tensor kaiser_window linspace logspace ones promote_types range result_type scalar_tensor sparse_bsc_tensor "
    "sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor "
    "to_dlpack tril_indices triu_indices typename vander zeros Size device Tensor"
)
_PURE_FUNCTIONALS = (
    "grouped_mm hardsigmoid hardswish scaled_grouped_mm scaled_mm sigmoid tanh upsample upsample_bilinear "
    "upsample_nearest"
)
_WRITING_FUNCTIONS = re.compile(
    r"_?set_|_?assert|_check|_constrain|sym_constrain|seed$|manual_seed|save$|_?print|init_|autocast_(in|de)crement|"
    r"clear_|_?(enter|exit)_|synchronize|barrier|all_reduce|broadcast$|send$|recv$|register_"
)
_OPERATOR_HOMES = (
    "torch", "torch._C._nn", "torch._C._linalg", "torch._C._fft", "torch._C._special", "torch._C._sparse",
)  # fmt: skip
_TALKING_MODULES = (
    "torch.distributed", "torch.profiler", "torch.autograd.profiler", "torch.cuda", "torch.serialization",
)  # fmt: skip


def function_effect(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
    """The effect of calling ``target``; None when nobody vouches for it."""
    if isinstance(target, (OpOverload, OpOverloadPacket)):
        return operator_effect(target, args, kwargs)
    if isinstance(target, HigherOrderOperator):
        return None
    if isinstance(target, types.MethodWrapperType):
        return _property_effect(target)
    try:
        method, is_pure = _method_names().get(target), target in _pure_functions()
    except TypeError:  # without a hash it was never listed
        return None
    if method is not None:
        return method_effect(method, args, kwargs, surely_tensor=True)
    name = getattr(target, "__name__", "")
    if ends_in_place(name):
        return Effect.WRITE
    if is_pure:
        return argument_effect(name, named_arguments(target, args, kwargs))
    return _effect_by_name(target, name, args, kwargs)


def _effect_by_name(target: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
    """The effect of a function that no list holds: by the operator of its name, or by what its name says it does."""
    operator = operator_of(target)
    if operator is not None and _is_of_tensors(target):
        return operator_effect(operator, args, kwargs, on_tensors=True)
    module = getattr(target, "__module__", None) or ""
    known_writer = _WRITING_FUNCTIONS.match(name) or module.startswith(_TALKING_MODULES)
    return Effect.WRITE if known_writer and module.split(".")[0] == "torch" else None


def method_effect(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], surely_tensor: bool = False
) -> Effect | None:
    """The effect of the method ``name`` of a tensor; None for names that tensors do not have."""
    if name in WRITING_DUNDERS or name in _WRITING_METHODS or ends_in_place(name):
        return Effect.WRITE
    if name not in _pure_methods():
        return None
    if kwargs.get("out") is not None:
        return Effect.WRITE
    if not surely_tensor and (name in _WRITING_ELSEWHERE or (name == "add" and _may_be_set(args))):
        return Effect.NONE if _is_annotated_tensor(args) else Effect.UNKNOWN
    operator = packet(name)
    return Effect.NONE if operator is None else operator_effect(operator, args, kwargs, on_tensors=True)


def _property_effect(target: Any) -> Effect | None:
    """``torch.Tensor.shape.__get__`` and its like."""
    owner = getattr(target.__self__, "__objclass__", None)
    if isinstance(target.__self__, property):
        owner = torch.Tensor
    if not isinstance(owner, type) or not issubclass(torch.Tensor, owner):
        return None
    return Effect.NONE if target.__name__ == "__get__" else Effect.WRITE


def _is_of_tensors(target: Any) -> bool:
    """True for C functions of the parts of torch that hold operators."""
    return target.__module__ in _OPERATOR_HOMES


@functools.cache
def _pure_functions() -> frozenset[Any]:
    """Functions in Python that only compute, as long as their arguments do not ask for more."""
    overridable = get_overridable_functions()
    homes = (torch, torch.functional, functional, torch.linalg, torch.fft, torch.special)
    listed = {function for home in homes for function in overridable.get(home, ()) if operator_of(function) is None}
    factories = [getattr(torch, name) for name in _PURE_FACTORIES.split() if hasattr(torch, name)]
    listed |= {inspect.unwrap(factory) for factory in factories}  # a capture may have replaced some for its time
    listed |= {getattr(functional, name) for name in _PURE_FUNCTIONALS.split() if hasattr(functional, name)}
    listed |= {getattr(torch.signal.windows, name) for name in torch.signal.windows.__all__}
    listed |= {torch.nn.Parameter, torch.fft.fftfreq, torch.fft.rfftfreq}
    listed |= {type(torch.finfo(torch.float32)), type(torch.iinfo(torch.int8))}  # classes that a capture replaces
    listed.update(TRACERS)
    return frozenset(function for function in listed if function is not torch.autocast)


@functools.cache
def _method_names() -> dict[Any, str]:
    """The methods of tensors, each with the name it is reached by (which may not be its own)."""
    members = ((name, getattr(torch.Tensor, name, None)) for name in dir(torch.Tensor))
    return {member: name for name, member in members if callable(member) and not isinstance(member, type)}


@functools.cache
def _pure_methods() -> frozenset[str]:
    """Names of methods of tensors that only compute."""
    overridable = set(get_overridable_functions()[torch.Tensor])
    pure = {name for method, name in _method_names().items() if not name.startswith("_") or method in overridable}
    hidden = {name for name in pure if name.startswith("_") and not name.startswith("__") and packet(name) is None}
    other_names = {"__rdiv__", "__div__"}  # what Python calls __rtruediv__ and __truediv__ has these names in torch
    return frozenset((pure | other_names) - hidden - _WRITING_METHODS - WRITING_DUNDERS)


def _may_be_set(args: tuple[Any, ...]) -> bool:
    """True when the receiver was made by ``set``: its ``add`` writes."""
    receiver = args[0] if args else None
    return getattr(receiver, "target", None) is set or getattr(receiver, "type", None) is set


def _is_annotated_tensor(args: tuple[Any, ...]) -> bool:
    annotation = getattr(args[0], "type", None) if args else None
    return isinstance(annotation, type) and issubclass(annotation, torch.Tensor)
