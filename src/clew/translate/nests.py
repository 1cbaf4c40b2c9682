"""Arguments that are containers of arrays, taken apart as the example has them; each leaf knows how it is reached.

In comes a node of the target and the example's value; out comes the same container with values of the target in it.
What a leaf is, is guarded: its dtype and rank, the class of a number, the value of anything else that is plain.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from clew.ir.guards import Call
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.translate.values import Number, Opaque, Spec

if TYPE_CHECKING:
    from clew.translate.translator import Translator

_PLAIN = (str, bytes, type(None), bool)


class Gone:
    """An array of the example that is no longer there; its type is left."""

    def __init__(self, kind: ArrayType) -> None:
        self.kind = kind


def stands_for(kind: Any) -> Any:
    """What stands for an array of the example that is gone; None for anything else."""
    return Gone(kind) if isinstance(kind, ArrayType) else None


def spec_of(translator: Translator, example: Any) -> Spec | None:
    """The dtype and shape of an array of the example; None for anything else."""
    if isinstance(example, Gone):
        return translator.wanted(example.kind)  # type: ignore[no-any-return]
    if translator.source.is_array(example):
        return Spec(tuple(example.shape), translator.xp.dtype(translator.source.dtype_of(example)))
    return None


def entered(translator: Translator, made: Node, example: Any, place: Any) -> Any:
    """A value of the target, or a container of them, for an argument or a part of one; ``place`` says where it is."""
    writer, source = translator.writer, translator.source
    is_opaque = source.is_array(example) and source.is_opaque(source.dtype_of(example))
    if is_opaque:
        return source.opaque(writer, made)
    spec = spec_of(translator, example)
    if spec is not None:
        value: Any = writer.wrap(made, spec, True)
        translator.leaves.append((place, value))
        return value
    if type(example) in (int, float):
        value = Number(writer, made, example)
        translator.leaves.append((place, value))
        return value
    if isinstance(example, _PLAIN):
        translator.leaves.append((place, example))
        return example
    if isinstance(example, tuple) and hasattr(example, "_fields"):
        parts = {name: _part(translator, made, getattr(example, name), place, getattr, name)
                 for name in example._fields}  # fmt: skip
        return type(example)(**parts)
    if type(example) in (tuple, list):
        return type(example)(_part(translator, made, one, place, operator.getitem, index)
                             for index, one in enumerate(example))  # fmt: skip
    if type(example) is dict:
        return {key: _part(translator, made, one, place, operator.getitem, key) for key, one in example.items()}
    return Opaque(writer, made)


def _part(translator: Translator, made: Node, example: Any, place: Any, function: Any, key: Any) -> Any:
    inner = translator.writer.node("call_function", function, (made, key))
    return entered(translator, inner, example, Call(function, (place, key)))
