"""New arrays in the place of writes: what ``clew.functionalize`` calls where a program wrote into an array.

``with_item`` is ``array[index] = value`` as a function, which JAX writes ``array.at[index].set(value)``; ``fitted``
brings what was computed into the dtype of the array that it was to be written into; ``drawn`` are random numbers in
its place. All give arrays of the same strides, which need gradients where the one that is written would, change
nothing, and raise where the write would have raised. The first two are public under the name of the package: that is
how code names them. The others tell whether torch would write at all.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.ir.arguments import leaves
from clew.ir.effects import draws_numbers, pure


@pure
def with_item(array: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    """A copy of ``array`` in which ``value`` stands at ``index``."""
    result = _laid_out(array.clone(), array)
    result[index] = value
    return result


@pure
def fitted(value: torch.Tensor, array: torch.Tensor) -> torch.Tensor:
    """``value`` in the dtype of ``array``; an error, like that of a write, where it cannot be written into it."""
    if value.shape != array.shape:
        raise RuntimeError(f"what has shape {list(value.shape)} cannot be written into shape {list(array.shape)}")
    if not torch.can_cast(value.dtype, array.dtype):
        raise RuntimeError(f"result type {value.dtype} can't be cast to the desired output type {array.dtype}")
    if array.requires_grad and not value.requires_grad and torch.is_grad_enabled():
        return with_item(array, ..., value)  # comparisons have none
    return _laid_out(value.to(array.dtype), array)


def _laid_out(value: torch.Tensor, array: torch.Tensor) -> torch.Tensor:
    """``value`` with the strides of ``array``, which later ``view`` and ``is_contiguous`` ask for."""
    if array.layout is not torch.strided or value.stride() == array.stride():
        return value
    made = torch.empty_strided(array.shape, array.stride(), dtype=array.dtype, device=array.device)
    return made.copy_(value)


@draws_numbers
def drawn(array: torch.Tensor, method: str, *args: Any, **kwargs: Any) -> torch.Tensor:
    """What a method, ``normal_`` say, draws for ``array``: its strides decide how many numbers, and in which order."""
    return getattr(_laid_out(array.clone(), array), method)(*args, **kwargs)


@pure
def may_be_out(out: torch.Tensor, value: torch.Tensor, *given: Any) -> bool:
    """Whether torch writes ``value``, made of what was ``given``, into ``out``: of this size, and without gradients."""
    asked = any(one.requires_grad for one in leaves([out, *given]) if isinstance(one, torch.Tensor))
    return value.shape == out.shape and not (asked and torch.is_grad_enabled())


@pure
def needs_no_gradients(value: torch.Tensor) -> bool:
    """Whether torch lets ``value`` be written where ``unbind`` or ``split`` has made views."""
    return not value.requires_grad


@pure
def apart(written: int, *values: Any) -> bool:
    """Whether the first ``written`` arrays share no memory with each other and with the rest: arrays, nests, layers."""
    ranges = [[found for one in _arrays_in(value) if (found := _bytes_of(one)) is not None] for value in values]
    for place, own in enumerate(ranges[:written]):
        others = [one for other in ranges[place + 1 :] for one in other]
        if any(_meet(one, other) for one in own for other in others):
            return False
    return True


@pure
def same_or_apart(written: torch.Tensor, *values: Any) -> bool:
    """Whether what an array is written with, in the same call, is that array or shares no memory with it."""
    own = _bytes_of(written)
    for other in (one for value in values for one in _arrays_in(value)):
        found = _bytes_of(other)
        is_same = found == own and other.dtype == written.dtype and other.stride() == written.stride()
        if own is not None and found is not None and not is_same and _meet(own, found):
            return False
    return True


def _meet(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


def _arrays_in(value: Any) -> list[Any]:
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *value.buffers()]
    return [value] if isinstance(value, torch.Tensor) else list(leaves([value]))


def _bytes_of(value: Any) -> tuple[str, int, int] | None:
    """On which device an array lies, from which byte to which; None for what has no elements there."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or not value.numel():
        return None
    if value.device.type == "meta":
        return None
    length = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True)) + 1
    return str(value.device), value.data_ptr(), value.data_ptr() + length * value.element_size()


for _function in (with_item, fitted):
    _function.__module__ = "clew"
