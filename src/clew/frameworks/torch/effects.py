"""What a call of torch does besides giving its result: nothing, writing, drawing random numbers, or unknown.

Comes in: a function, a method, an operator or a module, with its arguments. Goes out: an `Effect`, read from schemas of
operators, from rules by name and from rules by class of module; what nobody knows is unknown and is kept by every pass.
`is_total` tells of which calls it is certain that they cannot raise.
"""

from __future__ import annotations

import enum
import functools
import inspect
import operator
import re
import types
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.nn import functional
from torch.nn.modules import activation, batchnorm, dropout, instancenorm, module, pooling, rnn, sparse
from torch.nn.utils import parametrize
from torch.overrides import get_overridable_functions

from clew.frameworks.torch.tracing_tools import TRACERS
from clew.ir.arguments import leaves
from clew.ir.effects import resolve, worst
from clew.ir.guests import Effect, package_of
from clew.ir.node import Node
from clew.ir.types import ArrayType

Named = dict[str, Any]


OPERATORS = frozenset({OpOverload, OpOverloadPacket})


@functools.cache
def packet(name: str) -> OpOverloadPacket | None:
    """The operator ``torch.ops.aten.<name>`` with all its overloads, or None."""
    if name.startswith("__") and not name.endswith("__"):
        return None
    try:
        found = getattr(torch.ops.aten, name)
    except (AttributeError, RuntimeError):  # torch raises either for names that it does not know
        return None
    return found if isinstance(found, OpOverloadPacket) else None


def overloads(operator: Any) -> list[OpOverload]:
    """The overloads of a packet, or the single one."""
    if isinstance(operator, OpOverload):
        return [operator]
    return [getattr(operator, name) for name in operator.overloads()]


def _names_of(target: OpOverload | OpOverloadPacket) -> tuple[str, ...]:
    return () if isinstance(target, OpOverload) else tuple(target.overloads())


def base_name(operator: OpOverload | OpOverloadPacket) -> str:
    """``add`` for ``aten::add.Tensor``."""
    qualified = operator._schema.name if isinstance(operator, OpOverload) else operator._qualified_op_name
    return qualified.partition("::")[2]


@functools.cache
def python_signature(function: Any) -> inspect.Signature | None:
    """The signature of a function written in Python, or None."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def operator_of(function: Any) -> OpOverloadPacket | None:
    """The operator behind one of torch's C functions; they bear its name."""
    return packet(function.__name__) if isinstance(function, BuiltinFunctionType) else None


def named_arguments(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Named]:
    """The arguments by name, once for each overload that takes them; only the keywords if none is known to."""
    if isinstance(target, (OpOverload, OpOverloadPacket)):
        operator: Any = target
    else:
        operator = operator_of(target)
        if operator is None:
            return [_by_signature(python_signature(target), args, kwargs)]
    taken = (_by_schema(overload._schema, args, kwargs) for overload in overloads(operator))
    return [named for named in taken if named is not None] or [dict(kwargs)]


