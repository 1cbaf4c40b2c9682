"""Which methods of tensors do the work of which of Python's operators, as torch tells of them.

Comes in: the name of a method that the program reached, and its arguments. Goes out: the form of the operator that may
stand in the program. A method that writes in place stays a method: on a tensor it is the same, and reads better.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from clew.capture.example.operators import Form
from clew.capture.example.recorder import Scalar

_BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "true_divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "pow": operator.pow, "matmul": operator.matmul, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_DUNDERS = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
FORMS = {
    **{name: Form(function) for name, function in _BINARY.items()},
    **{f"__{name.strip('_')}__": Form(getattr(operator, name)) for name in [*_DUNDERS, *"lt le gt ge eq ne".split()]},
    **{f"__r{name.strip('_')}__": Form(getattr(operator, name), is_reflected=True) for name in _DUNDERS},
    "__div__": Form(operator.truediv),
    "__rdiv__": Form(operator.truediv, is_reflected=True),
    **{name: Form(operator.neg) for name in ("neg", "negative", "__neg__")},
    **{name: Form(operator.pos) for name in ("positive", "__pos__")},
    **{name: Form(operator.invert) for name in ("bitwise_not", "__invert__")},
    "__getitem__": Form(operator.getitem),
    "__setitem__": Form(operator.setitem),
}
_NUMBERS = frozenset({int, float, bool, complex})


def takes_operands(form: Form, args: tuple[Any, ...]) -> bool:
    """Whether these are operands of such an operator: tensors and plain numbers, or the index of one."""
    if len(args) == 2 and form.function is not operator.getitem:
        other = args[1]
        return type(other) in _NUMBERS or isinstance(other, (torch.Tensor, Scalar))
    return True
