"""Snapshots: what can be seen of a value at one moment, kept apart from the value, and where two of them differ.

A value comes in; out comes a ``Snapshot`` that later changes of the value do not reach. ``difference`` compares two of
them: classes, structure, dtypes, shapes and values, where nan equals nan. Cycles are followed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

_PLAIN = (int, float, bool, str, bytes, complex, type(None))


@dataclass(frozen=True)
class Tolerance:
    """How far two floating values may be apart: ``atol + rtol * |wanted|``. Zero means exactly equal."""

    atol: float = 0.0
    rtol: float = 0.0


@dataclass(frozen=True)
class Snapshot:
    """One value: its class, facts that must be equal, its data if it is a tensor, and what it holds by path."""

    kind: type
    facts: tuple[Any, ...] = ()
    data: torch.Tensor | None = None
    parts: dict[str, Snapshot] = field(default_factory=dict)


def parts_of(value: Any) -> dict[str, Any]:
    """What a container or an object holds, by the path that leads to it; nothing for plain values and tensors."""
    if isinstance(value, (torch.Tensor, torch.nn.Module, type, *_PLAIN)):
        return {}
    attributes = {f".{name}": part for name, part in vars(value).items()} if is_record(value) else {}
    if isinstance(value, dict):
        return {f"[{key!r}]": part for key, part in value.items()} | attributes
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {f".{name}": part for name, part in zip(value._fields, value, strict=True)}
    if isinstance(value, (list, tuple)):
        return {f"[{place}]": part for place, part in enumerate(value)} | attributes
    return attributes


def is_record(value: Any) -> bool:
    """An object whose attributes are its content: of a user's class or a library's, and no function or module."""
    home = type(value).__module__.partition(".")[0]
    return home not in ("builtins", "torch", "numpy") and not callable(value) and hasattr(value, "__dict__")


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value inside a nest with its path, the nest itself first; an object is entered once."""
    waiting, seen = [(path, value)], set()
    while waiting:
        path, value = waiting.pop()
        yield path, value
        if id(value) not in seen:
            seen.add(id(value))
            waiting += [(path + key, part) for key, part in reversed(parts_of(value).items())]


def tensors_in(value: Any, path: str = "") -> dict[str, torch.Tensor]:
    """The tensors inside a nest by path."""
    return {place: found for place, found in walk(value, path) if isinstance(found, torch.Tensor)}


def snapshot(value: Any, open_objects: frozenset[int] = frozenset()) -> Snapshot:
    """What can be seen of a value now."""
    kind = type(value)
    if isinstance(value, torch.Tensor):
        return Snapshot(kind, tensor_facts(value), data_of(value))
    if kind in _PLAIN:
        return Snapshot(kind, (value,))
    if isinstance(value, torch.Generator):
        return Snapshot(kind, data=value.get_state())
    if id(value) in open_objects:
        return Snapshot(kind, ("the object that holds it",))
    parts = parts_of(value)
    inside = open_objects | {id(value)}
    held = {key: snapshot(part, inside) for key, part in parts.items()}
    is_container = isinstance(value, (dict, list, tuple)) or is_record(value)
    return Snapshot(kind, () if is_container else (value,), parts=held)


def tensor_facts(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What must be equal of two tensors besides their values."""
    return (tensor.dtype, tuple(tensor.shape), str(tensor.device), tensor.layout, tensor.requires_grad)


def data_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """A copy of the values; None where a tensor has none."""
    if tensor.is_meta:
        return None
    with torch.no_grad():
        dense = tensor.detach() if tensor.layout is torch.strided else tensor.detach().to_dense()
        return dense.clone()


_FACTS = ("dtype", "shape", "device", "layout", "requires_grad")


def difference(wanted: Snapshot, got: Snapshot, path: str, tolerance: Tolerance) -> str | None:
    """Where two snapshots part first, in words; None when they show the same."""
    if wanted.kind is not got.kind:
        return f"{path} is of type {got.kind.__name__}, not {wanted.kind.__name__}"
    if issubclass(wanted.kind, torch.Tensor):
        return _tensor_difference(wanted, got, path, tolerance)
    if wanted.kind is float:
        same = _same_float(wanted.facts[0], got.facts[0], tolerance)
    else:
        same = _same_facts(wanted.facts, got.facts) and _same_state(wanted.data, got.data)
    if not same:
        return f"{path} is {_short(got.facts)}, not {_short(wanted.facts)}"
    if list(wanted.parts) != list(got.parts):
        return f"{path} holds {_names(got.parts)}, not {_names(wanted.parts)}"
    found = (difference(part, got.parts[key], path + key, tolerance) for key, part in wanted.parts.items())
    return next((text for text in found if text is not None), None)


def _tensor_difference(wanted: Snapshot, got: Snapshot, path: str, tolerance: Tolerance) -> str | None:
    for name, left, right in zip(_FACTS, wanted.facts, got.facts, strict=True):
        if left != right:
            return f"{path} has {name} {right}, not {left}"
    if wanted.data is None or got.data is None:
        return None
    wrong = ~_equal_elements(wanted.data, got.data, tolerance)
    if not bool(wrong.any()):
        return None
    place = tuple(wrong.nonzero()[0].tolist())
    at = f"[{', '.join(map(str, place))}]" if place else ""
    values = f"{got.data[place].item()!r}, not {wanted.data[place].item()!r}"
    return f"{path}{at} is {values} ({int(wrong.sum())} of {wrong.numel()} elements differ)"


def _equal_elements(wanted: torch.Tensor, got: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
    if not (wanted.is_floating_point() or wanted.is_complex()):
        return wanted == got
    if wanted.dtype.itemsize < 2:  # the narrow floats have no comparison of their own
        wanted, got = wanted.float(), got.float()
    if not tolerance.atol and not tolerance.rtol:
        return (wanted == got) | (wanted.isnan() & got.isnan())
    return torch.isclose(got, wanted, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True)


def _same_float(wanted: float, got: float, tolerance: Tolerance) -> bool:
    if math.isnan(wanted) or math.isnan(got):
        return math.isnan(wanted) and math.isnan(got)
    return wanted == got or abs(wanted - got) <= tolerance.atol + tolerance.rtol * abs(wanted)


def _same_facts(wanted: tuple[Any, ...], got: tuple[Any, ...]) -> bool:
    """Equality where the class has one that answers with a bool; the very same object always counts as equal."""
    if len(wanted) != len(got):
        return False
    for left, right in zip(wanted, got, strict=True):
        if left is not right and (left == right) is not True and type(left).__eq__ is not object.__eq__:
            return False
    return True


def _same_state(wanted: torch.Tensor | None, got: torch.Tensor | None) -> bool:
    return wanted is got or (wanted is not None and got is not None and torch.equal(wanted, got))


def _short(facts: tuple[Any, ...]) -> str:
    text = repr(facts[0]) if len(facts) == 1 else "in another state"
    return text if len(text) <= 80 else text[:77] + "..."


def _names(parts: dict[str, Snapshot]) -> str:
    text = ", ".join(parts) or "nothing"
    return text if len(text) <= 80 else text[:77] + "..."