def _by_signature(signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Named:
    if signature is None:
        return dict(kwargs)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:  # the call itself will fail when it runs
        return dict(kwargs)
    bound.apply_defaults()
    rest = next((p.name for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD), None)
    named = dict(bound.arguments)
    named.update(named.pop(rest, {}) if rest is not None else {})
    return named


def _by_schema(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Named | None:
    parameters = schema.arguments
    positional = [parameter for parameter in parameters if not parameter.kwarg_only]
    if len(args) > len(positional):
        return None
    named = {parameter.name: value for parameter, value in zip(positional, args, strict=False)}
    known = {parameter.name for parameter in parameters}
    for key, value in kwargs.items():
        name = "self" if key == "input" and key not in known else key
        if name not in known or name in named:
            return None
        named[name] = value
    return named if _complete(parameters, named) else None


def _complete(parameters: Iterable[Any], named: Named) -> bool:
    """Fill in the defaults; False when a parameter without one was not given."""
    for parameter in parameters:
        if parameter.name not in named:
            if not parameter.has_default_value():
                return False
            named[parameter.name] = parameter.default_value
    return True


# Name -> the chance, and the flag, that must both be on for random numbers to be drawn.
DRAWS_WHEN: dict[str, tuple[str | None, tuple[str, ...]]] = {
    **dict.fromkeys(
        "dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout "
        "native_dropout".split(),
        ("p", ("training", "train")),
    ),
    "rrelu": (None, ("training",)),
    "rrelu_with_noise": (None, ("training",)),
    "rrelu_with_noise_functional": (None, ("training",)),
    "multi_head_attention_forward": ("dropout_p", ("training",)),
    **dict.fromkeys("lstm gru rnn_tanh rnn_relu".split(), ("dropout", ("train",))),
    **dict.fromkeys(
        "scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention "
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention "
        "_scaled_dot_product_cudnn_attention _flash_attention_forward _efficient_attention_forward".split(),
        ("dropout_p", ()),
    ),
}
# These draw whatever their arguments are, unless the samples are handed in.
DRAWS_ALWAYS = frozenset(
    "gumbel_softmax lobpcg pca_lowrank svd_lowrank fractional_max_pool2d fractional_max_pool3d "
    "fractional_max_pool2d_with_indices fractional_max_pool3d_with_indices".split()
)
# Name -> the flag under which the running statistics, if there are any, are written; the schemas do not say so.
WRITES_STATISTICS_WHEN: dict[str, str | None] = {
    **dict.fromkeys(
        "batch_norm native_batch_norm cudnn_batch_norm miopen_batch_norm _batch_norm_impl_index".split(), "training"
    ),
    "instance_norm": "use_input_stats",
    **dict.fromkeys("batch_norm_update_stats batch_norm_gather_stats batch_norm_gather_stats_with_counts".split()),
}
# These normalise rows of their weight in place when a largest norm is given.
RENORMALISES = frozenset({"embedding", "embedding_bag"})
# These call a function of the user's if one is given.
CALLS_BACK = {"triplet_margin_with_distance_loss": "distance_function"}

_ABSENT = object()


def ends_in_place(name: str) -> bool:
    """True for names like ``add_``, by which torch marks what writes to its first argument."""
    return name.endswith("_") and not name.endswith("__")


def is_off(value: Any) -> bool:
    """True for a flag or chance that is surely not set: a node, a traced number, or an argument that is not there, may
    be anything."""
    return type(value) in (bool, int, float) and not value


def argument_effect(name: str, calls: Iterable[dict[str, Any]]) -> Effect:
    """The worst effect that the arguments ask of a function that else is pure, over all readings of the call."""
    return worst(one_effect(name, named) for named in calls)


def one_effect(name: str, named: dict[str, Any]) -> Effect:
    """The effect under one reading of the arguments."""
    if named.get("out") is not None or not is_off(named.get("inplace", False)) or _writes_state(name, named):
        return Effect.WRITE
    if named.get(CALLS_BACK.get(name, "")) is not None:
        return Effect.UNKNOWN
    return Effect.RANDOM if draws(name, named) else Effect.NONE


def draws(name: str, named: dict[str, Any]) -> bool:
    """Whether the call uses random numbers, as far as the tables know."""
    if name in DRAWS_ALWAYS:
        return named.get("_random_samples", named.get("random_samples")) is None
    if name not in DRAWS_WHEN:
        return False
    chance, flags = DRAWS_WHEN[name]
    switches = [named[flag] for flag in flags if flag in named]
    chance_is_off = chance is not None and is_off(named.get(chance, _ABSENT))
    return not chance_is_off and not any(map(is_off, switches))


def _writes_state(name: str, named: dict[str, Any]) -> bool:
    if name in RENORMALISES and named.get("max_norm") is not None:
        return True
    if name not in WRITES_STATISTICS_WHEN:
        return False
    flag = WRITES_STATISTICS_WHEN[name]
    is_on = flag is None or not is_off(named.get(flag, _ABSENT))
    has_statistics = any(named.get(key, _ABSENT) is not None for key in ("running_mean", "running_var"))
    return is_on and has_statistics


_TALKING_NAMESPACES = frozenset(
    "profiler c10d c10d_functional _c10d_functional _c10d_functional_autograd rpc dist symm_mem fsdp streams debug "
    "inductor debugprims rngprims air prepacked_io".split()
)
_TALKING_NAMES = ("assert", "constrain", "dep_token", "wait", "print")


def operator_effect(
    target: OpOverload | OpOverloadPacket, args: tuple[Any, ...], kwargs: dict[str, Any], on_tensors: bool = False
) -> Effect:
    """The effect of an operator; ``on_tensors`` when the call is known not to be one of TorchScript's on lists."""
    name = base_name(target)
    static = worst(_static_effect(overload) for overload in _meant(target, kwargs, on_tensors))
    if static is Effect.RANDOM and name in (DRAWS_WHEN.keys() | DRAWS_ALWAYS):
        static = Effect.NONE
    if not kwargs.keys() & _ASKING and not _is_up_to_arguments(target, _names_of(target)):
        return static
    return worst([static, argument_effect(name, named_arguments(target, args, kwargs))])


_ASKING = frozenset({"out", "inplace"})


@functools.cache
def _is_up_to_arguments(target: OpOverload | OpOverloadPacket, overload_names: tuple[str, ...]) -> bool:
    """Whether arguments other than ``out`` may ask for an effect; a packet may get further overloads."""
    asks = {*DRAWS_WHEN, *DRAWS_ALWAYS, *WRITES_STATISTICS_WHEN, *RENORMALISES, *CALLS_BACK}
    names = {argument.name for overload in overloads(target) for argument in overload._schema.arguments}
    return base_name(target) in asks or "inplace" in names


def _meant(target: OpOverload | OpOverloadPacket, kwargs: dict[str, Any], on_tensors: bool) -> list[OpOverload]:
    """The overloads that a call may reach: those with ``out`` only when it is given."""
    if isinstance(target, OpOverload):
        return overloads(target)
    return _meant_by_packet(target, _names_of(target), on_tensors, kwargs.get("out") is not None)


@functools.cache
def _meant_by_packet(
    target: OpOverloadPacket, overload_names: tuple[str, ...], on_tensors: bool, is_given_out: bool
) -> list[OpOverload]:
    found = overloads(target)
    if on_tensors:
        found = [overload for overload in found if not _writes_plain_list(overload)]
    if is_given_out:
        return found
    return [one for one in found if not any(argument.is_out for argument in one._schema.arguments)]


@functools.cache
def _writes_plain_list(overload: OpOverload) -> bool:
    """True for the overloads of TorchScript that sort or extend a list."""
    written = [argument for argument in overload._schema.arguments if _is_written(argument)]
    return bool(written) and all(str(argument.type) != "Tensor" for argument in written)


def _is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _static_effect(overload: OpOverload) -> Effect:
    """The effect that no argument can change."""
    return Effect.WRITE if _is_registered(overload) else _schema_effect(overload)


@functools.cache
def _schema_effect(overload: OpOverload) -> Effect:
    schema = overload._schema
    namespace, _, name = schema.name.partition("::")
    if schema.is_mutable or any(map(_is_written, schema.arguments)) or ends_in_place(name) or not schema.returns:
        return Effect.WRITE
    if namespace in _TALKING_NAMESPACES or any(word in name for word in _TALKING_NAMES):
        return Effect.WRITE
    return Effect.RANDOM if torch.Tag.nondeterministic_seeded in overload.tags else Effect.NONE


def _is_registered(overload: OpOverload) -> bool:
    """True when the operator was declared effectful with torch; older versions of torch keep no such register."""
    register = getattr(getattr(torch._library, "simple_registry", None), "singleton", None)
    holder = None if register is None else getattr(register.find(overload._name), "effect", None)
    return getattr(holder, "effect", None) is not None


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


_SHARING = frozenset({"set_", "requires_grad_", "share_memory_", "rename_", "resize_", "resize_as_"})
"""Names like those of in-place operators of what does other things to a tensor than write numbers into it."""


@functools.cache
def only_writes_first(name: str) -> bool:
    """Whether the in-place operator ``name`` writes numbers into its first argument, and nothing else."""
    if name in WRITING_DUNDERS:
        return name == "__setitem__" or (name.startswith("__i") and name != "__init__")
    operator = packet(name) if ends_in_place(name) and name not in _SHARING else None
    return operator is not None and all(map(_writes_first_alone, overloads(operator)))


def _writes_first_alone(overload: OpOverload) -> bool:
    written = [_is_written(argument) for argument in overload._schema.arguments]
    is_random = torch.Tag.nondeterministic_seeded in overload.tags
    return not is_random and bool(written) and written[0] and not any(written[1:])


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


_KNOWN_ACTIVATIONS = (functional.relu, functional.gelu)
_TALKING = ("torch.nn.parallel",)


def module_effect(root: nn.Module) -> Effect | None:
    """The effect of calling ``root``; None when its class is not torch's own."""
    if not _is_torchs_own(root):
        return None
    if module._global_forward_hooks or module._global_forward_pre_hooks:
        return Effect.UNKNOWN
    return worst(part_effect(part) for part in root.modules()) if root._modules else part_effect(root)


def written_by(root: nn.Module) -> Iterator[Tensor]:
    """The tensors of a module that calling it may write to: its buffers, and weights brought to a norm first."""
    yield from root.buffers()
    for part in root.modules():
        if isinstance(part, (sparse.Embedding, sparse.EmbeddingBag)) and part.max_norm is not None:
            yield part.weight


def written_now(root: nn.Module) -> Iterator[Tensor]:
    """The tensors of a module that calling it in the mode that it is in may write to: norms write while training."""
    is_resting = isinstance(root, _NORMS) and _is_torchs_own(root) and not root.training
    return iter(()) if is_resting else written_by(root)


_NORMS = (batchnorm._NormBase, instancenorm._InstanceNorm)


def writes_only_itself(root: nn.Module) -> bool:
    """Whether a module, of torch's own, writes to nothing but its own tensors when it is called."""
    if module_effect(root) in (None, Effect.UNKNOWN):
        return False
    return not any(getattr(part, "inplace", False) for part in root.modules())


def _is_torchs_own(part: nn.Module) -> bool:
    """True for exactly the classes of ``torch.nn``, and those that torch derived from them to hold parametrizations."""
    kind: Any = type(part)
    if kind.__module__ == parametrize.__name__ and parametrize.is_parametrized(part):
        kind = kind.__bases__[0]
    return _is_class_of_torch(kind)


@functools.lru_cache(maxsize=1024)
def _is_class_of_torch(kind: Any) -> bool:
    inside = kind.__module__ == "torch.nn" or kind.__module__.startswith("torch.nn.")
    return inside and kind is not nn.Module and not kind.__module__.startswith(_TALKING)


def part_effect(part: nn.Module) -> Effect:
    """The effect of one module, its children left aside."""
    has_hooks = part._forward_hooks or part._forward_pre_hooks
    if has_hooks or "forward" in vars(part) or not _is_torchs_own(part):
        return Effect.UNKNOWN
    if getattr(part, "inplace", False):
        return Effect.WRITE
    kind: Any = type(part)
    rule = _rule_for(kind)
    return Effect.NONE if rule is None else rule(part)


@functools.lru_cache(maxsize=1024)
def _rule_for(kind: type) -> Callable[[Any], Effect] | None:
    return next((rule for kinds, rule in _RULES if issubclass(kind, kinds)), None)


def _dropout(part: Any) -> Effect:
    return Effect.RANDOM if part.p else Effect.NONE


def _norm(part: Any) -> Effect:
    """Running statistics are written while training; a synchronised norm talks to other processes then."""
    has_statistics = part.track_running_stats or part.running_mean is not None
    return Effect.WRITE if has_statistics or isinstance(part, nn.SyncBatchNorm) else Effect.NONE


def _with_dropout(part: Any) -> Effect:
    return Effect.RANDOM if part.dropout else Effect.NONE


def _randomised_relu(part: Any) -> Effect:
    return Effect.RANDOM


def _fractional_pool(part: Any) -> Effect:
    return Effect.RANDOM if part._random_samples is None else Effect.NONE


def _embedding(part: Any) -> Effect:
    return Effect.WRITE if part.max_norm is not None else Effect.NONE


def _with_callback(field: str) -> Callable[[Any], Effect]:
    """A module that calls what the user gave it: pure if that is one of torch's known activations or a module."""

    def rule(part: Any) -> Effect:
        callback = getattr(part, field)
        known = callback is None or callback in _KNOWN_ACTIVATIONS or isinstance(callback, nn.Module)
        return Effect.NONE if known else Effect.UNKNOWN

    return rule


def _distance(part: Any) -> Effect:
    """The default distance is a module of torch's own, so it is judged as a child."""
    is_default = isinstance(part.distance_function, nn.PairwiseDistance)
    return Effect.NONE if is_default else Effect.UNKNOWN


def _spectral_norm(part: Any) -> Effect:
    """A step of the power iteration is written into buffers at each call while training."""
    return Effect.WRITE


def _unknown(part: Any) -> Effect:
    return Effect.UNKNOWN


_RULES: tuple[tuple[Any, Callable[[Any], Effect]], ...] = (
    (dropout._DropoutNd, _dropout),
    (_NORMS, _norm),
    (rnn.RNNBase, _with_dropout),
    (activation.MultiheadAttention, _with_dropout),
    (activation.RReLU, _randomised_relu),
    ((pooling.FractionalMaxPool2d, pooling.FractionalMaxPool3d), _fractional_pool),
    ((sparse.Embedding, sparse.EmbeddingBag), _embedding),
    ((nn.TransformerEncoderLayer, nn.TransformerDecoderLayer), _with_callback("activation")),
    (nn.TripletMarginWithDistanceLoss, _distance),
    (nn.utils.parametrizations._SpectralNorm, _spectral_norm),
    (nn.modules.lazy.LazyModuleMixin, _unknown),
)


_OPERATORS = frozenset(
    getattr(operator, name) for name in "add sub mul truediv neg matmul eq ne lt le gt ge and_ or_ xor invert".split()
)
_NAMES = frozenset(
    "abs add addmm all amax amin any baddbmm bitwise_and bitwise_not bitwise_or bmm cat chunk clamp clip clone "
    "contiguous conv1d conv2d conv3d cos cumsum detach div dropout elu eq exp expand expand_as flatten float ge gelu "
    "group_norm gt half hardtanh bfloat16 layer_norm le leaky_relu linear log log_softmax logical_and logical_not "
    "logical_or lt masked_fill matmul maximum mean minimum mish mm mul ne neg ones_like permute relu relu6 reshape "
    "rms_norm rsqrt scaled_dot_product_attention sigmoid silu sin softmax softplus split sqrt square squeeze stack sub "
    "sum tanh to transpose tril triu type_as unbind unsqueeze var view where zeros_like".split()
)
_LAYERS: frozenset[type] = frozenset(
    getattr(torch.nn, name)
    for name in (
        "Linear LayerNorm GroupNorm Dropout Identity ReLU ReLU6 GELU SiLU Mish Tanh Sigmoid Softmax Softplus Hardtanh "
        "LeakyReLU ELU Conv1d Conv2d Conv3d Flatten"
    ).split()
)
_FACTS = frozenset({"shape", "ndim", "dtype", "device"})


def is_total(node: Node, root: Any) -> bool:
    """Whether a call gives a result, and does not wait for what its tensors hold."""
    if node.op == "call_module":
        return type(resolve(root, str(node.target))) in _LAYERS
    if node.op == "call_method":
        return node.target in _NAMES
    target = node.target
    if target is getattr:
        return node.args[1] in _FACTS
    if target is operator.getitem:
        return not any(isinstance(one, Node) and isinstance(one.value_type, ArrayType) for one in leaves(node.args[1]))
    if isinstance(target, type):  # a container in which results are given back
        return issubclass(target, (tuple, list, dict)) and all(user.op == "output" for user in node.users)
    if getattr(target, "__module__", "") == "_operator":
        return target in _OPERATORS
    return package_of(target) == "torch" and getattr(target, "__name__", "") in _NAMES


# ---- the memory of a result ------------------------------------------------------------------------------------------
#
# Whether the result of a call of torch is new memory, a view of its first argument, or either.
#
# In comes the name of an operation that only computes its result; out comes a ``Result``. Views are a table. New memory
# is what ATen's schema declares, for operators with kernels of their own; the schemas of operators that merely call
# others (``dropout``, ``type_as``) are not to be relied on, so those are new only if they are listed here. Everything
# else may be either: ``reshape`` gives a view where it can.


class Result(enum.Enum):
    """How the memory of a result relates to that of the arguments."""

    NEW = "new memory"
    VIEW = "a view of the first argument"
    PARTS = "several views of the first argument"
    EITHER = "a view or new memory"


VIEWS = frozenset(
    "view view_as unsqueeze squeeze unflatten t transpose permute swapaxes swapdims movedim moveaxis matrix_transpose "
    "select narrow diagonal expand expand_as broadcast_to detach real imag view_as_real view_as_complex unfold "
    "as_strided alias T mT H mH data".split()
)
PARTS = frozenset("split chunk unbind tensor_split hsplit vsplit dsplit split_with_sizes unsafe_split".split())
_NEW_COMPOSITES = frozenset(
    "matmul linear tensordot layer_norm group_norm instance_norm batch_norm rms_norm softmax log_softmax conv1d conv2d "
    "conv3d conv_transpose1d conv_transpose2d conv_transpose3d scaled_dot_product_attention where bilinear normalize "
    "cross_entropy relu6 selu embedding gelu silu mish hardswish hardsigmoid hardtanh elu celu leaky_relu relu sigmoid "
    "tanh softplus logsigmoid glu one_hot max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d square "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d cosine_similarity mse_loss l1_loss nll_loss max min "
    "std var outer multiply subtract divide true_divide greater less greater_equal less_equal not_equal concat "
    "concatenate vstack hstack column_stack absolute argsort repeat_interleave with_item fitted and_ or_ xor truediv "
    "floordiv mod not_ invert".split()
)
"""Operators that call others, functions in Python and Python's own operators whose result is never a view."""


@functools.cache
def result_memory(name: str) -> Result:
    """What is known about the result of the function or method of this name."""
    if name in VIEWS:
        return Result.VIEW
    if name in PARTS:
        return Result.PARTS
    if name in _NEW_COMPOSITES:
        return Result.NEW
    operator = packet(name)
    return Result.NEW if operator is not None and all(map(_gives_new, overloads(operator))) else Result.EITHER


def _gives_new(overload: OpOverload) -> bool:
    schema = overload._schema
    if any(argument.is_out for argument in schema.arguments):
        return True  # the call says so itself, with ``out``
    name = overload._name
    if not torch._C._dispatch_has_kernel(name):
        return True  # TorchScript's, of lists and numbers
    calls_others = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
    return not calls_others and all(value.alias_info is None for value in schema.returns)
