"""Checks: calls that return nothing and raise unless a value is as expected, written as an ``if`` with a cheap test.

A function that checks its first argument may register a ``TestWriter``. The call is then written under an ``if``, so
that it is made only where the test fails. The test may fail too often, since the function itself has the last word, but
never too seldom. What is computed for the check alone, right before it, stands inside of the test and is computed once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

from clew.codegen.inline import is_item_of_control
from clew.codegen.scope import Scope
from clew.codegen.statements import COMPARING, expression, is_operator
from clew.ir.node import Node
from clew.ir.types import ScalarType

_INTEGER_RESULT = frozenset({operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod})
_TRUTHS = frozenset({*COMPARING, operator.is_, operator.is_not, bool})
_INLINE_FUNCTIONS = frozenset({operator.getitem, getattr, len, bool, int, float, operator.is_, operator.is_not})
_FACTS = frozenset({"dtype", "device", "shape", "ndim", "layout", "requires_grad", "is_leaf"})
_NO_ARRAYS = frozenset({"dtype", "device", "type"})
"""Attributes whose values are no arrays, so that comparing them gives a bool."""
_BOOL = ScalarType("bool")
_INTEGER_METHODS = frozenset({"dim", "numel", "nelement", "ndimension"})
_INLINE_METHODS = frozenset({*_INTEGER_METHODS, "size", "item", "stride", "is_contiguous"})


@dataclass(frozen=True)
class Subject:
    """The value that a check looks at, as a test may write it."""

    text: str
    """The whole expression, for a test that reads it once."""
    first: str
    """The same for a test that reads it several times, at the first place,"""
    again: str
    """and at all others."""
    expected: str
    is_integer: bool
    is_truth: bool
    name_of: Callable[[Any], str]
    """How the code calls a builtin."""


@dataclass(frozen=True)
class Test:
    """An expression that is true wherever the check could raise; ``known`` is the value then, if that is certain."""

    condition: str
    known: str = ""


TestWriter = Callable[[Subject, Any], Test]
"""Writes the test for a subject and the value that the check expects, its second argument."""

_writers: dict[Any, TestWriter] = {}

by_equality: set[type] = set()
"""Classes, of a framework's devices say, whose values are made anew at each reading and equal only their own kind.

The one that a check expects is made once, above the function.
"""


def written_as_test(check: Callable[..., Any], writer: TestWriter) -> None:
    """Let calls of ``check(value, expected, ...)`` be made only where the test of ``writer`` is true."""
    _writers[check] = writer


def is_check(node: Node) -> bool:
    """True for a call that is written with a test."""
    if node.op != "call_function" or node.users or node.kwargs or len(node.args) < 2:
        return False
    try:
        return node.target in _writers and isinstance(node.args[0], Node)
    except TypeError:  # a callable without a hash cannot have been registered
        return False


def inlined_into(check: Node, bound: Collection[Node] = ()) -> list[Node]:
    """The nodes right before a check that are computed for it alone, the last one first; not those ``bound`` before."""
    found: list[Node] = []
    users: set[Node] = {check}
    node = check._prev
    while _is_inline(node) and node not in bound and len(node.users) == 1 and next(iter(node.users)) in users:
        (user,) = node.users
        if sum(argument is node for argument in user.args) != 1 or (user is check and user.args[0] is not node):
            break
        found.append(node)
        users.add(node)
        node = node._prev
    return found


def _is_inline(node: Node) -> bool:
    """Whether a node only reads or computes a number, a size or a fact."""
    if node.kwargs or node.type is not None or is_item_of_control(node):
        return False
    if node.op == "call_method":
        return node.target in _INLINE_METHODS
    if node.op == "call_function":
        return is_operator(node) or _is_one_of(node.target, _INLINE_FUNCTIONS)
    return node.op == "get_attr"


def write_check(check: Node, inlined: list[Node], scope: Scope, root: str) -> tuple[str, str]:
    """The test and the call under it; ``inlined`` are written inside of the test."""
    for node in reversed(inlined):
        scope.write_inline(node, expression(node, scope, root), is_operator(node))
    value, expected = check.args[0], check.args[1]
    text, name = scope.spell_bare(value), scope.locals.name(value)
    may_repeat = _is_reading(value, inlined)
    first, again = (text, text) if may_repeat else (f"({name} := {text})", name)
    kinds = _is_integer(value), _is_truth(value)
    wanted = scope.constant(expected) if type(expected) in by_equality else scope.spell(expected)
    test = _writers[check.target](Subject(text, first, again, wanted, *kinds, scope.name_of), expected)
    rest = "".join(f", {part}" for part in (wanted, *map(scope.spell, check.args[2:])))
    return f"if {test.condition}:", f"{scope.name_of(check.target)}({test.known or again}{rest})"


def _is_reading(value: Any, inlined: list[Node]) -> bool:
    """Whether a value may be written twice and still is computed once: a local, or a fact that is only looked up."""
    if value not in inlined or value.op == "get_attr":
        return True
    if value.target is getattr:
        return value.args[1] in _FACTS and _is_reading(value.args[0], inlined)
    return value.target is operator.getitem and _is_shape(value.args[0]) and _is_reading(value.args[0], inlined)


def _is_integer(value: Any) -> bool:
    """Whether a value is an int for certain: sizes, ranks, lengths, and what comes of these."""
    if not isinstance(value, Node):
        return type(value) is int
    if value.op == "call_method":
        return value.target in _INTEGER_METHODS or (value.target == "size" and len(value.args) == 2)
    if value.op != "call_function" or value.kwargs:
        return False
    if value.target is len:
        return True
    if value.target is getattr:
        return value.args[1:] == ("ndim",)
    if value.target is operator.getitem:
        return type(value.args[1]) is int and _is_shape(value.args[0])
    return _is_one_of(value.target, _INTEGER_RESULT) and all(map(_is_integer, value.args))


def _is_shape(value: Any) -> bool:
    return isinstance(value, Node) and value.target is getattr and value.args[1:] == ("shape",)


def _is_truth(value: Node) -> bool:
    """Whether a value is a bool for certain."""
    if value.op == "call_method" or value.target is getattr or isinstance(value.target, BuiltinFunctionType):
        name = value.args[1] if value.target is getattr else getattr(value.target, "__name__", value.target)
        if str(name).startswith("is_") and value.value_type == _BOOL:  # ``x.is_meta``, ``x.is_floating_point()``
            return True
    if value.op != "call_function" or value.kwargs or not _is_one_of(value.target, _TRUTHS):
        return False
    if not _is_one_of(value.target, COMPARING) or all(map(_is_integer, value.args)):
        return True
    return any(isinstance(one, Node) and one.target is getattr and one.args[1] in _NO_ARRAYS for one in value.args)


def _is_one_of(target: Any, functions: Any) -> bool:
    try:
        return target in functions
    except TypeError:
        return False
