"""Views: which calls give views of an array, and how a value for a view becomes one for the array behind it.

In comes a node whose value is a view of its first argument; ``can_invert`` says whether what is written into the view
can be written into the array by a call that gives a new array, and ``inverted`` makes that call: ``with_item`` for what
an index selects, the same elements in the array's shape for ``view``, the dimensions back for ``transpose``. Ranks are
not asked for: negative dimensions become indices behind an ellipsis.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from clew.frameworks.torch.functional_writes import with_item
from clew.ir.arguments import leaves
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType

_RESHAPING = frozenset({"view", "view_as", "unsqueeze", "squeeze", "unflatten"})
_TURNING = frozenset({"t", "transpose", "swapaxes", "swapdims", "matrix_transpose", "T", "mT"})
_MOVING = frozenset({"movedim", "moveaxis"})


def operation(node: Node) -> str:
    """The name of what a node calls; the attribute for the reading of one."""
    if node.target is getattr and len(node.args) == 2:
        return str(node.args[1])
    return str(node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")).partition(".")[0]


def is_basic(index: Any) -> bool | None:
    """Whether an index selects a view: True for numbers and slices, False for arrays; None where nobody knows."""
    parts = index if isinstance(index, tuple) else (index,)
    found = [_is_basic_part(part) for part in parts]
    return False if False in found else None if None in found else True


def _is_basic_part(part: Any) -> bool | None:
    if isinstance(part, slice):
        bounds = [one for one in leaves([part.start, part.stop, part.step]) if isinstance(one, Node)]
        return True if all(isinstance(one.value_type, ScalarType) for one in bounds) else None
    if not isinstance(part, Node):
        return not isinstance(part, (list, bool))
    if isinstance(part.value_type, ArrayType):
        return False if part.value_type.dtype == "bool" or part.value_type.shape else None
    return True if part.value_type == ScalarType("int") else None


def selected(node: Node) -> Any:
    """The index that a view selects of the array behind it; None for views that are no selection."""
    name, args = operation(node), node.args
    if node.target is operator.getitem:
        return _selected_part(node) if gives_parts(args[0]) else args[1]
    if name == "select" and len(args) == 3 and type(args[1]) is int:
        return _along(args[1], args[2])
    if name == "narrow" and len(args) == 4 and all(type(one) is int for one in args[1:]) and args[2] >= 0:
        return _along(args[1], slice(args[2], args[2] + args[3]))
    return None


def gives_parts(value: Any) -> bool:
    """Whether a value is a tuple of views that torch has split an array into."""
    return isinstance(value, Node) and operation(value) in ("unbind", "split")


def _selected_part(node: Node) -> Any:
    """The index of a part, which is the item of what ``unbind`` or ``split`` gave."""
    whole, place = node.args
    size = whole.args[1] if len(whole.args) > 1 else 0
    dim = whole.kwargs.get("dim", whole.args[2] if len(whole.args) > 2 else 0)
    if operation(whole) == "unbind":
        dim = whole.kwargs.get("dim", size)
        return _along(dim, place) if type(dim) is int else None
    if type(place) is not int or place < 0 or type(dim) is not int:
        return None
    sizes = [size] * (place + 1) if type(size) is int else list(size) if isinstance(size, (list, tuple)) else []
    if len(sizes) <= place or not all(type(one) is int for one in sizes):
        return None
    start = sum(sizes[:place])
    return _along(dim, slice(start, start + sizes[place]))


def _along(dim: int, part: Any) -> tuple[Any, ...]:
    everything = slice(None)
    return (everything,) * dim + (part,) if dim >= 0 else (Ellipsis, part, *(everything,) * (-1 - dim))


def are_apart(one: Any, other: Any) -> bool:
    """Whether two indices of one array select different elements for all sizes; False where that is not known."""
    first, second = (index if isinstance(index, tuple) else (index,) for index in (one, other))
    return any(map(_never_meet, _until_open(first), _until_open(second)))


def spread(index: Any, rank: int) -> tuple[Any, ...]:
    """An index without an ellipsis, if each part is for one of as many dimensions: new axes and arrays are not."""
    parts = index if isinstance(index, tuple) else (index,)
    kinds = [type(part) for part in parts]
    if type(...) not in kinds or not {int, slice, type(...)}.issuperset(kinds):
        return parts
    place = kinds.index(type(...))
    return (*parts[:place], *(slice(None),) * (rank - len(parts) + 1), *parts[place + 1 :])


def _until_open(parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The first parts of an index, each of which is for one dimension."""
    end = next((at for at, part in enumerate(parts) if type(part) not in (int, slice)), len(parts))
    return parts[:end]


def _never_meet(one: Any, other: Any) -> bool:
    """Whether two parts of indices select different places, counted from the front or from the end."""
    for from_end in (False, True):
        found = [_interval(part, from_end) for part in (one, other)]
        if None not in found:
            (first, last), (start, stop) = found  # type: ignore[misc]
            return last <= start or stop <= first
    return False


def _interval(part: Any, from_end: bool) -> tuple[float, float] | None:
    if type(part) is int:
        return (part, part + 1) if (part < 0) is from_end else None
    if not all(type(one) in (int, type(None)) for one in (part.start, part.stop, part.step)) or (part.step or 1) < 0:
        return None
    if any(one is not None and (one < 0) is not from_end for one in (part.start, part.stop)):
        return None
    front, end = (-math.inf, 0) if from_end else (0, math.inf)
    return front if part.start is None else part.start, end if part.stop is None else part.stop


def can_invert(node: Node) -> bool:
    """Whether there is a call that writes a value for this view into the array behind it."""
    name = operation(node)
    if selected(node) is not None:
        return True
    if name == "view":
        return not any(isinstance(one, torch.dtype) for one in (*node.args, *node.kwargs.values()))
    return name in _RESHAPING or name in _TURNING or name in _MOVING or _order(node) is not None


def _order(node: Node) -> list[int] | None:
    """The order of dimensions that ``permute`` asks for."""
    if operation(node) != "permute" or node.kwargs or len(node.args) < 2:
        return None
    dims = node.args[1] if isinstance(node.args[1], (list, tuple)) else node.args[1:]
    return [one % len(dims) for one in dims] if all(type(one) is int for one in dims) else None


def inverted(graph: Graph, node: Node, behind: Node, value: Node) -> Node:
    """The array ``behind`` with ``value`` in the place of what the view ``node`` shows of it."""
    index, order, name = selected(node), _order(node), operation(node)
    if index is not None:
        return graph.create_node("call_function", with_item, (behind, index, value), name=behind.name)
    if name in _RESHAPING:
        return graph.create_node("call_method", "reshape_as", (value, behind), name=behind.name)
    if order is not None:
        return graph.call_method("permute", (value, [order.index(place) for place in range(len(order))]))
    if name in _MOVING:
        source, target = node.args[1:3] if len(node.args) > 2 else (node.kwargs["source"], node.kwargs["destination"])
        return graph.call_function(torch.movedim, (value, target, source))
    return graph.create_node(node.op, node.target, (value, *node.args[1:]), dict(node.kwargs))
