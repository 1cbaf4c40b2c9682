"""Example inputs of torch programs: copies that share nothing, noise of the same form, and other batch sizes.

Calls come in and go out. Tensors that are one object, or share memory, do so in a copy too. Functions,
modules and generators are not copied: a program may ask which object it was given.
"""

from __future__ import annotations

import copy
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

import torch

from clew.ir.graph import Graph
from clew.ir.types import ArrayType
from clew.tools.cases import SEED, Call, calls_from, gone, no_example
from clew.tools.snapshots import is_record, tensors_in


def calls_of(inputs: Any, captured: Any) -> list[Call]:
    """The calls that a user gave, or the example of the capture, or one made from the types in the graph."""
    if inputs is None and getattr(captured, "_example", None) is None:
        return [_from_types(captured.graph)]
    return calls_from(inputs, captured, _noise_maker())


def _noise_maker() -> Callable[[Any], Any]:
    """A function that makes noise of a type; equal names of sizes get equal sizes."""
    generator = torch.Generator().manual_seed(SEED)
    sizes: dict[str, int] = {}

    def make(kind: Any) -> Any:
        if not isinstance(kind, ArrayType):
            raise gone(kind)
        shape = [size if isinstance(size, int) else sizes.setdefault(size, 2 + len(sizes)) for size in kind.shape]
        return noise_like(torch.ones(shape, dtype=getattr(torch, kind.dtype), device=kind.device), generator)

    return make


def _from_types(graph: Graph) -> Call:
    """A call made of noise, where the graph knows the types of its inputs."""
    make = _noise_maker()
    args: dict[str, Any] = {}
    for node in graph.find_nodes(op="placeholder"):
        if isinstance(node.value_type, ArrayType):
            args[node.target] = make(node.value_type)
        elif not node.args and not str(node.target).startswith("*"):
            raise no_example(f"there is no example to replay: the graph does not know the type of {node.target!r}")
    return (), args


def copied(call: Call) -> Call:
    """A call that shares no tensor with the original one."""
    fresh: Call = _copy(call, _tensor_copies(call))
    return fresh


def changed(call: Call, change: Callable[[torch.Tensor], torch.Tensor]) -> Call:
    """The call with every tensor changed, each once however often it occurs."""
    memo: dict[int, Any] = {}
    for tensor in tensors_in(call).values():
        if id(tensor) not in memo:
            with torch.no_grad():
                made = change(tensor.detach())
            memo[id(tensor)] = made.requires_grad_(tensor.requires_grad)
    result: Call = _copy(call, memo)
    return result


def _tensor_copies(call: Call) -> dict[int, Any]:
    storages: dict[int, Any] = {}
    memo: dict[int, Any] = {}
    for tensor in tensors_in(call).values():
        if id(tensor) in memo:
            continue
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
        made = copy.deepcopy(tensor.detach() if plain else tensor, storages)
        if type(tensor) is torch.nn.Parameter:
            made = torch.nn.Parameter(made, tensor.requires_grad)
        memo[id(tensor)] = made.requires_grad_(tensor.requires_grad) if plain else made
    return memo


def _copy(value: Any, memo: dict[int, Any]) -> Any:
    """A nest built again around the tensors that ``memo`` has for its own."""
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, tuple):
        items = [_copy(item, memo) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if not isinstance(value, (list, dict, set, deque)) and not is_record(value):
        return value
    try:
        made = memo[id(value)] = copy.copy(value)
    except TypeError:  # an object of which there can be only one
        return value
    if isinstance(value, dict):
        for key, item in value.items():
            dict.__setitem__(made, key, _copy(item, memo))
    elif isinstance(value, list):
        made[:] = [_copy(item, memo) for item in value]
    if is_record(value):
        for name, item in vars(value).items():
            made.__dict__[name] = _copy(item, memo)
    return made


# ---- calls that nobody gave --------------------------------------------------------------------------------------


def made_from(call: Call) -> Iterator[tuple[str, Call]]:
    """Other calls of the same form, with what was changed in words: noise, then noise of other batch sizes."""
    tensors = list(tensors_in(call).values())
    if not tensors:
        return
    generator = torch.Generator().manual_seed(SEED)
    yield "noise", changed(call, lambda tensor: noise_like(tensor, generator))
    batch = _batch_size(tensors)
    for size in dict.fromkeys((1, batch + 1, 2 * batch)) if batch else ():
        if size != batch:
            yield f"batch of {size}", changed(call, _resizing(batch, size, generator))


def _resizing(batch: int, size: int, generator: torch.Generator) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: noise_like(_resized(tensor, batch, size), generator)


def _batch_size(tensors: list[torch.Tensor]) -> int:
    """The first dimension that most tensors share, the first of them if several are as frequent; 0 if there is none."""
    first = Counter(tensor.shape[0] for tensor in tensors if _is_dense(tensor) and tensor.ndim)
    return first.most_common(1)[0][0] if first else 0


def _is_dense(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested


def _resized(tensor: torch.Tensor, batch: int, size: int) -> torch.Tensor:
    """The tensor with its rows repeated, or some of them left out, if its first dimension is the batch."""
    if not _is_dense(tensor) or not tensor.ndim or tensor.shape[0] != batch:
        return tensor
    return tensor[torch.arange(size, device=tensor.device) % batch]


def noise_like(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Other values of the same form: integers in the range of the given ones, masks for masks, else normal noise."""
    if not _is_dense(tensor) or tensor.is_meta or not tensor.numel() or tensor.is_quantized:
        return tensor.clone()
    if tensor.dtype is torch.bool or _is_mask(tensor):
        made = torch.randint(0, 2, tensor.shape, generator=generator)
    elif tensor.is_floating_point() or tensor.is_complex():
        wide = torch.complex64 if tensor.is_complex() else torch.float32
        made = torch.randn(tensor.shape, dtype=wide, generator=generator)
    else:
        made = torch.randint(int(tensor.min()), int(tensor.max()) + 1, tensor.shape, generator=generator)
    return made.to(tensor.device, tensor.dtype)


def _is_mask(tensor: torch.Tensor) -> bool:
    """Zeros and ones, some of each."""
    is_one = tensor == 1
    return bool(((tensor == 0) | is_one).all()) and bool(is_one.any()) and not bool(is_one.all())
