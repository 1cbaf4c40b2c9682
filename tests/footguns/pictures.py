"""Pictures of values: what can be seen of a value at one moment, kept apart from the value itself.

A picture is made of tuples, dictionaries and cloned tensors, so later changes of the value do not reach it.
`difference` compares two pictures and says in words where they part. Classes are compared by name, since each build
of a program defines its own; floating values by closeness, NaN equal to NaN; all else exactly.
"""

from __future__ import annotations

import collections
import enum
import functools
import logging
import math
import re
import sys
import types
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy
import torch
from torch.nn.parameter import is_lazy

ATOMS = (str, bytes, int, complex, type(None), type(Ellipsis), range, slice, torch.dtype, torch.device, torch.layout)
OPAQUE = (types.ModuleType, logging.Logger, weakref.ref, weakref.WeakKeyDictionary, weakref.WeakValueDictionary)
ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass
class Picture:
    """One value: its class, the facts that must be equal, its array if it is one, and what it holds."""

    type: str
    facts: tuple[Any, ...] = ()
    array: torch.Tensor | numpy.ndarray | float | None = None
    parts: dict[str, Picture] = field(default_factory=dict)


def picture(value: Any) -> Picture:
    """What can be seen of a value now."""
    return _Camera().take(value, "")


def things_in(value: Any) -> dict[str, Any]:
    """Every tensor, array and mutable object inside a value, by its path; for questions of identity."""
    camera = _Camera()
    camera.take(value, "")
    return camera.found


class _Camera:
    """Walks one value; an object met again, as in a cycle, becomes a reference to where it was first seen."""

    def __init__(self) -> None:
        self.open: dict[int, str] = {}
        self.found: dict[str, Any] = {}

    def take(self, value: Any, path: str) -> Picture:
        name = class_name(value)
        if isinstance(value, (float, numpy.floating)):
            return Picture(name, array=float(value))
        if isinstance(value, enum.Enum):
            return Picture(name, (value.name,))
        if isinstance(value, type):
            return Picture("type", (value.__qualname__,))
        if isinstance(value, ATOMS) or isinstance(value, numpy.generic):
            return Picture(name, (repr(value),))
        if isinstance(value, OPAQUE):
            return Picture(name)
        if id(value) in self.open:
            return Picture("seen above", (self.open[id(value)],))
        self.open[id(value)] = path
        try:
            return self.compound(value, name, path)
        finally:
            del self.open[id(value)]

    def compound(self, value: Any, name: str, path: str) -> Picture:
        if isinstance(value, torch.Tensor):
            self.found[path] = value
            return self.tensor(value, name, path)
        if isinstance(value, numpy.ndarray):
            self.found[path] = value
            if value.dtype == object:
                return self.branch(name, value.shape, dict(enumerate(value.ravel().tolist())), path)
            return Picture(name, (str(value.dtype), value.shape), value.copy())
        if isinstance(value, torch.Generator):
            return Picture(name, (value.get_state().numpy().tobytes(),))
        array = _of_another_framework(value)
        if array is not None:
            self.found[path] = value
            return Picture(name, array[:-1], array[-1])
        if not isinstance(value, tuple):
            self.found[path] = value
        return self.branch(name, *_contents(value), path)

    def tensor(self, value: torch.Tensor, name: str, path: str) -> Picture:
        if is_lazy(value):
            return Picture(name)
        facts = (str(value.dtype), tuple(value.shape), value.device.type, str(value.layout), value.requires_grad)
        grad = _gradient(value)
        marks = {key: part for key, part in value.__dict__.items() if not key.startswith("_dynamo_")}
        held = {f".{key}": part for key, part in marks.items()} | ({} if grad is None else {".grad": grad})
        parts = {key: self.take(part, path + key) for key, part in held.items()}
        if value.device.type == "meta":
            return Picture(name, facts, None, parts)
        with torch.no_grad(), torch._C.DisableTorchFunction():
            dense = value.detach() if value.layout is torch.strided else value.detach().to_dense()
            return Picture(name, facts, dense.resolve_conj().resolve_neg().clone(), parts)

    def branch(self, name: str, facts: Any, parts: dict[Any, Any], path: str) -> Picture:
        named = {key if isinstance(key, str) else f"[{key!r}]": part for key, part in parts.items()}
        return Picture(name, (facts,), parts={key: self.take(part, path + key) for key, part in named.items()})


