"""Sizes that are not known while a program is traced: Python sees None there, and a number when it runs eagerly.

A program that reads such a size may take another way for it, so it is refused. Programs that ask whether a size is
None, or say ``x.shape[0] or tf.shape(x)[0]``, know what they do.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

import tensorflow as tf

from clew.capture.patches import Patches

_READING = ("__getitem__", "__iter__", "as_list", "num_elements", "__eq__", "__ne__")
_KNOWING = frozenset({"IS_OP", "JUMP_IF_TRUE_OR_POP"})


def install(patches: Patches, refuse: Callable[[str], Any]) -> None:
    """Let shapes call ``refuse`` where a size is read that is not known; it raises if the program did it."""
    for name in _READING:
        patches.on_class(tf.TensorShape, name, functools.partial(_reporting, name=name, refuse=refuse))


def _reporting(original: Any, name: str, refuse: Callable[[str], Any]) -> Any:
    @functools.wraps(original)
    def read(shape: Any, *args: Any) -> Any:
        found = original(shape, *args)
        if found is None if name == "__getitem__" else shape.rank is not None and not shape.is_fully_defined():
            refuse("the program reads a size that is not known before the graph runs")
        return found

    return read


def asks_for_none(functions: Iterable[FunctionType]) -> bool:
    """Whether some function tells sizes that are known from those that are not."""
    return any(_asks(function.__code__) for function in functions)


@functools.lru_cache(maxsize=4096)
def _asks(code: CodeType) -> bool:
    names = {instruction.opname for instruction in dis.get_instructions(code)}
    if names & _KNOWING or any(name.endswith(("IF_NONE", "IF_NOT_NONE")) for name in names):
        return True
    return any(_asks(constant) for constant in code.co_consts if isinstance(constant, CodeType))
