"""Values of the target program while it is written: what rows compute with, and what becomes nodes.

An ``Array`` stands for an array of the target: its node, and what is known of it (``Spec``: dtype, and its shape for
the example). A ``Number`` stands for a plain number of the running program, mostly a size. Operators on either
make nodes. Always holds: a row cannot find out a size without a node that reads it, so what it writes holds for all
sizes; asking a ``Number`` for its value is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.ir.node import Node
from clew.translate.refusals import Untranslatable

if TYPE_CHECKING:
    from clew.translate.writer import Writer


@dataclass(frozen=True)
class Spec:
    """What is known of an array: its shape for the example, its dtype by name, whether a Python number made it."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False


class Value:
    """Something that the target program has when it runs."""

    __slots__ = ("differentiable", "frozen", "node", "writer")

    def __init__(self, writer: Writer, node: Node, differentiable: bool = False) -> None:
        self.writer = writer
        self.node = node
        self.differentiable = differentiable
        """Whether a gradient with respect to a weight or a float input may flow through it."""
        self.frozen = False
        """Whether it was computed where the program asked for no gradients."""


def _binary(function: Callable[..., Any], swapped: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return self.writer.operate(function, other, self) if swapped else self.writer.operate(function, self, other)

    return method


class _Operators:
    """Python's operators, each of which makes a node."""

    __slots__ = ()
    __add__, __radd__ = _binary(operator.add), _binary(operator.add, True)
    __sub__, __rsub__ = _binary(operator.sub), _binary(operator.sub, True)
    __mul__, __rmul__ = _binary(operator.mul), _binary(operator.mul, True)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _binary(operator.truediv, True)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _binary(operator.floordiv, True)
    __mod__, __rmod__ = _binary(operator.mod), _binary(operator.mod, True)
    __pow__, __rpow__ = _binary(operator.pow), _binary(operator.pow, True)
    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
    __and__, __rand__ = _binary(operator.and_), _binary(operator.and_, True)
    __or__, __ror__ = _binary(operator.or_), _binary(operator.or_, True)
    __xor__, __rxor__ = _binary(operator.xor), _binary(operator.xor, True)
    __lshift__, __rlshift__ = _binary(operator.lshift), _binary(operator.lshift, True)
    __rshift__, __rrshift__ = _binary(operator.rshift), _binary(operator.rshift, True)
    __eq__ = _binary(operator.eq)  # type: ignore[assignment]
    __ne__ = _binary(operator.ne)  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __neg__(self: Any) -> Any:
        return self.writer.operate(operator.neg, self)

    def __invert__(self: Any) -> Any:
        return self.writer.operate(operator.invert, self)

    def __abs__(self: Any) -> Any:
        return self.writer.operate(abs, self)


class Array(_Operators, Value):
    """An array of the target."""

    __slots__ = ("fixed", "layout", "origin", "path", "plain", "sizes", "spec")

    def __init__(
        self, writer: Writer, node: Node, spec: Spec, differentiable: bool = False, fixed: bool = False
    ) -> None:
        super().__init__(writer, node, differentiable)
        self.spec = spec
        self.fixed = fixed
        """Whether its shape is the same at each call, as that of a weight is."""
        self.path = ""
        """The attribute of the program that it is; empty for what is computed."""
        self.sizes: dict[int, Number] = {}
        """The numbers that were read of its shape."""
        self.plain: Any = None
        """The plain number that it was made of, if that is known."""
        self.layout: tuple[int, ...] | None = None
        """The order in which its axes lie in the source's memory, if that is known."""
        self.origin: Node | None = None
        """The node of the source that gives it."""

    @property
    def dtype(self) -> str:
        """The name of the dtype."""
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        """The rank, which is fixed."""
        return len(self.spec.shape)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes, each a number of the running program."""
        return tuple(self.size(axis) for axis in range(self.ndim))

    def size(self, axis: int) -> Any:
        """The size of an axis: a node that reads it."""
        return self.writer.namespace.size(self, axis % self.ndim)

    def __getitem__(self, index: Any) -> Any:
        return self.writer.namespace.getitem(self, index)

    def __bool__(self) -> bool:
        raise Untranslatable("the program asks for the truth of an array while it is translated")

    def __iter__(self) -> Iterator[Any]:
        raise Untranslatable("the program goes through an array of a length that is not fixed")


class Number(_Operators, Value):
    """A plain number of the running program; ``value`` is the example's."""

    __slots__ = ("value",)

    def __init__(self, writer: Writer, node: Node, value: Any) -> None:
        super().__init__(writer, node)
        self.value = value

    def _refuse(self) -> Any:
        raise Untranslatable("the translation would depend on a size or number that is not fixed")

    __bool__ = __index__ = __int__ = __float__ = _refuse


class Plain(Value):
    """An array of the source whose items are plain numbers of the running program: sizes, mostly.

    It is written as an array only where one is needed. ``items`` is a number, or a list of numbers or of lists.
    """

    __slots__ = ("_array", "dtype", "items")

    def __init__(self, writer: Writer, items: Any, dtype: str) -> None:
        self.writer = writer
        self.differentiable = self.frozen = False
        self.items = items
        self.dtype = dtype
        self._array: Any = None

    def array(self) -> Any:
        """The same as an array."""
        if self._array is None:
            self._array = self.writer.namespace.as_array(self.items, self.dtype)
        return self._array

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of the array."""
        made: Node = self.array().node
        return made


class Optional(Value):
    """An array or None, by a branch of the running program; ``spec`` is that of the array."""

    __slots__ = ("chosen", "spec")

    def __init__(self, writer: Writer, node: Node, spec: Spec, chosen: Chosen | None = None) -> None:
        super().__init__(writer, node, True)
        self.spec = spec
        self.chosen = chosen


class Items(Value):
    """A list of arrays of which the number is not fixed; ``specs`` are those of the example, None where not known.

    ``shares`` says whether the arrays may lie in the memory of others, so that the source's change with these.
    """

    __slots__ = ("shares", "specs")

    def __init__(self, writer: Writer, node: Node, specs: list[Any], shares: bool = False) -> None:
        super().__init__(writer, node, True)
        self.specs = specs
        self.shares = shares


class Zipped(Value):
    """Several lists side by side, none of which has a fixed number of items."""

    __slots__ = ("parts",)

    def __init__(self, writer: Writer, node: Node, parts: tuple[Any, ...]) -> None:
        super().__init__(writer, node, True)
        self.parts = parts


class Dtype(str):
    """A dtype of the source, by its name."""

    __slots__ = ()


class Place(str):
    """A device, layout or memory format of the source: no matter to the target."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """The kind of a device."""
        return self.partition(":")[0]

    @property
    def index(self) -> Any:  # type: ignore[override]
        """Which of several devices of a kind it is: not said."""
        return None


class Opaque(Value):
    """Any other object of the running program, of which nothing is known."""

    __slots__ = ("chosen", "reason")

    def __init__(self, writer: Writer, node: Node, reason: str = "", chosen: Chosen | None = None) -> None:
        super().__init__(writer, node)
        self.reason = reason
        """Why nothing is known, if that is a refusal that was listed already."""
        self.chosen = chosen


@dataclass(frozen=True, eq=False)
class Chosen:
    """What a value of a branch is on each side of it: another branch on the same predicate knows which it is."""

    predicate: Value
    sides: tuple[Any, Any]
