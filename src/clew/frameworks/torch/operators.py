"""Effects of the operators under ``torch.ops``, read from their schemas and tags.

A schema says which arguments are written; a tag says which operators draw random numbers. What returns nothing is
there for its effect. Operators of users are believed by the schema that they declared, and by torch's register of
effects; operators that talk to the world are known by their namespace.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from clew.frameworks.torch.calls import base_name, named_arguments, overloads
from clew.frameworks.torch.rules import DRAWS_ALWAYS, DRAWS_WHEN, argument_effect, ends_in_place, worst
from clew.ir.guests import Effect

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
    return worst([static, argument_effect(name, named_arguments(target, args, kwargs))])


def _meant(target: OpOverload | OpOverloadPacket, kwargs: dict[str, Any], on_tensors: bool) -> list[OpOverload]:
    """The overloads that a call may reach: those with ``out`` only when it is given."""
    found = overloads(target)
    if isinstance(target, OpOverload):
        return found
    if on_tensors:
        found = [overload for overload in found if not _writes_plain_list(overload)]
    if kwargs.get("out") is not None:
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
