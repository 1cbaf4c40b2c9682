"""What dtype and rank the results of NumPy's functions have: facts, where those of the arguments are guarded.

For the functions listed here they also depend on sizes or on values (``numpy.linalg.eigvals`` is real or complex), so
they are guarded where the call is made. ``guard_kind`` guards the class, dtype and rank of everything that a call gave.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy

from clew.capture.example.recorder import Pending, Scalar
from clew.frameworks.numpy.traced import TracedList
from clew.ir.arguments import bodies_of, leaves
from clew.ir.node import Node
from clew.ir.types import ArrayType

VARYING_KINDS = frozenset(
    "eig eigvals roots poly real_if_close apply_along_axis apply_over_axes piecewise fromfunction load loadtxt "
    "genfromtxt fromfile fromregex fromstring frombuffer cov corrcoef cross min_scalar_type polyfit".split()
)
"""Functions whose results have a dtype or rank that depends on sizes, values, files or functions of the user."""

DATA_BOOLS = frozenset(
    "where array asarray asanyarray full full_like select choose copyto put place insert append".split()
)
"""Functions for which a flag among the arguments is data; for all others it says what shall be done."""


def _is_traced_number(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    numbers = [leaf for leaf in leaves((args, kwargs)) if issubclass(type(leaf), Scalar)]
    return any(type(number.plain) in (int, float) for number in numbers)


def _always(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return True


VARYING_RANKS: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], bool]] = {
    "squeeze": _always,
    "tensordot": _is_traced_number,
    "array": _is_traced_number,  # a very large int makes it another dtype
    "asarray": _is_traced_number,
    "asanyarray": _is_traced_number,
    "full": _is_traced_number,
}
"""Functions whose results vary for some arguments."""

_COMPLEX_WHERE_NEEDED = frozenset(getattr(numpy.emath, name) for name in numpy.emath.__all__)


def varies(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the kind of what a call gives must be guarded."""
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    asking = VARYING_RANKS.get(name)
    if any(type(value) is TracedList for value in args):  # an empty one gives another dtype and rank
        return True
    if name in VARYING_KINDS or (asking is not None and asking(args, kwargs)):
        return True
    if isinstance(target, numpy.ufunc):
        return all(kind.startswith("O") for kind in target.types)  # made of a function of the user's
    return not isinstance(target, str) and callable(target) and target in _COMPLEX_WHERE_NEEDED


def is_data(node: Node, recorder: Any) -> bool:
    """Whether a value comes from what arrays hold, or changes in a loop, not from shapes, dtypes and numbers given."""
    waiting, seen = [node], set()
    while waiting:
        found = waiting.pop()
        if found in seen:
            continue
        seen.add(found)
        is_inner = found.op == "placeholder" and found.graph is not recorder.bodies.outermost
        if isinstance(found.value_type, ArrayType) or is_inner or bodies_of(found):
            return True
        if not _asks_fact(found):
            waiting += found.all_input_nodes
    return False


def _asks_fact(node: Node) -> bool:
    """Whether a value is a fact about an array that does not depend on what arrays hold."""
    of_shape = node.target is len or (node.target is getattr and node.args[1] in _OF_SHAPES)
    array = node.args[0] if of_shape else None
    if isinstance(array, Node) and isinstance(array.value_type, ArrayType):
        return not _is_selection(array)
    return node.target is type or (node.target is getattr and node.args[1] in ("dtype", "ndim"))


def _is_selection(array: Node) -> bool:
    """Whether as many items are in an array as some other array says: those at a mask, or what differs from zero."""
    name = array.target if isinstance(array.target, str) else getattr(array.target, "__name__", "")
    if name == "getitem":
        owner, key = array.args[0], array.args[1]
        made = isinstance(owner, Node) and owner.value_type is None and _is_selection(owner)
        return made or any(isinstance(part, Node) and _is_mask(part) for part in leaves((key,)))
    return name in _SELECTING


def _is_mask(node: Node) -> bool:
    return isinstance(node.value_type, ArrayType) and "bool" in str(node.value_type)


_SELECTING = frozenset(
    "nonzero flatnonzero argwhere unique unique_values unique_counts compress extract intersect1d union1d setdiff1d "
    "setxor1d trim_zeros delete repeat".split()
)
_OF_SHAPES = frozenset({"shape", "size", "nbytes", "strides", "flags"})


def guard_kind(recorder: Any, value: Any, place: Any) -> None:
    """Guard what kind of value a call gave, and of what its parts are."""
    if isinstance(value, tuple):
        recorder.guard(recorder.create(len, (recorder.resolve(place),)), len(value))
        for index, item in enumerate(value):
            guard_kind(recorder, item, Pending(operator.getitem, (place, index)))
    elif type(value) is list:
        for index, item in enumerate(value):
            guard_kind(recorder, item, Pending(operator.getitem, (place, index)))
    elif isinstance(value, (numpy.ndarray, numpy.generic, bool, int, float, complex)) or value is None:
        node = recorder.resolve(place)
        recorder.guard(recorder.create(type, (node,)), type(value))
        if isinstance(value, numpy.ndarray):
            recorder.guard(recorder.create(getattr, (node, "dtype")), value.dtype)
            recorder.guard(recorder.create(getattr, (node, "ndim")), value.ndim)
