"""Shape rules of what takes tensors apart: items, slices, chunks, and what is left when dimensions are summed over.

As all shape rules: in comes a recorded call, out goes its shape, or the shapes of the tensors that it gives; what a
rule says holds for every input with which the call does not raise, given the ranks of the example.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from clew.capture.guards.sizes import (
    Size,
    add,
    bounds,
    divided,
    greatest,
    is_size,
    least,
    quotient,
    remainder,
    subtract,
    symbols_of,
)
from clew.frameworks.torch.sizes.rules import (
    Answer,
    Call,
    Dimension,
    Several,
    Unknown,
    axes_of,
    axis_of,
    broadcast,
    elementwise_rule,
    is_tensor,
    literal,
)
from clew.ir.node import Node
from clew.ir.types import ArrayType

# ---- parts -----------------------------------------------------------------------------------------------------------


def getitem_rule(call: Call) -> Answer:
    """``x[...]``: numbers, slices, None, an ellipsis and tensors of whole numbers."""
    shape = list(call.shape(call.args[0]))
    index = call.args[1]
    items = list(index) if isinstance(index, tuple) else [index]
    if not all(_is_understood(call, item) for item in items):
        return None
    places = sum(1 for item in items if item is not None and item is not ...)
    if places > len(shape) or sum(1 for item in items if item is ...) > 1:
        return None
    if ... not in [item for item in items if not isinstance(item, Node)]:
        items.append(...)
    found, tensors, at = _indexed(call, shape, items, len(shape) - places)
    if not tensors:
        call.sizes.is_assuming = not _is_inside(call, shape, items, len(shape) - places)
        return found
    shapes = [call.shape(one) for one in tensors]
    if not all(shapes) and any(shapes):  # a tensor without dimensions is a number, which moves those of the others
        return None
    common = broadcast(call.sizes, shapes)
    return [*found[:at], *common, *found[at:]]


def _is_inside(call: Call, shape: list[Size], items: list[Any], rest: int) -> bool:
    """Whether numbers among an index are always places that there are."""
    axes = iter(range(len(shape)))
    for item in items:
        if item is ...:
            axes = iter(range(next(axes, len(shape)) + rest, len(shape)))
        elif item is not None:
            axis = next(axes)
            if type(item) is int:
                if not call.sizes.relies_on(operator.gt, shape[axis], item if item >= 0 else -item - 1):
                    return False
            elif not isinstance(item, slice):
                return False
    return True


def _is_understood(call: Call, item: Any) -> bool:
    if isinstance(item, Node):
        return _is_whole_number(item) if is_tensor(item) else call.sizes.number(item) is not None
    return item is None or item is ... or type(item) in (int, slice)


def _indexed(call: Call, shape: list[Size], items: list[Any], rest: int) -> tuple[list[Dimension], list[Node], int]:
    """The dimensions that stay, the tensors among the index, and where their dimensions go."""
    found: list[Dimension] = []
    tensors: list[Node] = []
    at, ended, sizes = 0, False, iter(shape)
    for item in items:
        is_array = is_tensor(item)
        if is_array:
            if tensors and ended:
                at = 0  # tensors that do not stand together: their dimensions come first
            elif not tensors:
                at = len(found)
            tensors.append(item)
            next(sizes)
            continue
        if type(item) is int or (isinstance(item, Node) and not is_array):
            if any(map(is_tensor, items)):
                raise Unknown  # a number counts as a tensor then
            next(sizes)
            continue
        ended = ended or bool(tensors)
        if item is ...:
            found += [next(sizes) for _ in range(rest)]
        else:
            found.append(1 if item is None else _sliced(call, next(sizes), item))
    return found, tensors, at


_INDEX_DTYPES = frozenset({"int64", "int32", "int16", "int8"})
_INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8})
_WHOLE = frozenset("arange argmax argmin argsort randint long int nonzero tril_indices triu_indices".split())
_KEEPING = frozenset(
    "view reshape unsqueeze squeeze expand transpose permute flatten contiguous clone flip roll detach t repeat "
    "repeat_interleave getitem __getitem__ clamp abs".split()
)
_WHOLE_OF_WHOLE = frozenset("add sub mul __add__ __sub__ __mul__ floordiv mod remainder".split())


def _is_whole_number(node: Node, depth: int = 6) -> bool:
    """Whether an index is whole numbers in every call: a tensor of truths would choose as many as it likes."""
    if not isinstance(node.value_type, ArrayType) or node.value_type.dtype not in _INDEX_DTYPES or depth == 0:
        return False
    name = str(node.target if node.op == "call_method" else getattr(node.target, "__name__", ""))
    if name in _WHOLE:
        return True
    if name == "to":
        return not _INTEGERS.isdisjoint(one for one in (*node.args, *node.kwargs.values()) if type(one) is torch.dtype)
    first = node.args[0] if node.args else None
    if name in _KEEPING or name in _WHOLE_OF_WHOLE:
        return isinstance(first, Node) and _is_whole_number(first, depth - 1)
    return False


def _sliced(call: Call, size: Size, item: Any) -> Dimension:
    """The length of a slice."""
    if not isinstance(item, slice):
        raise Unknown
    if item.step is not None and (type(item.step) is not int or item.step < 1):
        return None
    if type(item.start) is int and item.start < 0 and item.stop is None and item.step in (None, 1):
        return least(size, -item.start)
    start = 0 if item.start is None else _edge(call.size(item.start), size)
    stop = size if item.stop is None else _edge(call.size(item.stop), size)
    if start is None or stop is None:
        return None
    if stop is size and item.start is not None and is_size(call.size(item.start)):
        length = greatest(subtract(size, call.size(item.start)), 0)
    else:
        length = greatest(subtract(stop, start), 0)
    return length if item.step in (None, 1) else quotient(add(length, item.step - 1), item.step)


def _edge(edge: Size, size: Size) -> Dimension:
    """Where a slice begins or ends, within the size."""
    low, high = bounds(edge)
    if low is not None and low >= 0:
        return least(edge, size)
    if high is not None and high < 0:
        return greatest(add(size, edge), 0)
    return None


def select_rule(call: Call) -> Answer:
    shape = call.shape(call.args[0])
    axis = axis_of(call.get(1, "dim"), len(shape))
    return [size for place, size in enumerate(shape) if place != axis]


def narrow_rule(call: Call) -> Answer:
    shape = list(call.shape(call.args[0]))
    length = call.size(call.get(3, "length"))
    shape[axis_of(call.get(1, "dim"), len(shape))] = length
    return shape if is_size(length) else None


def index_select_rule(call: Call) -> Answer:
    shape, index = list(call.shape(call.args[0])), call.shape(call.get(2, "index"))
    if not shape:
        return None
    axis = axis_of(call.get(1, "dim"), len(shape))
    shape[axis] = index[0] if index else 1
    return shape


def gather_rule(call: Call) -> Answer:
    index = call.shape(call.get(2, "index"))
    return index if len(index) == len(call.shape(call.args[0])) else None


def chunk_rule(call: Call) -> Answer:
    """So many parts of equal length; where they may be fewer, their number is guarded."""
    shape = call.shape(call.get(0, "input"))
    count = literal(call.get(1, "chunks"))
    axis = axis_of(call.get(2, "dim", 0), len(shape))
    part = _part_of(call, shape[axis], count)
    if part is not None:
        return Several([[*shape[:axis], part, *shape[axis + 1 :]] for _ in range(count)], count)
    size = call.sizes.example(shape[axis])
    number = -(-size // max(-(-size // count), 1))
    return Several([[*shape[:axis], None, *shape[axis + 1 :]] for _ in range(number)])


def _part_of(call: Call, size: Size, count: int) -> Size | None:
    """The length of each of so many equal parts, if a size is a multiple of their number: always, or because a guard on
    an attribute of the root says so."""
    part, rest = divided(size, count), remainder(size, count)
    if part is not None or rest is None or not all(map(call.sizes.is_held_symbol, symbols_of(size))):
        return part
    return quotient(size, count) if call.sizes.relies_on(operator.eq, rest, 0) else None


def split_rule(call: Call) -> Answer:
    """Parts of one length, or of lengths that are listed."""
    shape = call.shape(call.get(0, "tensor", call.kwargs.get("self")))
    given = call.get(1, "split_size_or_sections", call.kwargs.get("split_size", call.kwargs.get("split_sizes")))
    axis = axis_of(call.get(2, "dim", 0), len(shape))
    certain: int | None = None
    lengths: list[Dimension]
    if isinstance(given, (tuple, list)):
        lengths = [call.size(one) for one in given]
        certain = len(lengths)
    else:
        part = call.size(given)
        size, step = call.sizes.example(shape[axis]), call.sizes.example(part)
        count = divided(shape[axis], part) if part != 0 else None
        last = part if type(count) is int else None
        lengths = [*[part] * (-(-size // step) - 1), last] if step > 0 and size > 0 else [None]
        certain = count if type(count) is int and type(part) is int else None  # parts of nothing are one
    return Several([[*shape[:axis], length, *shape[axis + 1 :]] for length in lengths], certain)


def unbind_rule(call: Call) -> Answer:
    """The number of parts is guarded; each is the same."""
    shape = call.shape(call.get(0, "input"))
    axis = axis_of(call.get(1, "dim", 0), len(shape))
    part = [*shape[:axis], *shape[axis + 1 :]]
    return Several([part] * call.sizes.example(shape[axis]), shape[axis])


# ---- fewer dimensions ------------------------------------------------------------------------------------------------


def _reduced(call: Call, dim: Any, keep: Any) -> list[Size]:
    shape = call.shape(call.get(0, "input"))
    if keep is not True and keep is not False:
        raise Unknown
    if not shape:
        return []
    axes = range(len(shape)) if dim is None or dim in ((), []) else axes_of(dim, len(shape))
    if keep:
        return [1 if place in axes else size for place, size in enumerate(shape)]
    return [size for place, size in enumerate(shape) if place not in axes]


def reduction_rule(call: Call) -> Answer:
    """``sum``, ``mean``: over some dimensions, or all."""
    dim = call.get(1, "dim", call.kwargs.get("axis"))
    return _reduced(call, dim, call.get(2, "keepdim", call.kwargs.get("keepdims", False)))


def statistic_rule(call: Call) -> Answer:
    """``var``, ``std``: the second argument may say something else than the dimensions."""
    if len(call.args) > 2 or any(type(one) is bool for one in call.args):
        return None
    return _reduced(call, call.get(1, "dim"), call.kwargs.get("keepdim", False))


def norm_rule(call: Call) -> Answer:
    dim = call.get(2, "dim")
    return _reduced(call, dim, call.get(3, "keepdim", False))


def extreme_rule(call: Call) -> Answer:
    """``max``, ``min``: of all, of two tensors, or with the places along one dimension."""
    other = call.get(1, "other", call.kwargs.get("dim"))
    if other is None:
        return []
    if is_tensor(other):
        return elementwise_rule(call)
    return along_rule(call)


def along_rule(call: Call) -> Answer:
    """Values and their places along one dimension."""
    shape = _reduced(call, literal(call.get(1, "dim", -1)), call.get(2, "keepdim", False))
    return Several([shape, shape])


def kth_rule(call: Call) -> Answer:
    shape = _reduced(call, literal(call.get(2, "dim", -1)), call.get(3, "keepdim", False))
    return Several([shape, shape])


def median_rule(call: Call) -> Answer:
    return [] if call.get(1, "dim") is None else along_rule(call)


def sorted_rule(call: Call) -> Answer:
    shape = call.shape(call.get(0, "input"))
    return Several([shape, shape])


def topk_rule(call: Call) -> Answer:
    shape, count = list(call.shape(call.get(0, "input"))), call.size(call.get(1, "k"))
    if not shape or not is_size(count):
        return None
    shape[axis_of(call.get(2, "dim", -1), len(shape))] = count
    return Several([shape, shape])


def nothing_rule(call: Call) -> Answer:
    return []
