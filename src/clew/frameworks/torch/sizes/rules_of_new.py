"""Shape rules of what makes tensors, or looks at neighbourhoods: zeros, ranges, padding, convolutions, pools.

As all shape rules: in comes a recorded call, out goes its shape; what a rule says holds for every input with which the
call does not raise, given the ranks of the example. A size that hangs on settings of a layer is left open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.capture.guards.sizes import (
    Size,
    add,
    is_size,
    multiply,
    quotient,
    subtract,
)
from clew.frameworks.torch.sizes.rules import (
    Answer,
    Call,
    Dimension,
    Rule,
    Unknown,
)
from clew.ir.types import ScalarType

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
