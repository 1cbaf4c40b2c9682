"""Samples of torch's own operators at several sizes, for the shape rules.

A program calls an operator and returns the sizes of what it gives. It is captured on a sample of torch's list and asked
about the same sample with other sizes: every size made larger, single dimensions made one, or captured so and then
asked about the sample itself. ``judged`` yields what the capture said where it differs from the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

import clew
from benchmarks.opinfo import dtype_of
from clew.frameworks.torch.sizes.sizes import Sizes

Tensors = list[torch.Tensor]


class Sample:
    """One call of an operator, its tensors apart from the rest."""

    def __init__(self, operator: Any, sample: Any) -> None:
        self.function = operator.op
        self.tensors: Tensors = []
        self._args = self._without_tensors((sample.input, *sample.args))
        self._kwargs = self._without_tensors(dict(sample.kwargs))

    def _without_tensors(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            self.tensors.append(value.detach())
            return _Place(len(self.tensors) - 1)
        if type(value) in (tuple, list):
            return type(value)(map(self._without_tensors, value))
        return {key: self._without_tensors(one) for key, one in value.items()} if type(value) is dict else value

    def program(self, *tensors: torch.Tensor) -> list[Any]:
        """The sizes of all tensors that the operator gives."""
        found = self.function(*_filled(self._args, tensors), **_filled(self._kwargs, tensors))
        given = found if isinstance(found, (tuple, list)) else [found]
        return [tuple(one.shape) for one in given if isinstance(one, torch.Tensor)]


class _Place:
    def __init__(self, number: int) -> None:
        self.number = number


def _filled(value: Any, tensors: Any) -> Any:
    if isinstance(value, _Place):
        return tensors[value.number]
    if type(value) in (tuple, list):
        return type(value)(_filled(one, tensors) for one in value)
    return {key: _filled(one, tensors) for key, one in value.items()} if type(value) is dict else value


def resized(tensor: torch.Tensor, size_for: Callable[[int, int], int]) -> torch.Tensor:
    """The tensor with other sizes, which are functions of dimension and size; its numbers are among those it had."""
    for axis, size in enumerate(tensor.shape):
        wanted = size_for(axis, size)
        if size and wanted != size:
            tensor = tensor.index_select(axis, torch.arange(wanted) % size)
    return tensor


def variants(tensors: Tensors) -> Iterator[Tensors]:
    """The same tensors with other sizes."""
    for change in (lambda size: size + 2 if size > 1 else size, lambda size: size * 2):
        yield [resized(one, lambda axis, size, change=change: change(size)) for one in tensors]
    for size in sorted({size for one in tensors for size in one.shape if size > 1})[:3]:
        yield [resized(one, lambda axis, found, size=size: 1 if found == size else found) for one in tensors]
    for number, tensor in enumerate(tensors[:3]):
        for dimension in range(min(tensor.dim(), 4)):
            changed = resized(tensor, lambda axis, size, dimension=dimension: 1 if axis == dimension else size)
            yield [*tensors[:number], changed, *tensors[number + 1 :]]


def _answer(function: Callable[..., Any], tensors: Tensors) -> Any:
    try:
        return function(*tensors)
    except Exception as error:
        return error


def judged(operator: Any, most: int) -> Iterator[tuple[str, str]]:
    """How the captures of an operator fare: ``right``, ``guarded``, ``wrong`` or ``unlike`` the example, with texts."""
    dtype = dtype_of(operator)
    if dtype is None:
        return
    samples = [Sample(operator, one) for one, _ in zip(operator.sample_inputs("cpu", dtype), range(most), strict=False)]
    for sample in samples:
        others = list(variants(sample.tensors))
        yield from _compared(sample, sample.tensors, others)
        for other in others:
            yield from _compared(sample, other, [sample.tensors])


def _compared(sample: Sample, example: Tensors, others: list[Tensors]) -> Iterator[tuple[str, str]]:
    if isinstance(_answer(sample.program, example), Exception):
        return
    unlike: list[Any] = []
    agrees = Sizes._agrees

    def noting(self: Sizes, said: Any, real: Any) -> bool:
        found = agrees(self, said, real)
        if not found:
            unlike.append(f"the rule says {said}, the example {real}")
        return found

    Sizes._agrees = noting  # type: ignore[method-assign]
    try:
        graph = clew.trace(sample.program, tuple(example))
    except clew.CaptureError:
        return
    finally:
        Sizes._agrees = agrees  # type: ignore[method-assign]
    yield from (("unlike", text) for text in unlike)
    for other in others:
        wanted, found = _answer(sample.program, other), _answer(graph, other)
        if isinstance(wanted, Exception):
            continue
        if isinstance(found, clew.GuardError):
            yield "guarded", found.what
        elif isinstance(found, Exception) or list(found) != wanted:
            shapes = [tuple(one.shape) for one in example], [tuple(one.shape) for one in other]
            yield "wrong", f"{found!r} instead of {wanted} for {shapes} {sample._args} {sample._kwargs}"
        else:
            yield "right", ""
