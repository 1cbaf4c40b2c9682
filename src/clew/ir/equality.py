"""Whether two graphs are the same program, written the same way.

Two graphs come in; out comes the first difference in words, or None. Compared are the order of nodes, their opcodes,
names, targets, arguments, annotations and types, nested graphs included; not notes (``meta``) and not sources. Values
are compared strictly: 1 is not True and not 1.0, -0.0 is not 0.0, and nan is nan.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import zip_longest
from typing import Any

from clew.ir.arguments import Reference
from clew.ir.graph import Graph
from clew.ir.guards import Call
from clew.ir.guests import guest_of
from clew.ir.names import is_same_object
from clew.ir.node import Node

_Pairs = dict[Any, Any]


def same_graph(a: Graph, b: Graph) -> bool:
    """True when the graphs do not differ."""
    return difference(a, b) is None


def difference(a: Graph, b: Graph) -> str | None:
    """The first difference of two graphs in words; None if there is none."""
    pairs: _Pairs = {}
    for place, (left, right) in enumerate(zip_longest(a.nodes, b.nodes)):
        if left is None or right is None:
            extra, which = (left, "first") if right is None else (right, "second")
            return f"node {place}: only the {which} graph has %{extra.name}"
        found = _of_nodes(left, right, pairs)
        if found is not None:
            return f"node {place} (%{left.name}): {found}"
        pairs[left] = right
    return _of_guards(a, b, pairs)


def _of_guards(a: Graph, b: Graph, pairs: _Pairs) -> str | None:
    """The first difference of what two graphs check before they run."""
    for place, (left, right) in enumerate(zip_longest(a._guards, b._guards)):
        if left is None or right is None:
            extra, which = (left, "first") if right is None else (right, "second")
            return f"guard {place}: only the {which} graph assumes {extra}"
        parts = [(one.test, one.kind, one.reason, one.label, one.expected) for one in (left, right)]
        found = _of_values(parts[0], parts[1], "test", pairs)
        found = found or _of_expressions(left.subject, right.subject, pairs)
        if found is not None:
            return f"guard {place} ({left}): {found}"
    return None


def _of_expressions(left: Any, right: Any, pairs: _Pairs) -> str | None:
    if isinstance(left, Call) and isinstance(right, Call):
        found = _of_values(left.function, right.function, "subject", pairs)
        if found is not None or len(left.args) != len(right.args):
            return found or _told("subject", left, right)
        parts = zip(left.args, right.args, strict=True)
        return next((found for one, other in parts if (found := _of_expressions(one, other, pairs))), None)
    return _of_values(left, right, "subject", pairs)


def _of_nodes(left: Node, right: Node, pairs: _Pairs) -> str | None:
    if left.name != right.name:
        return f"name is {left.name!r} in the first graph and {right.name!r} in the second"
    if left.op != right.op:
        return f"op is {left.op} in the first graph and {right.op} in the second"
    found = _of_values(left.target, right.target, "target", pairs)
    found = found or _of_values(left.args, right.args, "args", pairs)
    found = found or _of_values(dict(left.kwargs), dict(right.kwargs), "kwargs", pairs)
    if found is None and not _same_annotation(left.type, right.type):
        found = _told("type", left.type, right.type)
    if found is None and left.value_type != right.value_type:
        found = _told("value_type", left.value_type, right.value_type)
    return found


def _told(path: str, left: Any, right: Any) -> str:
    return f"{path} is {_shown(left)} in the first graph and {_shown(right)} in the second"


def _shown(value: Any) -> str:
    try:
        text = f"%{value.name}" if isinstance(value, Reference) else repr(value)
    except ValueError:  # Python refuses to write very long numbers
        text = "a number too long to show" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:80]}..."


def _same_annotation(left: Any, right: Any) -> bool:
    return left is right or (type(left) is type(right) and bool(left == right))


def _of_values(left: Any, right: Any, path: str, pairs: _Pairs) -> str | None:
    """The first difference of two nests, with the path to it."""
    if isinstance(left, Reference):
        same = pairs.get(left) is right if left in pairs else left is right
        return None if same else _told(path, left, right)
    if isinstance(left, list) and isinstance(right, list) and _kind(left) is _kind(right):
        return _of_sequences(left, right, path, pairs)
    if isinstance(left, dict) and isinstance(right, dict) and _kind(left) is _kind(right):
        return _of_dicts(left, right, path, pairs)
    if type(left) is not type(right):
        return _told(path, left, right)
    if isinstance(left, tuple):
        return _of_sequences(left, right, path, pairs)
    if isinstance(left, slice):
        parts = (left.start, left.stop, left.step), (right.start, right.stop, right.step)
        return _of_sequences(*parts, path, pairs)
    if isinstance(left, Graph):
        found = difference(left, right)
        return None if found is None else f"{path}: {found}"
    return None if _same_leaf(left, right) else _told(path, left, right)


def _kind(value: Any) -> type:
    """The class of a container; that of immutable ones is the class that they stand for."""
    kind = type(value)
    return kind.__mro__[1] if kind.__module__ == "clew.ir.arguments" else kind


def _of_sequences(left: Any, right: Any, path: str, pairs: _Pairs) -> str | None:
    if len(left) != len(right):
        return f"{path} has {len(left)} items in the first graph and {len(right)} in the second"
    for place, (one, other) in enumerate(zip(left, right, strict=True)):
        found = _of_values(one, other, f"{path}[{place}]", pairs)
        if found is not None:
            return found
    return None


def _of_dicts(left: Any, right: Any, path: str, pairs: _Pairs) -> str | None:
    found = _of_sequences(list(left), list(right), f"keys of {path}", pairs)
    if found is not None:
        return found
    for key, one, other in zip(left, left.values(), right.values(), strict=True):
        found = _of_values(one, other, f"{path}[{key!r}]", pairs)
        if found is not None:
            return found
    return None


def _same_leaf(left: Any, right: Any) -> bool:
    """Two values of the same class that are no containers of nodes."""
    if is_same_object(left, right):
        return True
    if isinstance(left, (float, complex)):
        return same_number(left, right)
    if isinstance(left, (set, frozenset)):
        return len(left) == len(right) and all(any(_same(one, other) for other in right) for one in left)
    if dataclasses.is_dataclass(left) and not isinstance(left, type):
        fields = [field.name for field in dataclasses.fields(left)]
        return all(_same(getattr(left, name, None), getattr(right, name, None)) for name in fields)
    guest = guest_of(left)
    known = None if guest is None else guest.same_value(left, right)
    # An array compares item by item and answers with an array, so only a plain True counts.
    return (left == right) is True if known is None else known


def _same(left: Any, right: Any) -> bool:
    return _of_values(left, right, "", {}) is None


def same_number(left: Any, right: Any) -> bool:
    """Whether two numbers of one class, float or complex, are the same: nan is nan, and 0.0 is not -0.0."""
    if isinstance(left, complex):
        return same_number(left.real, right.real) and same_number(left.imag, right.imag)
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right and math.copysign(1.0, left) == math.copysign(1.0, right)
