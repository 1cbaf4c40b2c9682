"""Shape rules: what the sizes of torch's results are in terms of the sizes of its arguments.

In comes a recorded call, whose arguments are nodes and literals; out goes its shape, a list of shapes where the call
gives several tensors, or None where no rule knows. A dimension that a rule does not know is None. What a rule says
holds for every input with which the call does not raise, given the ranks of the example: these are guarded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from clew.capture.guards.sizes import (
    Size,
    add,
    bounds,
    divided,
    is_size,
    multiply,
    other_of_least,
    product,
    quotient,
    subtract,
)
from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType

if TYPE_CHECKING:
    from clew.frameworks.torch.sizes.sizes import Sizes


Dimension = Size | None
Shape = Sequence[Dimension]
Answer = Shape | list[Shape] | None
Rule = Callable[["Call"], Answer]


class Several(list[Any]):
    """The shapes of a call that gives several tensors; ``number`` is how many, None if that is not certain."""

    def __init__(self, shapes: Iterable[Any], number: Size | None = None) -> None:
        super().__init__(shapes)
        self.number = number


class Call:
    """A recorded call: its arguments by place or name, and what is known of them."""

    __slots__ = ("args", "kwargs", "sizes")

    def __init__(self, sizes: Sizes, args: tuple[Any, ...], kwargs: Any) -> None:
        self.sizes = sizes
        self.args = args
        self.kwargs = kwargs

    def get(self, place: int, name: str, default: Any = None) -> Any:
        """An argument."""
        return self.args[place] if place < len(self.args) else self.kwargs.get(name, default)

    def shape(self, value: Any) -> tuple[Size, ...]:
        """The sizes of an argument that is a tensor; a number has none."""
        if not isinstance(value, Node) or not isinstance(value.value_type, ArrayType):
            raise Unknown
        return self.sizes.shape_of(value)

    def size(self, value: Any) -> Size:
        """An argument that is a whole number."""
        if type(value) is int:
            return value
        found = self.sizes.number(value) if isinstance(value, Node) else None
        if found is None:
            raise Unknown
        return found

    def list_of(self, place: int, name: str) -> list[Size]:
        """The whole numbers that a call gets as one argument or as several."""
        given = self.args[place:] or (self.kwargs[name],)
        if len(given) == 1 and isinstance(given[0], (tuple, list)):
            given = tuple(given[0])
        return [self.size(one) for one in given]


class Unknown(Exception):
    """Something about a call that no rule knows."""


def literal(value: Any) -> int:
    """An argument that must be a literal, because the rank or the order of dimensions hangs on it."""
    if type(value) is not int:
        raise Unknown
    return value


def axis_of(value: Any, rank: int) -> int:
    """A dimension, counted from the front."""
    axis = literal(value)
    if not -rank <= axis < rank:
        raise Unknown
    return axis % rank


def axes_of(value: Any, rank: int) -> list[int]:
    values = value if isinstance(value, (tuple, list)) else (value,)
    return [axis_of(one, rank) for one in values]


# ---- shapes of two or more tensors -----------------------------------------------------------------------------------


def broadcast(sizes: Sizes, shapes: Iterable[Shape]) -> list[Dimension]:
    """The common shape; None where it depends on which of two sizes is one."""
    found: list[Dimension] = []
    for shape in shapes:
        longer, shorter = (found, list(shape)) if len(found) >= len(shape) else (list(shape), found)
        head = len(longer) - len(shorter)
        tail = [_common(sizes, left, right) for left, right in zip(longer[head:], shorter, strict=True)]
        found = [*longer[:head], *tail]
    return found


def _common(sizes: Sizes, left: Dimension, right: Dimension) -> Dimension:
    if left is right or left == right:
        return left
    if left == 1 or right == 1:
        return right if left == 1 else left
    sizes.is_assuming = True  # of two sizes that fit, the one that is not one counts
    if isinstance(left, int) or isinstance(right, int):
        return left if isinstance(left, int) else right
    if left is None or right is None:
        return None
    for one, other in ((left, right), (right, left)):
        if (bounds(one)[0] or 0) > 1:
            return one
        limit = other_of_least(one, other)
        if limit is not None and sizes.relies_on(operator.ge, limit, 1):  # it is stretched, or is the same
            return other
        if sizes.is_held(one) and sizes.example(one) == 1 and sizes.relies_on(operator.eq, one, 1):
            return other
    return None


def elementwise_rule(call: Call) -> Answer:
    """All tensors are stretched to one shape."""
    tensors = [value for value in (*call.args, *call.kwargs.values()) if is_tensor(value)]
    if len(tensors) == 1:
        return call.sizes.shape_of(tensors[0])
    if not tensors:
        return None
    return broadcast(call.sizes, map(call.sizes.shape_of, tensors))


def is_tensor(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.value_type, ArrayType)


def masked_rule(call: Call) -> Answer:
    """As the tensor and its mask, which are stretched to one shape."""
    return broadcast(call.sizes, [call.shape(call.args[0]), call.shape(call.get(1, "mask"))])


def first_rule(call: Call) -> Answer:
    """As the first argument."""
    return call.shape(call.get(0, "input"))


def matmul_rule(call: Call) -> Answer:
    left, right = call.shape(call.get(0, "input")), call.shape(call.get(1, "other", call.kwargs.get("mat2")))
    if not left or not right:
        raise Unknown
    rows = left[-2:-1]
    columns = right[-1:] if len(right) > 1 else ()
    return [*broadcast(call.sizes, [left[:-2], right[:-2]]), *rows, *columns]


def bmm_rule(call: Call) -> Answer:
    left, right = call.shape(call.get(0, "input")), call.shape(call.get(1, "mat2"))
    return [left[0], left[1], right[2]]


def addmm_rule(call: Call) -> Answer:
    left, right = call.shape(call.get(1, "mat1")), call.shape(call.get(2, "mat2"))
    return [left[0], right[1]]


def baddbmm_rule(call: Call) -> Answer:
    left, right = call.shape(call.get(1, "batch1")), call.shape(call.get(2, "batch2"))
    return [left[0], left[1], right[2]]


def grouped_rule(call: Call) -> Answer:
    """``_grouped_mm``: groups of rows or of columns that ``offs`` ends, or whole matrices of a stack, multiplied each
    with a matrix of its own."""
    left, right = call.shape(call.get(0, "self")), call.shape(call.get(1, "mat2"))
    if len(left) == len(right) == 2:  # what is summed over is grouped
        return [call.shape(call.get(2, "offs"))[0], left[0], right[1]]
    return [left[0], left[1], right[2]] if len(left) == len(right) else [left[-2], right[-1]]


def linear_rule(call: Call) -> Answer:
    given, weight = call.shape(call.get(0, "input")), call.shape(call.get(1, "weight"))
    return [*given[:-1], weight[0]] if len(weight) == 2 else given[:-1]


def embedding_rule(call: Call) -> Answer:
    return [*call.shape(call.get(0, "input")), call.shape(call.get(1, "weight"))[1]]


def attention_rule(call: Call) -> Answer:
    """``scaled_dot_product_attention``: as many rows as the query has, as wide as the value."""
    query, key, value = (call.shape(call.get(place, name)) for place, name in enumerate(("query", "key", "value")))
    if call.kwargs.get("enable_gqa"):
        fits = len(query) == 4 and query[0] == key[0] == value[0] and call.get(3, "attn_mask") is None
        return [*query[:-1], value[-1]] if fits else None
    mask = call.get(3, "attn_mask")
    heads = [query[:-2], key[:-2], value[:-2], () if mask is None else call.shape(mask)[:-2]]
    return [*broadcast(call.sizes, heads), query[-2], value[-1]]


def einsum_rule(call: Call) -> Answer:
    equation, *operands = call.args
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = list(operands[0])
    if not isinstance(equation, str) or "." in equation or "->" not in equation:
        return None
    given, wanted = equation.replace(" ", "").split("->")
    known: dict[str, list[Size]] = {}
    for letters, operand in zip(given.split(","), operands, strict=True):
        for letter, size in zip(letters, call.shape(operand), strict=True):
            known.setdefault(letter, []).append(size)
    return [_agreed(call, known[letter]) for letter in wanted]


def _agreed(call: Call, sizes: list[Size]) -> Dimension:
    """The size of a letter of ``einsum``, which stretches ones."""
    return broadcast(call.sizes, [[size] for size in sizes])[0]


def cat_rule(call: Call) -> Answer:
    tensors = call.get(0, "tensors")
    if not isinstance(tensors, (tuple, list)) or not tensors:
        return None
    shapes = [call.shape(one) for one in tensors]
    if any(len(shape) > 1 for shape in shapes):  # an empty vector fits everywhere
        shapes = [shape for shape in shapes if shape != (0,)]
    if len({len(shape) for shape in shapes}) > 1 or len(shapes[0]) < 2:
        return _cat_of_vectors(shapes)
    axis = axis_of(call.get(1, "dim", call.kwargs.get("axis", 0)), len(shapes[0]))
    total: Size = 0
    for shape in shapes:
        total = add(total, shape[axis])
    return [total if place == axis else size for place, size in enumerate(shapes[0])]


def _cat_of_vectors(shapes: list[tuple[Size, ...]]) -> Answer:
    if any(len(shape) != 1 for shape in shapes):
        return None
    total: Size = 0
    for (size,) in shapes:
        total = add(total, size)
    return [total]


def stack_rule(call: Call) -> Answer:
    tensors = call.get(0, "tensors")
    if not isinstance(tensors, (tuple, list)) or not tensors:
        return None
    shape = call.shape(tensors[0])
    axis = axis_of(call.get(1, "dim", 0), len(shape) + 1)
    return [*shape[:axis], len(tensors), *shape[axis:]]


# ---- the same numbers in another shape -------------------------------------------------------------------------------


def _reshaped(call: Call, sizes: list[Size]) -> Answer:
    """The shape that is asked for, one size of which may be left to torch."""
    wild = [place for place, size in enumerate(sizes) if size == -1]
    if len(wild) > 1 or any(size != -1 and not is_size(size) for size in sizes):
        return None
    if not wild:
        return sizes
    others = [size for place, size in enumerate(sizes) if place not in wild]
    found = _left_over(list(call.shape(call.args[0])), others)
    return [found if place in wild else size for place, size in enumerate(sizes)]


def _left_over(given: list[Size], others: list[Size]) -> Dimension:
    """What torch takes for -1; it raises if the others are zero, or do not divide, so that they may be cancelled."""
    for size in list(others):
        if size in given:
            given.remove(size)
            others.remove(size)
    total, known = product(given), product(others)
    return divided(total, known) if not isinstance(known, int) else quotient(total, known)


def view_rule(call: Call) -> Answer:
    return _reshaped(call, call.list_of(1, "size" if "size" in call.kwargs else "shape"))


def view_as_rule(call: Call) -> Answer:
    return call.shape(call.get(1, "other"))


def flatten_rule(call: Call) -> Answer:
    shape = call.shape(call.get(0, "input"))
    if not shape:
        return [1]
    start = axis_of(call.get(1, "start_dim", 0), len(shape))
    end = axis_of(call.get(2, "end_dim", -1), len(shape))
    return [*shape[:start], product(shape[start : end + 1]), *shape[end + 1 :]]


def unflatten_rule(call: Call) -> Answer:
    shape = call.shape(call.get(0, "input"))
    axis = axis_of(call.get(1, "dim"), len(shape))
    sizes = call.list_of(2, "sizes")
    wild = [place for place, size in enumerate(sizes) if size == -1]
    if len(wild) > 1 or any(size != -1 and not is_size(size) for size in sizes):
        return None
    inner: list[Dimension] = list(sizes)
    if wild:
        inner[wild[0]] = _left_over([shape[axis]], [size for size in sizes if size != -1])
    return [*shape[:axis], *inner, *shape[axis + 1 :]]


def transpose_rule(call: Call) -> Answer:
    shape = list(call.shape(call.get(0, "input")))
    if not shape:
        return shape
    first = axis_of(call.get(1, "dim0", call.kwargs.get("axis0")), len(shape))
    second = axis_of(call.get(2, "dim1", call.kwargs.get("axis1")), len(shape))
    shape[first], shape[second] = shape[second], shape[first]
    return shape


def t_rule(call: Call) -> Answer:
    shape = call.shape(call.get(0, "input"))
    return shape[::-1] if len(shape) < 3 else None


def permute_rule(call: Call) -> Answer:
    shape = call.shape(call.get(0, "input"))
    dims = call.list_of(1, "dims")
    return [shape[axis_of(dim, len(shape))] for dim in dims] if len(dims) == len(shape) else None


def movedim_rule(call: Call) -> Answer:
    shape = call.shape(call.get(0, "input"))
    sources, targets = (
        axes_of(call.get(place, name), len(shape)) for place, name in ((1, "source"), (2, "destination"))
    )
    order = [-1] * len(shape)
    for source, target in zip(sources, targets, strict=True):
        order[target] = source
    rest = iter([axis for axis in range(len(shape)) if axis not in sources])
    return [shape[axis if axis >= 0 else next(rest)] for axis in order]


def unsqueeze_rule(call: Call) -> Answer:
    shape = call.shape(call.get(0, "input"))
    axis = axis_of(call.get(1, "dim"), len(shape) + 1)
    return [*shape[:axis], 1, *shape[axis:]]


def squeezed_axes(call: Call) -> list[int]:
    """The dimensions that ``squeeze`` leaves out if they are one."""
    rank, given = len(call.shape(call.get(0, "input"))), call.get(1, "dim")
    return list(range(rank)) if given is None else axes_of(given, rank) if rank else []


def squeeze_rule(call: Call) -> Answer:
    """Dimensions of one are left out: which these are is a literal, or is guarded where they are named."""
    shape = call.shape(call.get(0, "input"))
    given = call.get(1, "dim")
    if given is None:
        if any(type(size) is not int and (bounds(size)[0] or 0) < 2 for size in shape):
            return None
        return [size for size in shape if size != 1]
    axes = squeezed_axes(call)
    if any(type(shape[axis]) is not int and (bounds(shape[axis])[0] or 0) < 2 for axis in axes[1:]):
        return None
    return [size for axis, size in enumerate(shape) if axis not in axes or not call.sizes.is_one(size)]


def expand_rule(call: Call) -> Answer:
    shape, wanted = call.shape(call.get(0, "input")), call.list_of(1, "size")
    new = len(wanted) - len(shape)
    if new < 0:
        return None
    found: list[Dimension] = []
    for place, size in enumerate(wanted):
        if size == -1:
            if place < new:
                return None
            found.append(shape[place - new])
        else:
            found.append(size if is_size(size) else None)
    return found


def repeat_rule(call: Call) -> Answer:
    if call.get(0, "input") in call.sizes.unranked:
        return None
    shape, times = list(call.shape(call.get(0, "input"))), call.list_of(1, "repeats")
    head: list[Size] = [1] * (len(times) - len(shape))
    return [multiply(size, count) for size, count in zip([*head, *shape], times, strict=True)]


def tile_rule(call: Call) -> Answer:
    shape, times = list(call.shape(call.get(0, "input"))), call.list_of(1, "dims")
    rank = max(len(shape), len(times))
    ones: list[Size] = [1] * rank
    shape, times = (ones + shape)[-rank:] if rank else [], (ones + times)[-rank:] if rank else []
    return [multiply(size, count) for size, count in zip(shape, times, strict=True)]


def repeat_interleave_rule(call: Call) -> Answer:
    times, dim = call.get(1, "repeats"), call.get(2, "dim")
    if is_tensor(times):
        return None
    shape, count = call.shape(call.get(0, "input")), call.size(times)
    if dim is None:
        return [multiply(product(shape), count)]
    axis = axis_of(dim, len(shape))
    return [multiply(size, count) if place == axis else size for place, size in enumerate(shape)]


def unfold_rule(call: Call) -> Answer:
    """``x.unfold(dim, size, step)``: windows."""
    shape = call.shape(call.args[0])
    axis = axis_of(call.get(1, "dimension"), len(shape))
    size, step = call.size(call.get(2, "size")), call.size(call.get(3, "step"))
    count = quotient(subtract(shape[axis], size), step)
    windows = None if count is None else add(count, 1)
    return [*shape[:axis], windows, *shape[axis + 1 :], size]


def diagonal_free_rule(call: Call) -> Answer:
    """``diag_embed`` without further arguments: a square for each vector."""
    shape = call.shape(call.args[0])
    return [*shape, shape[-1]] if len(call.args) == 1 and not call.kwargs and shape else None


# ---- rules of calls that make new tensors ----------------------------------------------------------------------------
#
# Shape rules of what makes tensors, or looks at neighbourhoods: zeros, ranges, padding, convolutions, pools.
#
# As all shape rules: in comes a recorded call, out goes its shape; what a rule says holds for every input with which
# the call does not raise, given the ranks of the example. A size that hangs on settings of a layer is left open.


# ---- new tensors -----------------------------------------------------------------------------------------------------


def made_rule(call: Call) -> Answer:
    """``zeros``, ``rand``: of the sizes that are given."""
    return call.list_of(0, "size")


def filled_rule(call: Call) -> Answer:
    given = call.get(0, "size")
    return [call.size(one) for one in given] if isinstance(given, (tuple, list)) else None


def made_anew_rule(call: Call) -> Answer:
    """``x.new_zeros``."""
    return call.list_of(1, "size")


def new_full_rule(call: Call) -> Answer:
    given = call.get(1, "size")
    return [call.size(one) for one in given] if isinstance(given, (tuple, list)) else None


def randint_rule(call: Call) -> Answer:
    given = next((one for one in (*call.args[1:], call.kwargs.get("size")) if isinstance(one, (tuple, list))), None)
    return None if given is None else [call.size(one) for one in given]


def arange_rule(call: Call) -> Answer:
    """Whole numbers from a start to an end."""
    start, end = (0, call.args[0]) if len(call.args) == 1 else (call.get(0, "start", 0), call.get(1, "end"))
    step = call.get(2, "step", 1)
    if "end" in call.kwargs and len(call.args) == 1:
        start, end = call.args[0], call.kwargs["end"]
    if type(step) is not int or step < 1:
        return None
    count = subtract(call.size(end), call.size(start))
    return [count if step == 1 else quotient(add(count, step - 1), step)]


def tensor_rule(call: Call) -> Answer:
    """A tensor of literals, and of numbers of the program's."""
    shape: list[Dimension] = []
    value = call.get(0, "data")
    while isinstance(value, (tuple, list)):
        shape.append(len(value))
        value = value[0] if value else 0
    is_number = isinstance(value, (int, float, complex)) or isinstance(getattr(value, "value_type", None), ScalarType)
    return shape if is_number else None


