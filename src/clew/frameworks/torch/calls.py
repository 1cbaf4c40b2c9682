"""The arguments of a call of torch by the names of their parameters.

In comes a function with its positional and keyword arguments, of which some may be nodes whose values nobody knows;
out comes one dictionary for each overload that takes them, defaults filled in. torch's C functions have no Python
signature: the schemas of the operators of the same name stand in.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from types import BuiltinFunctionType
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

Named = dict[str, Any]


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
