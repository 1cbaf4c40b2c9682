"""Putting a program's world back after a capture: tensors that were written to, attributes that were changed.

A tensor is copied when it is about to be written to, and not before; attributes of modules are compared with what they
were. A change of a tensor that nobody announced, or of an attribute, cannot be in the graph and is refused.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

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
        self._modules: list[Any] = []

    def watch(self, tensors: list[torch.Tensor], module: Any) -> None:
        """Remember how things are now."""
        self._torch_random = torch.get_rng_state()
        self._python_random = random.getstate()
        self._numpy_random = sys.modules["numpy.random"].get_state() if "numpy.random" in sys.modules else None
        if module is not None:
            tensors = [*tensors, *module.parameters(), *module.buffers()]
            for part in module.modules():
                self._modules.append(part)
                for holder in (vars(part), part._buffers, part._parameters):
                    self._attributes.append((holder, {key: _copied(value) for key, value in holder.items()}))
        for tensor in tensors:
            self._watched.append((tensor, tensor._version))
            self._storages[_storage(tensor)] = tensor

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
        for place, (holder, before) in enumerate(self._attributes):
            for key in {*holder, *before}:
                if key not in holder or key not in before or not _same(holder[key], before[key]):
                    kind = type(self._modules[place // 3]).__name__
                    raise CaptureError(
                        f"the program changes the attribute {key!r} of {kind}",
                        why="a graph that leaves it as it is would not do what the original does",
                        fixes=("keep the state in a buffer and change that in place",),
                    )

    def put_back(self) -> None:
        """Let everything be as it was."""
        torch.set_rng_state(self._torch_random)
        random.setstate(self._python_random)
        if self._numpy_random is not None:
            sys.modules["numpy.random"].set_state(self._numpy_random)
        with torch._C.DisableTorchFunction():
            for tensor, copy in self._saved.values():
                tensor.detach().copy_(copy)
        for holder, before in self._attributes:
            for key in [key for key in holder if key not in before]:
                del holder[key]
            for key, value in before.items():
                if key not in holder or not _same(holder[key], value):
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
    return type(value)(value) if type(value) in (list, dict, set) else value


def _same(now: Any, before: Any) -> bool:
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
    if not _acts_before_guards(graph):
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


def _acts_before_guards(graph: Graph) -> bool:
    """Whether a node with an effect stands before the last guard."""
    acted = False
    for node in graph.nodes:
        if node.op == "call_function" and node.target in CHECKS:
            if acted:
                return True
        elif node.op not in ("placeholder", "output") and effect_of(node) is not Effect.NONE:
            acted = True
    return False
