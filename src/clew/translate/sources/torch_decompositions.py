"""torch's functions taken apart by torch's own decompositions, down to those that have rows.

A call comes in: its function, the kinds of its arrays, its plain arguments. An ``Apart`` goes out: ATen's functions as
steps, with free sizes where torch's symbolic shapes allow that, and the conditions on sizes that torch relied on.
Otherwise all sizes are fixed. None comes out where torch cannot say what the call computes without data, or where it
writes.
"""

from __future__ import annotations

import functools
import logging
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from clew.ir.guards import Call
from clew.ir.types import ArrayType
from clew.translate.apart import Apart, Given, Result, Size, Step
from clew.translate.rows.table import Table
from clew.translate.rows.torch_aten import ELEMENTWISE, OTHERWISE
from clew.translate.values import Dtype, Place
from clew.translate.writer import leaves_of, mapped

_OF_TWO = {
    "Equality": operator.eq, "Unequality": operator.ne, "StrictLessThan": operator.lt, "LessThan": operator.le,
    "StrictGreaterThan": operator.gt, "GreaterThan": operator.ge, "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv, "Mod": operator.mod, "PythonMod": operator.mod,
}  # fmt: skip
_OF_MANY = {"Add": operator.add, "Mul": operator.mul}
"""The classes of sympy's expressions that torch's conditions on sizes consist of."""
_MOST_STEPS, _LARGEST = 2000, 4096


@contextmanager
def _silence() -> Iterator[None]:
    """Keeps torch from printing what its tracer meets: a call that cannot be traced is no error here."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@dataclass(frozen=True)
class Kind:
    """An array that a call is given; ``fixed`` says that its sizes are the same at each call."""

    dtype: str
    shape: tuple[int, ...]
    fixed: bool


def names_of(operation: Any) -> tuple[str, ...]:
    """The names under which a row for one of ATen's functions may stand."""
    if operation is operator.getitem or operation.__module__ == "_operator":
        return (f"operator.{operation.__name__}",)
    if not isinstance(operation, torch._ops.OpOverload):
        return (getattr(operation, "__name__", str(operation)),)
    space, _, name = operation._schema.name.partition("::")
    if space not in ("aten", "prims"):
        return (f"{space}.{name}",)
    full = (f"{space}.{name}.{operation._overloadname}", f"{space}.{name}")
    is_same = name not in OTHERWISE if space == "aten" else name in ELEMENTWISE
    return (*full, name) if is_same else full


class Decompositions:
    """What is remembered of the calls of one translation: layers repeat."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._memory: dict[Any, Apart | None] = {}
        self._parts: dict[Any, Callable[..., Any]] = {}

    def of(self, function: Callable[..., Any], args: Any, kwargs: Any, given: list[Kind | int]) -> Apart | None:
        """The steps of a call whose arrays and numbers stand as ``Given`` in the arguments."""
        if not _is_plain(args, kwargs):
            return None
        key = (function, repr(args), repr(kwargs), tuple(given))
        if key not in self._memory:
            self._memory[key] = self._taken_apart(function, args, kwargs, given)
        return self._memory[key]

    def _taken_apart(self, function: Any, args: Any, kwargs: Any, given: list[Any]) -> Apart | None:
        function = getattr(function, "_torchdynamo_inline", function)

        def run(*values: Any) -> Any:
            filled, named = mapped((args, kwargs), lambda leaf: values[leaf.place] if isinstance(leaf, Given) else leaf)
            return function(*filled, **named)

        with _silence():
            return self._traced(run, given, True) or self._traced(run, given, False)

    def _traced(self, run: Callable[..., Any], given: list[Any], free: bool) -> Apart | None:
        try:
            return _Tracing(self._without_rows(), given, free).traced(run)
        except Exception:  # torch's tracer raises anything: then the call has no such parts
            return None

    def _without_rows(self) -> dict[Any, Callable[..., Any]]:
        """torch's decompositions of those functions that have no row."""
        if not self._parts:
            self._parts = {
                operation: found for operation, found in decomposition_table.items()
                if isinstance(operation, torch._ops.OpOverload) and self.table.find(names_of(operation)) is None
            }  # fmt: skip
        return self._parts


