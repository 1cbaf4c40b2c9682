"""The modes of the parts that a captured module has entered: which of them a program may have asked for.

The parts and the code that ran come in; out come the paths of parts whose methods name ``training``, or of all parts if
some other function does. Layers that stay one call ask for their own mode whenever they run.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Set
from types import CodeType
from typing import Any

import torch

from clew.capture.example.reach import attribute_names
from clew.ir.effects import pure

MODE = "training"


@pure
def parts_in_mode(root: torch.nn.Module, mode: bool, *paths: str) -> bool:
    """Whether the parts at these paths, as far as there are any, are in a mode."""
    for path in paths:
        part: Any = root
        for atom in _atoms(path):
            part = part._modules.get(atom)
            if part is None:
                break
        if part is not None and part.training is not mode:
            return False
    return True


@functools.lru_cache(maxsize=16384)
def _atoms(path: str) -> tuple[str, ...]:
    return tuple(path.split("."))


def asked_for_mode(
    root: torch.nn.Module, entered: Iterable[tuple[str, torch.nn.Module]], codes: Set[CodeType]
) -> dict[bool, list[str]]:
    """The paths of the parts whose mode the code that ran may have asked for, by that mode."""
    is_generated = type(root).__module__.startswith("clew.")  # its code asks for the modes of parts by itself
    asking = {code for code in codes if MODE in attribute_names(code)}
    parts = [(path, part) for path, part in entered if path] if asking or is_generated else []
    kinds: set[Any] = {type(part) for _, part in parts}
    methods = {kind: asking & set(_codes(kind)) for kind in kinds}
    is_free = is_generated or bool(asking.difference(*methods.values()))
    found: dict[bool, list[str]] = {}
    for path, part in parts:
        if is_free or methods[type(part)]:
            found.setdefault(part.training, []).append(path)
    return found


@functools.lru_cache(maxsize=4096)
def _codes(kind: type) -> tuple[CodeType, ...]:
    """The code of the methods of a class, and of those that it inherits from users' classes."""
    held = [value for base in kind.__mro__ if base is not torch.nn.Module for value in vars(base).values()]
    functions = [getattr(value, "fget", None) or getattr(value, "__func__", value) for value in held]
    found = [getattr(getattr(function, "__wrapped__", function), "__code__", None) for function in functions]
    return tuple(code for code in found if isinstance(code, CodeType))
