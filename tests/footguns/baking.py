"""A naive tracer, as a bad example: it replays the torch calls of the example with every other fact frozen.

Tensors of the arguments, found in the containers that torch's pytree knows, are its inputs, by position; numbers,
strings, branches, lengths, callables and Python state are as they were in the example. The ledger is measured with
it: a program that it gets right is no trap for a tracer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree


class Baked:
    """The recorded calls, and the tensors that each read and made, by number."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], Any, Any]] = []
        self.numbers: dict[int, int] = {}
        self.kept: list[torch.Tensor] = []  # keeps every tensor alive, so that no address is used twice
        self.inputs: list[int] = []
        self.result: Any = None

    def number(self, tensor: torch.Tensor) -> int:
        """The number of a tensor; a new one for a tensor not seen before."""
        if id(tensor) not in self.numbers:
            self.numbers[id(tensor)] = len(self.kept)
            self.kept.append(tensor)
        return self.numbers[id(tensor)]

    def freeze(self, nest: Any) -> Any:
        """The nest with a number in the place of each tensor."""
        return pytree.tree_map_only(torch.Tensor, lambda tensor: _Number(self.number(tensor)), nest)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        values = dict(enumerate(self.kept)) | dict(zip(self.inputs, given, strict=False))

        def thaw(nest: Any) -> Any:
            return pytree.tree_map_only(_Number, lambda one: values[one.number], nest)

        for function, inputs, result in self.calls:
            made = function(*thaw(inputs[0]), **thaw(inputs[1]))
            old, new = pytree.tree_leaves(result), pytree.tree_leaves(made)
            values |= {one.number: leaf for one, leaf in zip(old, new, strict=False) if isinstance(one, _Number)}
        return thaw(self.result)


class _Number:
    """Stands for the tensor of that number."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Recorder(TorchFunctionMode):
    def __init__(self, baked: Baked) -> None:
        super().__init__()
        self.baked = baked

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inputs = self.baked.freeze((args, kwargs or {}))
        result = func(*args, **(kwargs or {}))
        self.baked.calls.append((func, inputs, self.baked.freeze(result)))
        return result


def bake(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Baked:
    """Runs the function on the example and keeps what torch was asked to do."""
    baked = Baked()
    leaves = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    baked.inputs = [baked.number(leaf) for leaf in leaves]
    with _Recorder(baked):
        result = fn(*args, **kwargs)
    baked.result = baked.freeze(result)
    return baked
