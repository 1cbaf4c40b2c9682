"""The guards at the entrance of a captured TensorFlow program: what tensors are given, and what is around it."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from clew.capture.guards.notes import are_distinct, expression_of, require
from clew.capture.guards.variables import WatchedVariables, changed
from clew.capture.state.containers import same_part
from clew.frameworks.tensorflow.types import UNKNOWN, Root, array_type
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.types import LONG_DTYPES, SHORT_DTYPES, ArrayType, parse_type

_VARIABLE = "variable "


@pure
def fits(value: Any, wanted: str) -> str:
    """``wanted``, if it describes the value, and otherwise what the value is: ``f32[2, 3]``, ``variable f32[4]``.

    A size written as ``_`` may be any.
    """
    known = described(value)
    if known == wanted or not isinstance(value, (tf.Tensor, tf.Variable)) or not _may_vary(wanted):
        return known
    is_variable, dtype, sizes = _parsed(wanted)
    if is_variable != isinstance(value, tf.Variable) or value.dtype.name != dtype or known.startswith("masked "):
        return known
    if sizes is None:
        return wanted
    shape = value.shape
    same = shape.rank == len(sizes) and all(w in (UNKNOWN, size) for w, size in zip(sizes, shape, strict=True))
    return wanted if same else known


@functools.lru_cache(maxsize=4096)
def _may_vary(wanted: str) -> bool:
    return UNKNOWN in wanted or "[" not in wanted


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[bool, str, tuple[Any, ...] | None]:
    """Whether a variable is described, its dtype, and its sizes if its rank is known."""
    bare = text.removeprefix(_VARIABLE)
    if "[" not in bare:
        return bare != text, LONG_DTYPES.get(bare, bare), None
    found = parse_type(bare)
    assert isinstance(found, ArrayType)
    return bare != text, found.dtype, found.shape


def described(value: Any) -> str:
    """What a value is, in a few words."""
    if isinstance(value, tf.Variable):
        return _VARIABLE + _array(value)
    if not isinstance(value, tf.Tensor):
        return f"a {type(value).__name__}"
    return f"masked {_array(value)}" if getattr(value, "_keras_mask", None) is not None else _array(value)


def _array(value: Any) -> str:
    return _array_text(value.dtype, tuple(value.shape) if value.shape.rank is not None else None)


@functools.lru_cache(maxsize=4096)
def _array_text(dtype: Any, sizes: tuple[Any, ...] | None) -> str:
    if sizes is None:
        return SHORT_DTYPES.get(dtype.name, dtype.name)
    return str(array_type(dtype, tf.TensorShape(sizes)))


@pure
def kind_of_number(value: Any, is_exact: bool) -> str:
    """Whether a value is an int or a float; which of them, if that matters."""
    return "number" if type(value) in (int, float) and not is_exact else type(value).__name__


def a_number(kind: str) -> str:
    """A kind of number, in words."""
    return f"an {kind}" if kind == "int" else f"a {kind}"


class WrappedContents:
    """A list or dict that is an attribute of a module, which TensorFlow keeps in a container of its own, as it was."""

    def __init__(self, label: str, value: Any) -> None:
        self.label, self.value = label, value
        self.before = self._parts()

    def _parts(self) -> list[Any]:
        pairs = self.value.items() if isinstance(self.value, dict) else enumerate(self.value)
        return [part for pair in pairs for part in pair]

    def changed(self) -> str | None:
        """Its name, if it holds something else now."""
        now = self._parts()
        same = len(now) == len(self.before) and all(map(same_part, now, self.before))
        return None if same else self.label

    def put_back(self) -> None:
        """Let it hold what it held."""
        if self.changed() is not None:
            keys, values = self.before[::2], self.before[1::2]
            self.value.clear()
            if isinstance(self.value, dict):
                self.value.update(zip(keys, values, strict=True))
            else:
                self.value.extend(values)

    def __reduce__(self) -> tuple[Any, ...]:
        """Elsewhere there is no such module that could change: what is saved holds its own weights."""
        return WrappedContents, (self.label, [])


@pure
def changed_contents(held: WrappedContents) -> str | None:
    """The name of a list or dict of a module that holds something else now."""
    return held.changed()


class EntryGuards:
    """Writes guards into a graph."""

    def __init__(self, graph: Graph, root: Root) -> None:
        self.graph = graph
        self.root = root

    def tensor(self, node: Node, value: Any) -> None:
        """An argument must be a tensor, or variable, of the same dtype and shape."""
        kind = _VARIABLE if isinstance(value, tf.Variable) else ""
        wanted = kind + _array(value)
        found = self.graph.call_function(fits, (node, wanted))
        self.graph.call_function(require, (found, wanted, f"{expression_of(node)} is {wanted}"))

    def number(self, node: Node, value: Any, is_exact: bool) -> None:
        """An argument must be a number; of the same type, if the program relies on that."""
        found = self.graph.call_function(kind_of_number, (node, is_exact))
        wanted = kind_of_number(value, is_exact)
        self.graph.call_function(require, (found, wanted, f"{expression_of(node)} is {a_number(wanted)}"))

    def different(self, nodes: list[Node]) -> None:
        """A program that compares objects was shown different ones."""
        found = self.graph.call_function(are_distinct, tuple(nodes))
        self.graph.call_function(require, (found, True, "the tensors among the arguments are different objects"))

    def watched(self, watched: WatchedVariables, text: str) -> None:
        """Variables must be what they were."""
        if len(watched):
            node = self.graph.create_node("get_attr", self.root.path_of(watched, "_watched"), (), {})
            found = self.graph.call_function(changed, (node,))
            self.graph.call_function(require, (found, None, text))

    def wrapped(self, held: WrappedContents) -> None:
        """A list or dict of a module must hold what it held."""
        node = self.graph.create_node("get_attr", self.root.path_of(held, "_contents"), (), {})
        found = self.graph.call_function(changed_contents, (node,))
        self.graph.call_function(require, (found, None, f"{held.label} holds what it held"))
