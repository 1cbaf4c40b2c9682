"""Snapshots of values, and of the state that a program may change besides its result.

A value comes in; out comes a ``Snapshot`` that later changes of the value do not reach. ``difference`` compares two of
them: classes, structure, dtypes, shapes and values, where nan equals nan. Cycles are followed once. A ``ProgramState``
is made of a program and its capture, which may share modules and tensors: it knows both sides' state by name, tells
what it looks like after a run, and lets everything be as it was: values, attributes, gradients, random states.
"""

from __future__ import annotations

import math
import random
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from clew.capture.guards.notes import Variable
from clew.capture.state.memory import Memory
from clew.capture.state.surroundings import Surroundings, functions_of
from clew.errors import CaptureError
from clew.frameworks.torch.undo import each_once

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


# ---- the state around a program --------------------------------------------------------------------------------------

_COMPARED_BY_VALUE = (int, float, bool, str, type(None))


class ProgramState:
    """What a program and its capture can reach besides their arguments."""

    def __init__(self, fn: Any, captured: Any, generators: list[torch.Generator]) -> None:
        self.original = _owners(fn)
        self.captured = _owners(captured)
        self.around = _surroundings(fn)
        for name, value in [] if self.around is None else self.around.values():
            if isinstance(value, torch.nn.Module) and value not in self.original.values():
                self.original[name] = value
        self.generators = {id(generator): generator for generator in [*generators, *self._generators_around()]}
        self._note()
        theirs, ours = self.tensors(False), self.tensors(True)
        self.edited = {name for name, tensor in theirs.items() if not _is_same(tensor, ours[name])}
        """Tensors that the capture has as others than the original already before a run, because somebody edited it."""

    def _generators_around(self) -> list[torch.Generator]:
        """Generators that the program has in a variable around it, or its module in an attribute."""
        values = [] if self.around is None else [value for _, value in self.around.values()]
        for owner in (*self.original.values(), *self.captured.values()):
            values += [value for part in _modules(owner) for value in vars(part).values()]
        return [value for value in values if isinstance(value, torch.Generator)]

    def _note(self) -> None:
        owners = [*self.original.values(), *self.captured.values()]
        modules = [part for owner in owners for part in _modules(owner)]
        holders = [vars(part) for part in modules if isinstance(getattr(part, "__dict__", None), dict)]
        for part in modules:
            holders += [getattr(part, name) for name in ("_parameters", "_buffers") if hasattr(part, name)]
        self._holders = [(holder, {key: _Kept(value) for key, value in holder.items()}) for holder in holders]
        tensors = {id(value): value for holder in holders for value in holder.values() if _is_array(value)}
        for _, value in [] if self.around is None else self.around.values():
            if _is_array(value):
                tensors[id(value)] = value
        self._tensors = [(tensor, tensor.detach().clone(), tensor.requires_grad) for tensor in tensors.values()]
        self._grads = [(tensor, tensor.grad) for tensor in tensors.values() if tensor.is_leaf]
        self._grad_data = [(grad, grad.detach().clone()) for _, grad in self._grads if grad is not None]
        self._memory = Memory(lambda value: isinstance(value, (torch.Tensor, torch.nn.Module)))
        cells = [] if self.around is None else [Variable(holder, name) for holder, name in self.around.cells()]
        self._variables = [(variable, variable.get()) for variable in cells]
        for _, value in self._variables:
            self._memory.remember(value, depth=3)
        self._random = _random_states()
        self._generator_states = [(generator, generator.get_state()) for generator in self.generators.values()]

    def put_back(self) -> None:
        """Let everything be as it was when this was made."""
        for holder, before in self._holders:
            for key in [key for key in holder if key not in before]:
                del holder[key]
            for key, kept in before.items():
                kept.refill()
                if holder.get(key, kept) is not kept.value:
                    holder[key] = kept.value
        with torch.no_grad():
            for tensor, data, flag in self._tensors:
                if tensor.is_leaf and tensor.requires_grad != flag:
                    tensor.requires_grad_(flag)
                _fill(tensor, data)
            for grad, data in self._grad_data:
                _fill(grad, data)
            for tensor, grad in self._grads:
                tensor.grad = grad
        for variable, before in self._variables:
            if variable.get() is not before:
                variable.put(before)
        self._memory.put_back()
        _set_random_states(self._random)
        for generator, state in self._generator_states:
            generator.set_state(state)

    def tensors(self, of_capture: bool) -> dict[str, torch.Tensor]:
        """The tensors of the original by name; as the capture has them, where it has its own of that name."""
        found = _named_tensors(self.original)
        if of_capture:
            own = _named_tensors(self.captured)
            found = {name: own.get(name, tensor) for name, tensor in found.items()}
        if self.around is not None:
            found.update((name, value) for name, value in self.around.values() if _is_array(value))
        return found

    def is_written(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is not what it was when this was made, or was not there."""
        before = next((data for known, data, _ in self._tensors if known is tensor), None)
        return before is None or not _is_same(tensor, before)

    def plain_changes(self, of_capture: bool) -> dict[str, Snapshot]:
        """The plain attributes of modules that are not what they were, by name."""
        owners = self.captured if of_capture else self.original
        before = {id(holder): kept for holder, kept in self._holders}
        changes = {}
        for name, part in _named_parts(owners):
            kept = before.get(id(vars(part)), {}) if hasattr(part, "__dict__") else {}
            for key, value in kept.items():
                now = vars(part).get(key)
                if not key.startswith("_") and value.is_changed(now):
                    changes[f"{name}{key}"] = snapshot(now)
        return changes

    def random_snapshot(self) -> Snapshot:
        """The states of the random number generators of torch, Python and NumPy, and of the program's own."""
        parts = {f" of {name}": _state_snapshot(state) for name, state in _random_states().items()}
        own = [snapshot(generator) for generator in self.generators.values()]
        return Snapshot(dict, parts=parts | {f" of generator {place}": seen for place, seen in enumerate(own)})


class _Kept:
    """The value of an attribute, and the items of a container that may be changed in place."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.items = list(value.items() if type(value) is dict else value) if _is_container(value) else None

    def refill(self) -> None:
        """Give a container the items it had."""
        if self.items is not None and self._items() != self.items and not _same_items(self._items(), self.items):
            self.value.clear()
            getattr(self.value, "extend" if isinstance(self.value, (list, deque)) else "update")(self.items)

    def is_changed(self, now: Any) -> bool:
        """Whether the attribute is another plain value, or the container holds other items."""
        if self.items is not None:
            return now is not self.value or not _same_items(self._items(), self.items)
        return isinstance(self.value, _COMPARED_BY_VALUE) and (type(now) is not type(self.value) or now != self.value)

    def _items(self) -> list[Any]:
        return list(self.value.items() if type(self.value) is dict else self.value)


def _is_container(value: Any) -> bool:
    return type(value) in (list, dict, set, deque)


def _same_items(now: list[Any], before: list[Any]) -> bool:
    pairs = zip(now, before, strict=False)
    return len(now) == len(before) and all(
        left is right or (isinstance(left, tuple) and all(a is b for a, b in zip(left, right, strict=True)))
        for left, right in pairs
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not torch.nn.parameter.is_lazy(value)


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are one, or hold the same; nan equals nan."""
    if one is other or one.is_meta:
        return True
    alike = one.shape == other.shape and one.dtype == other.dtype and one.layout is other.layout
    return alike and difference(snapshot(one.detach()), snapshot(other.detach()), "", Tolerance()) is None


def _fill(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """Put values back without counting as a write, so that a graph of gradients that somebody holds stays usable."""
    if tensor.shape == data.shape:
        view = each_once(tensor.data)
        view.copy_(data[tuple(map(slice, view.shape))])
    else:
        tensor.data = data.clone()


def _owners(program: Any) -> dict[str, Any]:
    """The objects whose state belongs to a program: itself if it is a module, its root, the object of a method."""
    owner = getattr(program, "root", None) if hasattr(program, "graph") else getattr(program, "__self__", None)
    if isinstance(program, torch.nn.Module) or not hasattr(owner, "__dict__"):
        owner = program
    return {"": owner} if isinstance(getattr(owner, "__dict__", None), dict) else {}


def _surroundings(fn: Any) -> Surroundings | None:
    parts = fn.modules() if isinstance(fn, torch.nn.Module) else [fn]
    try:
        return Surroundings([function for part in parts for function in functions_of(part)])
    except CaptureError:  # it is near a stream, which can be neither noted nor put back
        return None


def _modules(owner: Any) -> list[Any]:
    return list(owner.modules()) if isinstance(owner, torch.nn.Module) else [owner]


def _named_parts(owners: dict[str, Any]) -> list[tuple[str, Any]]:
    named = []
    for name, owner in owners.items():
        parts = owner.named_modules() if isinstance(owner, torch.nn.Module) else [("", owner)]
        named += [("".join(f"{atom}." for atom in (name, path) if atom), part) for path, part in parts]
    return named


def _named_tensors(owners: dict[str, Any]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for name, part in _named_parts(owners):
        for holder in (getattr(part, "_parameters", {}), getattr(part, "_buffers", {}), getattr(part, "__dict__", {})):
            found.update((f"{name}{key}", value) for key, value in holder.items() if _is_array(value))
    return found


def _random_states() -> dict[str, Any]:
    states: dict[str, Any] = {"torch": torch.get_rng_state(), "Python": random.getstate()}
    if "numpy.random" in sys.modules:
        states["NumPy"] = sys.modules["numpy.random"].get_state()
    if torch.cuda.is_initialized():
        states["CUDA"] = torch.cuda.get_rng_state_all()
    return states


def _set_random_states(states: dict[str, Any]) -> None:
    torch.set_rng_state(states["torch"])
    random.setstate(states["Python"])
    if "NumPy" in states:
        sys.modules["numpy.random"].set_state(states["NumPy"])
    if "CUDA" in states:
        torch.cuda.set_rng_state_all(states["CUDA"])


def _state_snapshot(kept: Any) -> Snapshot:
    if isinstance(kept, torch.Tensor):
        return Snapshot(torch.Generator, data=kept)
    if isinstance(kept, list):
        return Snapshot(list, parts={f"[{place}]": _state_snapshot(item) for place, item in enumerate(kept)})
    return Snapshot(torch.Generator, (repr([part.tolist() if hasattr(part, "tolist") else part for part in kept]),))
