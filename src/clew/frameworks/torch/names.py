"""The names under which users write torch's functions and classes: ``torch.relu``, ``torch.nn.functional.gelu``.

A name is only given when it leads back to the very same object. torch shows many objects in several places; the
public place that comes first in ``HOMES`` wins. The index is made once and grows when a function is not in it yet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket
from torch.nn.attention import SDPBackend

from clew.ir.literals import Speller

HOMES = (
    "torch",
    "torch.Tensor",
    "torch.nn.functional",
    "torch.nn",
    "torch.fft",
    "torch.linalg",
    "torch.special",
    "torch.sparse",
    "torch.nested",
    "torch.autograd",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.parametrizations",
    "torch.nn.attention",
    "torch.utils.checkpoint",
    "torch.func",
    "torch.amp",
    "torch.cuda",
    "torch.jit",
    "torch.distributions",
    "torch.optim",
    "torch.return_types",
    "torch._C._nn",
    "torch._C",
)

_index: dict[int, tuple[str, Any]] = {}
_indexed: dict[str, int] = {}


def qualified_name(thing: Any) -> str | None:
    """The dotted public name of a function, class or named value of torch; None if no name leads to it."""
    if isinstance(thing, (OpOverload, OpOverloadPacket, HigherOrderOperator)):
        return _operator_name(thing)
    known = _index.get(id(thing))
    if known is None or known[1] is not thing:
        _extend_index()
        known = _index.get(id(thing))
    candidates = [] if known is None or known[1] is not thing else [known[0]]
    candidates += _likely_names(thing)
    return next((name for name in candidates if leads_to(name, thing)), None)


def leads_to(name: str, thing: Any) -> bool:
    """True when walking the dotted name ends at this very object."""
    return find(name) is thing


def find(name: str) -> Any:
    """The object at the end of a dotted name that starts with torch, or None."""
    atoms = name.split(".")
    found: Any = sys.modules.get(atoms[0]) if atoms[0] == "torch" else None
    for depth, atom in enumerate(atoms[1:], start=2):
        following = getattr(found, atom, None)
        found = sys.modules.get(".".join(atoms[:depth])) if following is None else following
    return found


def _operator_name(operator: Any) -> str | None:
    if isinstance(operator, HigherOrderOperator):
        candidates = [f"torch.ops.higher_order.{operator.name()}"]
    elif isinstance(operator, OpOverload):
        namespace, _, name = operator._schema.name.partition("::")
        candidates = [f"torch.ops.{namespace}.{name}.{operator._overloadname}"]
    else:
        candidates = [f"torch.ops.{operator._qualified_op_name.replace('::', '.')}"]
    return next((name for name in candidates if leads_to(name, operator)), None)


def _likely_names(thing: Any) -> list[str]:
    """Names under which an object may be found that is not in the index: in any home, or where it says it is."""
    module = getattr(getattr(thing, "__objclass__", thing), "__module__", None)
    name, path = getattr(thing, "__name__", None), getattr(thing, "__qualname__", None)
    if not isinstance(name, str) or not isinstance(path, str):
        return []
    return [*(f"{home}.{name}" for home in HOMES), f"{module}.{path}"]


def _extend_index() -> None:
    """Take in what the homes show; a home is read again only when it has grown."""
    for home in HOMES:
        place = find(home)
        size = 0 if place is None else len(dir(place))
        if size == _indexed.get(home):
            continue
        _indexed[home] = size
        for name, thing in _members(place):
            _index.setdefault(id(thing), (f"{home}.{name}", thing))


def _members(place: Any) -> list[tuple[str, Any]]:
    """The functions, classes and named values that a module or class shows; its submodules are no members."""
    is_class = isinstance(place, type)
    names = [name for name in (dir(place) if is_class else list(vars(place))) if is_class or not name.startswith("__")]
    found = [(name, getattr(place, name, None)) for name in names]
    return [(name, thing) for name, thing in found if _is_member(thing)]


def _is_member(thing: Any) -> bool:
    if isinstance(thing, (torch.dtype, torch.layout, torch.memory_format, torch.qscheme)):
        return True
    holder = getattr(thing, "__objclass__", thing)
    module = getattr(holder, "__module__", None)
    return callable(thing) and isinstance(module, str) and module.partition(".")[0] == "torch"


NameOf = Callable[[Any], str]


def spell(value: Any, name_of: NameOf) -> str | None:
    """The expression of ``value``, or None."""
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value, name_of)
    return None


def _named(value: Any, name_of: NameOf) -> str | None:
    """Values that torch itself has a name for; ``repr`` gives it, and the name is followed back before it is used."""
    name = repr(value).removeprefix("torch.")
    return f"{name_of(torch)}.{name}" if getattr(torch, name, None) is value else None


def _member_of_enum(value: Any, name_of: NameOf) -> str:
    return f"{name_of(type(value))}.{value.name}"


def _device(value: torch.device, name_of: NameOf) -> str:
    return f"{name_of(torch.device)}({str(value)!r})"


def _size(value: torch.Size, name_of: NameOf) -> str | None:
    if all(type(dimension) is int for dimension in value):
        return f"{name_of(torch.Size)}({list(value)!r})"
    return f"{name_of(torch.Size)}({Speller(name_of, lambda node: str(node.name)).spell(list(value))})"


def _limits(value: torch.finfo | torch.iinfo, name_of: NameOf) -> str:
    return f"{name_of(type(value))}({name_of(torch)}.{value.dtype})"


def _operator(value: Any, name_of: NameOf) -> str | None:
    return name_of(value) if qualified_name(value) is not None else None


_WRITERS: tuple[tuple[Any, Callable[[Any, NameOf], str | None]], ...] = (
    ((torch.dtype, torch.layout, torch.memory_format, torch.qscheme), _named),
    (SDPBackend, _member_of_enum),
    (torch.device, _device),
    (torch.Size, _size),
    ((torch.finfo, torch.iinfo), _limits),
    ((OpOverload, OpOverloadPacket, HigherOrderOperator), _operator),
)
