"""Putting a program's world back after a capture: tensors that were written to, attributes that were changed.

A tensor is copied when it is about to be written to, and not before; attributes of modules are compared with what they
were. A change of a tensor that nobody announced, or of an attribute, cannot be in the graph and is refused.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from clew import tree
from clew.capture.example.guards import CHECKS
from clew.errors import CaptureError, GuardError
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect


class Rollback:
    """What must be as it was when the capture ends."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self._watched: list[tuple[torch.Tensor, int]] = []
        self._storages: dict[int, torch.Tensor] = {}
        self._saved: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._attributes: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._owners: list[Any] = []
        self._flags: list[tuple[torch.Tensor, bool]] = []
        self._classes: list[tuple[type, dict[str, Any]]] = []
        self._generators: list[tuple[torch.Generator, torch.Tensor]] = []

    def watch(self, tensors: list[torch.Tensor], module: Any) -> None:
        """Remember how things are now."""
        self._torch_random = torch.get_rng_state()
        self._python_random = random.getstate()
        self._numpy_random = sys.modules["numpy.random"].get_state() if "numpy.random" in sys.modules else None
        if module is not None:
            tensors = [*tensors, *module.parameters(), *module.buffers()]
            for part in module.modules():
                for holder in (vars(part), part._buffers, part._parameters):
                    self.watch_attributes(part, holder)
        for tensor in tensors:
            self.watch_tensor(tensor)

    def watch_attributes(self, owner: Any, holder: dict[str, Any]) -> None:
        """Remember the attributes of an object."""
        self._owners.append(owner)
        self._attributes.append((holder, {key: _copied(value) for key, value in holder.items()}))

    def watch_tensor(self, tensor: torch.Tensor) -> None:
        """Remember a tensor that the program did not make."""
        if isinstance(tensor, UninitializedTensorMixin):
            raise CaptureError(
                "a lazy module has no parameters yet", why="they are made at the first call", fixes=("call it once",)
            )
        with torch._C.DisableTorchFunction():
            self._watched.append((tensor, tensor._version))
            self._flags.append((tensor, tensor.requires_grad))
            self._storages.setdefault(_storage(tensor), tensor)

    def watch_classes(self, kinds: set[type]) -> None:
        """Remember the plain values that users' classes hold."""
        for kind in kinds:
            if kind.__module__.partition(".")[0] not in ("torch", "builtins", "functools", "types"):
                held = {key: value for key, value in vars(kind).items() if type(value) in (int, float, str, bool)}
                self._classes.append((kind, held))

    def save_generator(self, generator: torch.Generator) -> None:
        """Remember the state of a generator before the program first draws from it."""
        if all(known is not generator for known, _ in self._generators):
            self._generators.append((generator, generator.get_state()))

    def save(self, tensor: torch.Tensor) -> None:
        """Keep a copy of what a tensor, about to be written to, holds: of the watched one that shares its memory."""
        with torch._C.DisableTorchFunction():
            owner = self._storages.get(_storage(tensor))
            if owner is not None and id(owner) not in self._saved:
                self._saved[id(owner)] = (owner, owner.detach().clone())

    def check_unseen(self) -> None:
        """Raise if the program changed something that no node of the graph changes."""
        if random.getstate() != self._python_random or _numpy_changed(self._numpy_random):
            raise CaptureError(
                "the program draws random numbers from Python or NumPy",
                why="they would be frozen in the graph",
                fixes=("use torch's random numbers", "pass the random value as an argument"),
            )
        for tensor, version in self._watched:
            if tensor._version != version and id(tensor) not in self._saved:
                raise CaptureError("the program changed a tensor in a way that the capture did not see")
        for kind, held in self._classes:
            for key, value in held.items():
                if getattr(kind, key) != value:
                    raise CaptureError(
                        f"the program changes the attribute {key!r} of the class {kind.__name__}",
                        why="the graph would leave it as it is",
                        fixes=("keep the state in a buffer and change that in place",),
                    )
        for place, (holder, before) in enumerate(self._attributes):
            for key in {*holder, *before}:
                if key not in holder or key not in before or not _same(holder[key], before[key]):
                    raise CaptureError(
                        f"the program changes the attribute {key!r} of {type(self._owners[place]).__name__}",
                        why="a graph that leaves it as it is would not do what the original does",
                        fixes=("keep the state in a buffer and change that in place",),
                    )

    def put_back(self) -> None:
        """Let everything be as it was."""
        torch.set_rng_state(self._torch_random)
        for generator, state in self._generators:
            generator.set_state(state)
        random.setstate(self._python_random)
        if self._numpy_random is not None:
            sys.modules["numpy.random"].set_state(self._numpy_random)
        for owner, values in self._classes:
            for key, value in values.items():
                if getattr(owner, key) != value:
                    setattr(owner, key, value)
        with torch._C.DisableTorchFunction():
            for tensor, copy in self._saved.values():
                tensor.detach().copy_(copy)
            for tensor, flag in self._flags:
                if tensor.is_leaf and tensor.requires_grad != flag:
                    tensor.requires_grad_(flag)
        for holder, before in self._attributes:
            for key in [key for key in holder if key not in before]:
                del holder[key]
            for key, value in before.items():
                if isinstance(value, _Kept):
                    value.value.clear()
                    value.value.extend(value.items)
                    holder[key] = value.value
                elif key not in holder or not _same(holder[key], value):
                    holder[key] = value


def _numpy_changed(before: Any) -> bool:
    if before is None:
        return False
    now = sys.modules["numpy.random"].get_state()
    pairs = zip(now, before, strict=True)
    return any(bool((left != right).any()) if hasattr(left, "any") else left != right for left, right in pairs)


def _storage(tensor: torch.Tensor) -> int:
    return id(tensor) if tensor.is_meta or tensor.layout is not torch.strided else tensor.untyped_storage().data_ptr()


def _copied(value: Any) -> Any:
    """A container as it is now; other values as they are."""
    if isinstance(value, deque):
        return _Kept(value)
    return type(value)(value) if type(value) in (list, dict, set) else value


class _Kept:
    """A deque and what it held, so that it can be filled again."""

    def __init__(self, value: deque[Any]) -> None:
        self.value = value
        self.items = list(value)


def _same(now: Any, before: Any) -> bool:
    if isinstance(before, _Kept):
        return now is before.value and len(now) == len(before.items) and all(map(_same, now, before.items))
    if now is before:
        return True
    if type(now) is not type(before) or isinstance(now, torch.Tensor):
        return False
    if isinstance(now, (list, tuple)):
        return len(now) == len(before) and all(map(_same, now, before))
    if isinstance(now, dict):
        return now.keys() == before.keys() and all(_same(now[key], before[key]) for key in now)
    return type(now) in (int, float, str, bool, set) and bool(now == before)


@contextmanager
def protect(graph: Graph, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
    """If a guard of ``graph`` fails inside, the inputs, the module's state and the random state are put back."""
    if not acts_before_guards(graph):
        yield
        return
    rollback = Rollback(None)
    tensors = [leaf for leaf in tree.flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
    rollback.watch(tensors, graph.owning_module)
    for tensor, _ in list(rollback._watched):
        rollback.save(tensor)
    try:
        yield
    except GuardError:
        rollback.put_back()
        raise


def acts_before_guards(graph: Graph) -> bool:
    """Whether a node with an effect stands before the last guard."""
    acted = False
    for node in graph.nodes:
        if node.op == "call_function" and node.target in CHECKS:
            if acted:
                return True
        elif node.op not in ("placeholder", "output") and effect_of(node) is not Effect.NONE:
            acted = True
    return False
