"""Which methods of tensors do the work of which of Python's operators, as torch tells of them.

Comes in: the name of a method that the program reached, and its arguments. Goes out: the form of the operator that may
stand in the program. A method that writes in place stays a method: on a tensor it is the same, and reads better.
"""

from __future__ import annotations

import functools
import operator
from types import BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any

import torch

from clew.capture.recording.operators import OperatorForm
from clew.capture.recording.recorder import Scalar
from clew.frameworks.torch.calls.handlers import HANDLERS
from clew.frameworks.torch.effects import WRITING_DUNDERS
from clew.frameworks.torch.scalars import FACT_PROPERTIES, TracedBool

_BINARY = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "true_divide": operator.truediv, "floor_divide": operator.floordiv, "remainder": operator.mod,
    "pow": operator.pow, "matmul": operator.matmul, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
_DUNDERS = "add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor".split()
FORMS = {
    **{name: OperatorForm(function) for name, function in _BINARY.items()},
    **{
        f"__{name.strip('_')}__": OperatorForm(getattr(operator, name))
        for name in [*_DUNDERS, *"lt le gt ge eq ne".split()]
    },
    **{f"__r{name.strip('_')}__": OperatorForm(getattr(operator, name), is_reflected=True) for name in _DUNDERS},
    "__div__": OperatorForm(operator.truediv),
    "__rdiv__": OperatorForm(operator.truediv, is_reflected=True),
    **{name: OperatorForm(operator.neg) for name in ("neg", "negative", "__neg__")},
    **{name: OperatorForm(operator.pos) for name in ("positive", "__pos__")},
    **{name: OperatorForm(operator.invert) for name in ("bitwise_not", "__invert__")},
    "__getitem__": OperatorForm(operator.getitem),
    "__setitem__": OperatorForm(operator.setitem),
}
_NUMBERS = frozenset({int, float, bool, complex})


def takes_operands(form: OperatorForm, args: tuple[Any, ...]) -> bool:
    """Whether these are operands of such an operator: tensors and plain numbers, or the index of one."""
    if len(args) == 2 and form.function is not operator.getitem:
        other = args[1]
        return type(other) in _NUMBERS or isinstance(other, (torch.Tensor, Scalar))
    return True


FACTS = FACT_PROPERTIES | {"names"}
"""Properties that programs branch on."""
SPLITS = frozenset({"split", "split_with_sizes"})
"""Functions that take a tensor apart by a list of sizes."""
VARYING = frozenset(
    "unbind split chunk tensor_split hsplit vsplit dsplit split_with_sizes unsafe_split unsafe_chunk "
    "gradient nonzero nonzero_numpy where stride dim_order unravel_index".split()
)
"""Functions that give as many results as a size or the rank of a tensor says, some of them only if asked so."""
RANKED = frozenset({"squeeze", "squeeze_", "flatten", "tensordot"})
ESCAPES = frozenset(
    "numpy __array__ data_ptr untyped_storage storage __dlpack__ _typed_storage __cuda_array_interface__".split()
)
RESHAPING = frozenset(
    "t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ resize_ resize_as_ set_ as_strided_ apply_ map_".split()
)
REFUSED = frozenset("share_memory_".split())
UNUSUAL = frozenset({"__get__", "__set__", "item", "tolist", *HANDLERS, *ESCAPES, *REFUSED})
"""What is not simply recorded."""
SWITCHES = frozenset({"inplace", "training", "use_input_stats", "max_norm"})
"""Arguments with which some functions write to a tensor that they get."""
LEADING = SWITCHES | {"generator", "out"}
"""Arguments by name that decide what a call does besides computing."""
_COMPILED = frozenset({BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType})


class Traits:
    """What is known of one function; ``is_usual`` if a call that only computes is recorded with no more ado."""

    __slots__ = ("form", "is_method", "is_usual", "op", "target", "writes")

    def __init__(self, func: Any) -> None:
        name: str = getattr(func, "__name__", "")
        self.is_method = bool(torch.overrides.is_tensor_method_or_property(func))
        self.op = "call_method" if self.is_method else "call_function"
        self.target: Any = name if self.is_method else func
        self.form: OperatorForm | None = FORMS.get(name) if self.is_method else None
        self.writes = (name[-1:] == "_" and name[:2] != "__") or name in WRITING_DUNDERS
        special = self.writes or name in UNUSUAL or name in RANKED or name in VARYING or name in ("tensor", "repeat")
        self.is_usual = type(func) in _COMPILED and not special


_TRUE = id(True)


def may_switch(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether one of the arguments may be a switch that is on, or that may be on at another call."""
    if _TRUE in map(id, args) or TracedBool in map(type, args):
        return True
    switches = [kwargs[name] for name in SWITCHES if name in kwargs] if kwargs else []
    return any(type(switch) is TracedBool or bool(switch) for switch in switches)


@functools.lru_cache(maxsize=4096)
def traits_of(func: Any) -> Traits:
    """The traits of a function; remembered, because torch's own answer takes long."""
    traits = Traits(func)
    if traits.is_usual:
        USUAL[func] = traits
    return traits


USUAL: dict[Any, Traits] = {}
"""The usual functions that were met: compiled ones of torch's own, so there are only so many."""