class _Tracing:
    """One call, traced by torch with stand-ins for its arrays."""

    def __init__(self, parts: dict[Any, Callable[..., Any]], given: list[Any], free: bool) -> None:
        self.parts = parts
        self.given = given
        self.free = free
        self.env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
        self.mode = FakeTensorMode(shape_env=self.env)
        self.places: dict[Any, int] = {}
        self.steps: list[Step] = []

    def traced(self, run: Callable[..., Any]) -> Apart:
        """The steps of a function of arrays and numbers."""
        values = [self._stand_in(one) for one in self.given]
        with torch.no_grad():
            found = make_fx(torch.func.functionalize(run), self.parts, tracing_mode="symbolic")(*values)
        found.graph.eliminate_dead_code()
        inputs = iter(range(len(values)))
        known: dict[Any, Any] = {}
        symbols: dict[Any, Any] = {}
        for node in found.graph.nodes:
            if node.op == "placeholder":
                known[node] = Given(next(inputs))
                symbols |= dict(_symbols(node.meta.get("val"), known[node]))
            elif node.op == "get_attr":
                known[node] = self._constant(getattr(found, str(node.target)))
            elif node.op == "output":
                result = _filled(node.args[0], known)
            else:
                known[node] = self._step(node, known)
        conditions = tuple(self._conditions(symbols))
        return Apart(tuple(self.steps), result, conditions)

    def _stand_in(self, one: Any) -> Any:
        if not isinstance(one, Kind):
            return one
        value = torch.empty(one.shape, dtype=getattr(torch, one.dtype))
        how = DimDynamic.DYNAMIC if self.free and not one.fixed else DimDynamic.STATIC
        return self.mode.from_tensor(value, symbolic_context=StatelessSymbolicContext([how] * value.dim()))

    def _step(self, node: Any, known: dict[Any, Any]) -> Result:
        if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
            raise NotImplementedError("a write")
        if len(self.steps) >= _MOST_STEPS:
            raise NotImplementedError("too many steps")
        args, kwargs = _filled((tuple(node.args), dict(node.kwargs)), known)
        value = node.meta.get("val")
        kind = None
        if isinstance(value, torch.Tensor):
            kind = ArrayType(str(value.dtype).removeprefix("torch."), tuple(map(_hint, value.shape)))
        self.steps.append(Step(names_of(node.target), args, kwargs, kind))
        return Result(len(self.steps) - 1)

    def _constant(self, value: Any) -> Result:
        """A constant that torch made while it traced, written out."""
        if not isinstance(value, torch.Tensor) or value.numel() > _LARGEST:
            raise NotImplementedError("a large constant")
        with torch.utils._python_dispatch._disable_current_modes():
            numbers = value.tolist()
        kind = ArrayType(str(value.dtype).removeprefix("torch."), tuple(value.shape))
        self.steps.append(Step(("tensor",), (numbers,), {}, kind))
        return Result(len(self.steps) - 1)

    def _conditions(self, symbols: dict[Any, Any]) -> Iterator[Any]:
        """What torch relied on; with fixed sizes, that they are what they are."""
        if not self.free:
            for place, one in enumerate(self.given):
                if isinstance(one, Kind) and not one.fixed:
                    for axis, size in enumerate(one.shape):
                        yield Call(operator.eq, (Size(Given(place), axis), size))
        for one in self.env.guards:
            yield _condition(one.expr, symbols)


def _is_node(leaf: Any) -> bool:
    return isinstance(leaf, torch.fx.Node)


def _filled(nest: Any, known: dict[Any, Any]) -> Any:
    """A nest of torch.fx's with what stands for its nodes, in plain containers; dtypes are their names."""
    if isinstance(nest, dict):
        return {key: _filled(value, known) for key, value in nest.items()}
    if isinstance(nest, (tuple, list)):
        items = [_filled(item, known) for item in nest]
        return items if isinstance(nest, list) else tuple(items)
    if isinstance(nest, torch.dtype):
        return Dtype(str(nest).removeprefix("torch."))
    if isinstance(nest, (torch.device, torch.layout, torch.memory_format)):
        return Place(str(nest))
    return known[nest] if _is_node(nest) else nest


def _hint(size: Any) -> int:
    return size if isinstance(size, int) else int(size.node.hint)


def _symbols(value: Any, given: Given) -> Iterator[tuple[Any, Any]]:
    """The symbols that stand for the sizes of an array, or for a number."""
    if isinstance(value, torch.SymInt):
        yield value.node._expr, given
    elif isinstance(value, torch.Tensor):
        for axis, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt):
                yield size.node._expr, Size(given, axis)


def _condition(expression: Any, symbols: dict[Any, Any]) -> Any:
    """An expression of sympy's as one of ours."""
    if expression in symbols:
        return symbols[expression]
    if getattr(expression, "is_Integer", False) or isinstance(expression, int):
        return int(expression)
    name = type(expression).__name__
    first, *rest = [_condition(one, symbols) for one in expression.args] or [None]
    if name in _OF_TWO and len(rest) == 1:
        return Call(_OF_TWO[name], (first, *rest))
    if name in _OF_MANY:
        return functools.reduce(lambda one, other: Call(_OF_MANY[name], (one, other)), rest, first)
    if name == "Pow" and isinstance(rest[0], int) and rest[0] > 0:
        return Call(operator.pow, (first, rest[0]))
    raise NotImplementedError(f"a condition {expression}")


def _is_plain(args: Any, kwargs: Any) -> bool:
    """Whether all arguments are arrays, numbers and plain values that torch's tracer can be given."""
    return all(
        isinstance(leaf, (Given, bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.layout,
                          torch.memory_format))
        for leaf in leaves_of((args, kwargs))
    )  # fmt: skip
