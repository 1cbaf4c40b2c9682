"""One observed run of a program: everything that it shows, as pictures, and what two runs show differently.

The program runs on the arguments it is given, which should be copies. What is seen: the result or the error, the
arguments afterwards, state, random numbers, which results are which arguments, and gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from clew.tools.calls import Call
from clew.tools.pictures import Picture, Tolerance, difference, picture, tensors_in
from clew.tools.world import World

_GRADIENT_SEED = 20


@dataclass(frozen=True)
class Observation:
    """What one run showed, aspect by aspect: the words for an aspect, and its picture."""

    error: Exception | None = None
    aspects: dict[str, Picture] = field(default_factory=dict)


def observe(program: Any, call: Call, world: World, of_capture: bool, gradients: bool) -> Observation:
    """Run a program once; the world is left as the run made it."""
    error, result = None, None
    before = world.tensors(of_capture)
    try:
        result = program(*call[0], **call[1])
    except Exception as raised:
        error = raised
    aspects = {"result": picture(result)} if error is None else {}
    for place, value in _named_arguments(call):
        aspects[f"{place} afterwards"] = picture(value)
    for name, tensor in world.tensors(of_capture).items():
        if name in world.edited:  # by value it cannot be compared
            aspects[f"whether {name} is written"] = picture(world.is_written(tensor))
        else:
            aspects[f"{name} afterwards"] = picture(tensor)
    changes = {f" {name}": seen for name, seen in world.plain_changes(of_capture).items()}
    aspects["the changed attributes"] = Picture(dict, parts=changes)
    aspects["the random state"] = world.random_picture()
    if error is None:
        aspects["memory"] = Picture(set, tuple(_shared_memory(result, call)))
        if gradients:
            kept = {name: tensor for name, tensor in before.items() if name not in world.edited}
            aspects.update(_gradients(result, {**tensors_in_call(call), **kept}))
    return Observation(error, aspects)


def _named_arguments(call: Call) -> Iterator[tuple[str, Any]]:
    for place, value in enumerate(call[0]):
        yield f"argument {place}", value
    for name, value in call[1].items():
        yield f"argument {name}", value


def tensors_in_call(call: Call) -> dict[str, torch.Tensor]:
    """The tensors among the arguments by path."""
    named = (tensors_in(value, place) for place, value in _named_arguments(call))
    return {place: tensor for found in named for place, tensor in found.items()}


def _shared_memory(result: Any, call: Call) -> Iterator[str]:
    """Which tensors of the result are, or share memory with, which arguments."""
    arguments = tensors_in_call(call)
    for place, tensor in tensors_in(result, "result").items():
        for name, argument in arguments.items():
            if tensor is argument:
                yield f"{place} is {name}"
            elif _memory(tensor) is not None and _memory(tensor) == _memory(argument):
                yield f"{place} shares memory with {name}"


def _memory(tensor: torch.Tensor) -> int | None:
    if tensor.layout is not torch.strided or tensor.is_meta or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return None
    return tensor.untyped_storage().data_ptr() or None


def _gradients(result: Any, sources: dict[str, torch.Tensor]) -> dict[str, Picture]:
    """The gradients of a weighted sum of all results, with respect to the leaves that ask for one."""
    outputs = [tensor for tensor in tensors_in(result).values() if tensor.requires_grad and not tensor.is_meta]
    wanted = {name: tensor for name, tensor in sources.items() if tensor.requires_grad and tensor.is_leaf}
    if not outputs or not wanted:
        return {}
    generator = torch.Generator().manual_seed(_GRADIENT_SEED)
    weights = [torch.randn(output.shape, generator=generator).to(output) for output in outputs]
    try:
        found = torch.autograd.grad(outputs, list(wanted.values()), weights, allow_unused=True)
    except RuntimeError as error:  # the program wrote over what backward needs; its capture must do so too
        return {"the gradient": Picture(str, (str(error).partition("\n")[0],))}
    return {f"the gradient of {name}": picture(value) for name, value in zip(wanted, found, strict=True)}


def first_difference(wanted: Observation, got: Observation, tolerance: Tolerance) -> str | None:
    """The first aspect in which two runs differ, in words."""
    if wanted.error is not None or got.error is not None:
        found = _error_difference(wanted.error, got.error)
        if found is not None:
            return found
    for name, seen in wanted.aspects.items():
        if name == "memory":
            found = _memory_difference(seen, got.aspects[name])
        elif name not in got.aspects:
            found = f"{name} is missing"
        else:
            found = difference(seen, got.aspects[name], name, tolerance)
        if found is not None:
            return found
    extra = [name for name in got.aspects if name not in wanted.aspects]
    return f"{extra[0]} exists only for the captured program" if extra else None


def _error_difference(wanted: Exception | None, got: Exception | None) -> str | None:
    if wanted is not None and got is not None and type(wanted) is type(got):
        return None
    return f"the captured program {_deed(got)}, the original {_deed(wanted)}"


def _deed(error: Exception | None) -> str:
    return "returns" if error is None else f"raises {type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _memory_difference(wanted: Picture, got: Picture) -> str | None:
    missing = [text for text in wanted.facts if text not in got.facts]
    added = [text for text in got.facts if text not in wanted.facts]
    if missing:
        return f"in the captured program it does not hold that {missing[0]}"
    return f"only in the captured program {added[0]}" if added else None
