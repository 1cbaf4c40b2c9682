"""The state that a program may change besides its result, noted before a run and put back after.

A program and its capture come in, which may share modules and tensors. A ``ProgramState`` knows both sides' state by
name, tells what it looks like after a run, and lets everything be as it was: values, attributes, gradients, random
states.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from typing import Any

import torch

from clew.capture.example.guards import Variable
from clew.capture.example.memory import Memory
from clew.capture.example.surroundings import Surroundings, functions_of
from clew.errors import CaptureError
from clew.frameworks.torch.rollback import each_once
from clew.tools.snapshots import Snapshot, Tolerance, difference, snapshot

_PLAIN = (int, float, bool, str, type(None))


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
        return isinstance(self.value, _PLAIN) and (type(now) is not type(self.value) or now != self.value)

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


def _state_snapshot(state: Any) -> Snapshot:
    if isinstance(state, torch.Tensor):
        return Snapshot(torch.Generator, data=state)
    if isinstance(state, list):
        return Snapshot(list, parts={f"[{place}]": _state_snapshot(item) for place, item in enumerate(state)})
    return Snapshot(torch.Generator, (repr([part.tolist() if hasattr(part, "tolist") else part for part in state]),))