def linspace_rule(call: Call) -> Answer:
    return [call.size(call.get(2, "steps"))]


def eye_rule(call: Call) -> Answer:
    rows, columns = call.get(0, "n"), call.get(1, "m")
    return [call.size(rows), call.size(rows if columns is None else columns)]


def one_hot_rule(call: Call) -> Answer:
    classes = call.size(call.get(1, "num_classes", -1))
    return [*call.shape(call.args[0]), classes if is_size(classes) else None]


# ---- neighbourhoods --------------------------------------------------------------------------------------------------


def pad_rule(call: Call) -> Answer:
    shape: list[Any] = list(call.shape(call.get(0, "input")))
    widths = call.get(1, "pad")
    if not isinstance(widths, (tuple, list)) or len(widths) % 2:
        return None
    for place in range(len(widths) // 2):
        shape[-1 - place] = _padded(call, shape[-1 - place], widths[2 * place : 2 * place + 2])
    return shape


def _padded(call: Call, size: Size, widths: Sequence[Any]) -> Dimension:
    """A size with what is put before and after it; None if one of these is a tensor, say."""
    try:
        return add(size, add(*map(call.size, widths)))
    except Unknown:
        return None


def _per_dimension(call: Call, value: Any, count: int) -> list[Size]:
    values = list(value) if isinstance(value, (tuple, list)) else [value]
    values = values * count if len(values) == 1 else values
    return [call.size(one) for one in values]


def _windows(size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size) -> Dimension:
    """How many places a window has that moves over a size."""
    reach = multiply(dilation, subtract(kernel, 1))
    count = quotient(subtract(subtract(add(size, multiply(padding, 2)), reach), 1), stride)
    return None if count is None else add(count, 1)


def convolution_rule(count: int) -> Rule:
    def rule(call: Call) -> Answer:
        shape, weight = call.shape(call.get(0, "input")), call.shape(call.get(1, "weight"))
        padding = call.get(4, "padding", 0)
        if isinstance(padding, str):
            return [*shape[: -count - 1], weight[0], *[None] * count]
        strides, paddings, dilations = (
            _per_dimension(call, value, count)
            for value in (call.get(3, "stride", 1), padding, call.get(5, "dilation", 1))
        )
        inner = map(_windows, shape[-count:], weight[2:], strides, paddings, dilations)
        return [*shape[: -count - 1], weight[0], *inner]

    return rule


def transposed_convolution_rule(count: int) -> Rule:
    """Transposed convolutions: what comes before the channels stays."""

    def rule(call: Call) -> Answer:
        return [*call.shape(call.get(0, "input"))[: -count - 1], *[None] * (count + 1)]

    return rule


def pooled_rule(count: int) -> Rule:
    """Pools: batch and channels stay, unless places are asked for as well."""

    def rule(call: Call) -> Answer:
        if call.kwargs.get("return_indices") or any(one is True for one in call.args):
            return None
        shape = call.shape(call.get(0, "input"))
        return [*shape[:-count], *[None] * count]

    return rule


def adaptive_rule(count: int) -> Rule:
    def rule(call: Call) -> Answer:
        shape, size = call.shape(call.get(0, "input")), call.get(1, "output_size")
        sizes = list(size) if isinstance(size, (tuple, list)) else [size] * count
        inner = [given if one is None else call.size(one) for given, one in zip(shape[-count:], sizes, strict=True)]
        return [*shape[:-count], *inner]

    return rule


def interpolate_rule(call: Call) -> Answer:
    shape, size = call.shape(call.get(0, "input")), call.get(1, "size")
    if len(shape) < 3:
        return None
    inner: list[Dimension] = [None] * (len(shape) - 2)
    if size is not None:
        inner = [*_per_dimension(call, size, len(inner))]
    return [*shape[:2], *inner]