def _of_another_framework(value: Any) -> tuple[Any, ...] | None:
    """Of an array of JAX, a tensor or variable of TensorFlow: the facts that must be equal, then the array itself."""
    home = type(value).__module__.partition(".")[0]
    if home not in ("jax", "jaxlib", "tensorflow") or not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return None
    if str(value.dtype).startswith("key<"):
        return str(value.dtype), value.shape, numpy.asarray(sys.modules["jax"].random.key_data(value))
    array = numpy.array(value.numpy() if home == "tensorflow" else value)
    facts = (str(value.dtype), tuple(value.shape), getattr(value, "weak_type", None))
    return (*facts, array.tolist(), None) if array.dtype == object else (*facts, array)


def _contents(value: Any) -> tuple[Any, dict[Any, Any]]:
    """The plain facts of a container or object, and what it holds by key."""
    if isinstance(value, functools.partial):
        return None, {".func": value.func, ".args": value.args, ".keywords": value.keywords}
    if isinstance(value, types.MethodType):
        return value.__func__.__qualname__, {".self": value.__self__}
    if isinstance(value, types.FunctionType) and value.__code__.co_filename == functools.__file__:
        return value.__qualname__, {}  # what a library's wrapper remembers for speed is no state of the program
    if isinstance(value, types.FunctionType):
        return value.__qualname__, _closure(value) | {".defaults": value.__defaults__}
    if hasattr(value, "__wrapped__") and callable(value):
        return None, {".wrapped": value.__wrapped__}
    attributes = {f".{key}": part for key, part in _attributes(value)}
    if isinstance(value, dict):
        return tuple(map(_key, value)), {_key(key): part for key, part in value.items()} | attributes
    if isinstance(value, collections.deque):
        return value.maxlen, dict(enumerate(value)) | attributes
    if isinstance(value, (list, tuple)):
        return len(value), dict(enumerate(value)) | attributes
    if isinstance(value, (set, frozenset)):
        return len(value), dict(enumerate(sorted(value, key=repr)))
    return None, attributes


def _key(key: Any) -> str:
    """A key as it stands in a path; those that begin with a blank are words of this test bed."""
    return key if isinstance(key, str) and key.startswith(" ") else f"[{ADDRESS.sub('0x', repr(key))}]"


def _closure(function: types.FunctionType) -> dict[str, Any]:
    names = function.__code__.co_freevars
    cells = zip(names, function.__closure__ or (), strict=True)
    return {f" closes over {name}": cell.cell_contents for name, cell in cells if _is_filled(cell)}


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__weakref__", "__dict__") and hasattr(value, name):
                yield name, getattr(value, name)


def class_name(value: Any) -> str:
    """The class of a value as `type` tells it, not as `__class__` claims."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def difference(wanted: Picture, got: Picture, path: str = "result") -> str | None:
    """Where two pictures part first, in words; None when they show the same."""
    if wanted.type != got.type:
        return f"{path} is {got.type}, not {wanted.type}"
    if wanted.facts != got.facts:
        return f"{path} ({wanted.type}) has {_short(got.facts)}, not {_short(wanted.facts)}"
    if not _same_array(wanted.array, got.array):
        return f"{path} has other values: {_short(got.array)}, not {_short(wanted.array)}"
    if list(wanted.parts) != list(got.parts):
        return f"{path} holds {_short(list(got.parts))}, not {_short(list(wanted.parts))}"
    for key, part in wanted.parts.items():
        found = difference(part, got.parts[key], path + key)
        if found is not None:
            return found
    return None


def _same_array(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, float) and isinstance(got, float):
        return math.isclose(wanted, got, rel_tol=1e-5, abs_tol=1e-7) or (math.isnan(wanted) and math.isnan(got))
    if isinstance(wanted, torch.Tensor) and isinstance(got, torch.Tensor):
        if wanted.is_floating_point() or wanted.is_complex():
            loose = 1e-2 if wanted.dtype in (torch.float16, torch.bfloat16) else 1e-5
            return torch.allclose(wanted, got, rtol=loose, atol=loose / 10, equal_nan=True)
        return torch.equal(wanted, got)
    if isinstance(wanted, numpy.ndarray) and isinstance(got, numpy.ndarray):
        if wanted.dtype.kind in "fc":
            loose = 1e-2 if wanted.dtype.itemsize == 2 else 1e-5
            return numpy.allclose(wanted, got, rtol=loose, atol=loose / 10, equal_nan=True)
        return numpy.array_equal(wanted, got)
    return wanted is None and got is None


def _short(value: Any) -> str:
    text = str(value.tolist()) if isinstance(value, (torch.Tensor, numpy.ndarray)) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _gradient(value: torch.Tensor) -> torch.Tensor | None:
    """The gradient of a leaf; a view that autograd has given up says nothing of itself."""
    try:
        return value.grad if value.is_leaf else None
    except RuntimeError:
        return None
