"""Signatures of torch's functions, and arguments matched to them; the names are those of torch.fx.operator_schemas.

The schemas are torch's own knowledge, so they are asked of torch. The matching is done here, because arguments may be
nodes of Clew's graphs, which pass through untouched. Where several overloads take the arguments, the types decide.
"""

from __future__ import annotations

import inspect
import numbers
import types
import typing
import warnings
from typing import Any, NamedTuple

import torch
from torch._jit_internal import boolean_dispatched
from torch._ops import OpOverload, OpOverloadPacket
from torch.fx import operator_schemas

from clew.errors import AmbiguousOverload, MissingAttribute, MutableOperation
from clew.frameworks.torch.names import qualified_name


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call: positional ones and keywords."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Any, return_schemas: bool = False) -> Any:
    """The signatures of all overloads of a function of torch, or None.

    With ``return_schemas`` the answer is a pair: the signatures and torch's schemas of them, each of which may be None.
    """
    return operator_schemas.get_signature_for_torch_op(op, return_schemas=return_schemas)  # type: ignore[call-overload]


def create_type_hint(x: Any) -> Any:
    """A type for a nest of types: ``[int, int]`` gives ``list[int]``, a type gives itself."""
    if not isinstance(x, (list, tuple)):
        return x
    items = [create_type_hint(item) for item in x]
    if any(not isinstance(item, (type, types.GenericAlias)) and item is not Any for item in items):
        warnings.warn(f"no type hint can be made of {x!r}: it holds something that is no type", stacklevel=2)
        return x
    base: Any = Any
    if items and all(isinstance(item, type) for item in items):
        common = [item for item in items if all(issubclass(other, item) for other in items)]
        base = common[0] if common else Any
    return list[base] if isinstance(x, list) else tuple[base, ...]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether a parameter of ``signature_type`` takes a value of ``argument_type``, as torch's C functions do."""
    if signature_type is argument_type:
        return True
    origin = typing.get_origin(signature_type)
    if origin in (typing.Union, types.UnionType):
        return any(type_matches(option, argument_type) for option in typing.get_args(signature_type))
    if origin is list:
        return _list_takes(typing.get_args(signature_type)[0], argument_type)
    if signature_type is int and argument_type is torch.dtype:  # schemas write a dtype as its number
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    return _is_subclass(argument_type, signature_type)


def _list_takes(element: Any, argument_type: Any) -> bool:
    """A list of ints takes an int too, and any list takes a tuple of the same elements."""
    if argument_type is int and element is int:
        return True
    if typing.get_origin(argument_type) in (list, tuple):
        inner = [item for item in typing.get_args(argument_type) if item not in (..., ())]
        return all(type_matches(element, item) for item in inner)
    return False


def _is_subclass(kind: Any, base: Any) -> bool:
    return inspect.isclass(kind) and inspect.isclass(base) and issubclass(kind, base)


def check_for_mutable_operation(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise if ``target``, called with these arguments, surely writes to one of them; say nothing when in doubt."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    if not signatures or not schemas:
        return
    pairs = zip(signatures, schemas, strict=True)
    taken = [schema for signature, schema in pairs if _takes(signature, args, kwargs)]
    if len(taken) == 1 and taken[0].is_mutable:
        raise MutableOperation(
            f"Tried to trace mutable operation {taken[0]}",
            why="it writes to one of its arguments, and only functional operations are wanted here",
            fixes=["use the variant that returns a new tensor, without a trailing underscore and without out="],
        )


def _takes(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def normalize_function(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments matched to the signature of ``target`` with defaults filled in; None if that cannot be told.

    Where several overloads take the arguments, ``arg_types`` and ``kwarg_types`` choose; without them it is an error.
    """
    kwargs = kwargs or {}
    if not isinstance(target, (types.BuiltinFunctionType, OpOverload, OpOverloadPacket)):
        target = getattr(target, "_op", target)  # wrappers of operators keep the operator there
    if not isinstance(target, (types.BuiltinFunctionType, OpOverload, OpOverloadPacket)):
        signature = _python_signature(target)
        return None if signature is None else _matched(signature, args, kwargs, normalize_to_only_use_kwargs)
    signatures = get_signature_for_torch_op(target) or []
    taken = [signature for signature in signatures if _takes(signature, args, kwargs)]
    if len(taken) > 1:
        taken = _chosen_by_types(target, taken, arg_types, kwarg_types)
    return _matched(taken[0], args, kwargs, normalize_to_only_use_kwargs) if taken else None


def _python_signature(target: Any) -> inspect.Signature | None:
    """The signature of a Python function; torch's functions with two bodies have one if both bodies agree."""
    if target in boolean_dispatched:
        bodies = boolean_dispatched[target]
        first, second = (inspect.signature(bodies[key]) for key in ("if_true", "if_false"))
        return first if first.parameters == second.parameters else None
    try:
        return inspect.signature(inspect.unwrap(target))
    except ValueError:  # a function in C without a signature
        return None


def _chosen_by_types(
    target: Any, taken: list[inspect.Signature], arg_types: Any, kwarg_types: Any
) -> list[inspect.Signature]:
    """Those signatures whose parameters take the given types."""
    if arg_types is None and kwarg_types is None:
        raise AmbiguousOverload(
            f"{qualified_name(target) or target} has several overloads that take these arguments: "
            f"the schema match was ambiguous: {'; '.join(map(str, taken))}",
            why="arguments that are nodes have no known type",
            fixes=["give arg_types and kwarg_types, such as (torch.Tensor, int)"],
        )
    return [one for one in taken if _types_match(one, tuple(arg_types or ()), dict(kwarg_types or {}))]


def _types_match(signature: inspect.Signature, arg_types: tuple[Any, ...], kwarg_types: dict[str, Any]) -> bool:
    try:
        bound = signature.bind(*arg_types, **kwarg_types)
    except TypeError:
        return False
    return all(type_matches(signature.parameters[name].annotation, kind) for name, kind in bound.arguments.items())


def normalize_module(
    root: torch.nn.Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments matched to the forward of the submodule ``target``; None unless its class is of ``torch.nn``."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise MissingAttribute(
            f"{type(root).__name__} has no submodule {target!r}, so the arguments of its call cannot be matched",
            fixes=["correct the target, or add the submodule to the root"],
        ) from error
    if getattr(torch.nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(inspect.unwrap(module.forward))
    return _matched(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


_MATCHED_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# ``from`` is a keyword of Python, so torch's schemas make the parameters up to it positional; calls by name work.
_WITH_FROM = ["input", "from", "to", "generator"]


def _matched(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_kwargs: bool
) -> ArgsKwargsPair | None:
    """As many positional arguments as were given, or none, and all others as keywords in the signature's order."""
    parameters = signature.parameters
    plain = all(parameter.kind in _MATCHED_KINDS for parameter in parameters.values())
    if not plain and list(parameters) != _WITH_FROM:
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    values = [(name, bound.arguments[name]) for name in parameters]
    cut = 0 if only_kwargs else len(args)
    return ArgsKwargsPair(tuple(value for _, value in values[:cut]), dict(values[cut:]))


def normalized_arguments(node: Any, root: Any, options: dict[str, Any]) -> ArgsKwargsPair | None:
    """The arguments of a call_function or call_module node, matched."""
    if node.op == "call_function":
        return normalize_function(node.target, node.args, node.kwargs, **options)
    if node.op == "call_module":
        only_kwargs = options.get("normalize_to_only_use_kwargs", False)
        return normalize_module(root, node.target, node.args, node.kwargs, only_kwargs)
    return None
