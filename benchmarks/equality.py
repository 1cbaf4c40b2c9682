"""Whether two results of a model are the same: the types of their containers, and the values in them.

In come two nests of anything a model returns, caches and other objects that hold tensors included; out comes the path
of the first difference with its kind, or an empty text. Values are compared bit for bit: the captured graph calls the
same functions in the same order, so that a small difference is a finding too.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

PLAIN = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, type)


def difference(expected: Any, actual: Any, path: str = "result") -> str:
    """Where and how the two differ first; empty where they do not."""
    if isinstance(expected, Tensor) and isinstance(actual, Tensor):
        return _tensors(expected, actual, path)
    if type(expected) is not type(actual):
        return f"{path}: {type(expected).__name__} became {type(actual).__name__}"
    if isinstance(expected, PLAIN):
        return "" if expected == actual or expected != expected else f"{path}: {expected!r} became {actual!r}"
    return _parts(expected, actual, path)


def _tensors(expected: Tensor, actual: Tensor, path: str) -> str:
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"{path}: {expected.dtype}{list(expected.shape)} became {actual.dtype}{list(actual.shape)}"
    same = (expected == actual) | ((expected != expected) & (actual != actual))
    if bool(same.all()):
        return ""
    apart = (expected[~same].to(torch.complex128) - actual[~same].to(torch.complex128)).abs().max().item()
    return f"{path}: values differ by up to {apart:.3g}"


def _parts(expected: Any, actual: Any, path: str) -> str:
    mine, other = _children(expected), _children(actual)
    if list(mine) != list(other):
        return f"{path}: keys {list(mine)} became {list(other)}"
    for key, value in mine.items():
        found = difference(value, other[key], f"{path}.{key}")
        if found:
            return found
    return ""


def _children(value: Any) -> dict[Any, Any]:
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    held = getattr(value, "__dict__", {})
    return {key: part for key, part in held.items() if not callable(part) and not hasattr(part, "to_dict")}


def tensors(value: Any) -> list[Tensor]:
    """All tensors in a nest, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, PLAIN):
        return []
    return [tensor for part in _children(value).values() for tensor in tensors(part)]


def results_of_calls(program: Any, calls: list[Any]) -> list[list[Tensor] | str]:
    """For each pair of arguments the tensors that a program gives, or the class of its error.

    A guard that refuses is ``refused``, be it an error of Clew or an ``assert`` of standalone code.
    """
    found: list[list[Tensor] | str] = []
    for args, kwargs in copy.deepcopy(calls):
        torch.manual_seed(7)
        try:
            with torch.no_grad():
                found.append(tensors(program(*args, **kwargs)))
        except Exception as error:
            name = type(error).__name__
            found.append("refused" if name in ("GuardError", "AssertionError") else name)
    return found
