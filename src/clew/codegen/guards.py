"""Guards as code: an ``if`` with a cheap condition, and under it the call that raises.

The guards of a graph come in as data, those on computed values as nodes. Each kind of test has a writer of its
condition (``WRITERS``), which is given the subject as code and the value that is expected. What is computed for a guard
alone, right before it, stands inside of the condition and is computed once.

Always holds: a condition may be true too often, since the guard itself has the last word, but never too seldom.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any

from clew.codegen.inline import is_item_of_control
from clew.codegen.scope import Scope
from clew.codegen.statements import COMPARING, expression, is_operator
from clew.ir.graph import Graph
from clew.ir.guards import (
    TESTS,
    Attribute,
    Call,
    Expression,
    Guard,
    Waiting,
    detached,
    guard,
    guard_of,
    is_deferring,
    is_guard,
)
from clew.ir.guests import is_plain_value
from clew.ir.node import Node
from clew.ir.types import ScalarType

by_equality: set[type] = set()
"""Classes, of a framework's devices say, whose values are made anew at each reading and equal only their own kind.

The one that a check expects is made once, above the function.
"""


@dataclass(frozen=True)
class Subject:
    """The value that a check looks at, as a condition may write it."""

    value: Any
    text: str
    """The whole expression, for a condition that reads it once."""
    first: str
    """The same for a condition that reads it several times, at the first place,"""
    again: str
    """and at all others."""
    expected: str
    is_integer: bool
    is_truth: bool
    name_of: Callable[[Any], str]
    """How the code calls an object."""


@dataclass(frozen=True)
class Condition:
    """An expression that is true wherever the guard could fail; ``known`` is the value then, if that is certain."""

    text: str
    known: str = ""


_LITERALS = (int, float, str, bytes, complex, tuple)


def value_test(subject: Subject, expected: Any) -> Condition:
    """For a value that must be of the same type and equal."""
    kind = type(expected)
    if kind is bool and subject.is_truth:
        return Condition(f"not {subject.text}" if expected else subject.text, str(not expected))
    if (kind is int and subject.is_integer) or kind in by_equality:
        return Condition(f"{subject.first} != {subject.expected}")
    if kind in (str, bytes) and subject.first != subject.text:  # what a function tells, which equals its like alone
        return Condition(f"{subject.text} != {subject.expected}")
    if kind in _LITERALS:
        of_type = type_test(subject, kind, subject.name_of(kind))
        zero = f" or not {subject.again}" if kind is float and expected == 0 else ""  # the guard knows of two zeros
        return Condition(f"{of_type.text} or {subject.again} != {subject.expected}{zero}")
    return same_test(subject, expected)


def same_test(subject: Subject, expected: Any) -> Condition:
    """For a value that must be the very object; a literal in code is an object of its own, so no test can tell."""
    if type(expected) in _LITERALS:
        return Condition("True")
    return Condition(f"{subject.first} is not {subject.expected}")


def type_test(subject: Subject, expected: Any, name: str = "") -> Condition:
    """For a value that must be of a class."""
    return Condition(f"{subject.name_of(type)}({subject.first}) is not {name or subject.expected}")


def length_test(subject: Subject, expected: Any) -> Condition:
    """For a container that must have as many items."""
    return Condition(f"{subject.name_of(len)}({subject.first}) != {subject.expected}")


def keys_test(subject: Subject, expected: Any) -> Condition:
    """For a dict that must have the same keys in the same order; numbers of different kinds can be equal."""
    if any(type(key) is not str for key in expected):
        return Condition("True")
    if not expected:
        return Condition(subject.text)
    return Condition(f"{subject.name_of(tuple)}({subject.first}) != {subject.expected}")


WRITERS: dict[str, Callable[[Subject, Any], Condition]] = {
    "equals": value_test,
    "is": same_test,
    "type": type_test,
    "length": length_test,
    "keys": keys_test,
}
"""The conditions of the tests that every guard may have, by their names."""


# ---- checks ----------------------------------------------------------------------------------------------------------

_INTEGER_RESULT = frozenset({operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod})
_TRUTHS = frozenset({*COMPARING, operator.is_, operator.is_not, bool})
_INLINE_FUNCTIONS = frozenset({operator.getitem, getattr, len, bool, int, float, operator.is_, operator.is_not})
_FACTS = frozenset({"dtype", "device", "shape", "ndim", "layout", "requires_grad", "is_leaf"})
_NO_ARRAYS = frozenset({"dtype", "device", "type"})
"""Attributes whose values are no arrays, so that comparing them gives a bool."""
_BOOL = ScalarType("bool")
_INTEGER_METHODS = frozenset({"dim", "numel", "nelement", "ndimension"})
_INLINE_METHODS = frozenset({*_INTEGER_METHODS, "size", "item", "stride", "is_contiguous"})


def is_check(node: Node) -> bool:
    """True for a guard on a value."""
    return is_guard(node) and not node.users


def without_bookkeeping(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that people read: without guards on what calls leave alone, and what is remembered for these."""
    nodes = list(nodes)
    hidden = {node for node in nodes if is_check(node) and not TESTS[guard_of(node).test].is_shown}
    if not hidden:
        return nodes
    hidden |= {node for node in nodes if node.users and hidden.issuperset(node.users)}
    return [node for node in nodes if node not in hidden]


def is_entry_check(node: Node) -> bool:
    """True for a node that ``entry_checks`` has made."""
    return _ENTRY in (node._meta or ())


def entry_checks(guards: Iterable[Guard]) -> list[Node]:
    """Nodes of their own, over the inputs of a graph, that check its guards; each guard's own come last of these."""
    scratch = Graph()
    for one in guards:
        value = _made(one.subject, scratch)
        check = scratch.create_node("call_function", guard, (value, one.expected), {"test": one.test}, _NAME)
        check.source = one.source
        check.meta[_ENTRY] = one
    return list(scratch.nodes)


_NAME, _ENTRY = "_guarded", "entry guard"


def _made(expression: Expression, scratch: Graph) -> Any:
    """The node that computes an expression, or the value itself."""
    if isinstance(expression, Attribute):
        return scratch.create_node("get_attr", expression.path, name=_NAME)
    if not isinstance(expression, Call):
        return expression
    args = tuple(_made(argument, scratch) for argument in expression.args)
    op = "call_method" if isinstance(expression.function, str) else "call_function"
    return scratch.create_node(op, expression.function, args, name=_NAME)


def inlined_into(check: Node, bound: Collection[Node] = ()) -> list[Node]:
    """The nodes right before a check that are computed for it alone, the last one first; not those ``bound`` before."""
    found: list[Node] = []
    if is_entry_check(check):  # all that stands before it, back to the one before
        node = check._prev
        while node.op != "root" and not is_guard(node):
            found.append(node)
            node = node._prev
        return found
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


def write_check(check: Node, inlined: list[Node], scope: Scope, root: str, asking: bool = False) -> tuple[str, str]:
    """The test and the call under it, or for ``asking`` the answer that the guard does not hold; ``inlined`` are
    written inside of the test."""
    for node in reversed(inlined):
        scope.write_inline(node, expression(node, scope, root), is_operator(node))
    one = check.meta.get(_ENTRY) or guard_of(check)
    value, expected = check.args[0], one.expected
    text, name = _spelled(value, scope), scope.locals.name(value) if isinstance(value, Node) else ""
    may_repeat = not isinstance(value, Node) or _is_reading(value, inlined)
    first, again = (text, text) if may_repeat else (f"({name} := {text})", name)
    kinds = (_is_integer(value), isinstance(value, Node) and _is_truth(value))
    wanted = scope.constant(expected) if type(expected) in by_equality else scope.spell(expected)
    if scope.is_portable:  # nothing but the guard itself, which finds what it needs where the code is loaded
        (one,) = detached([one])
        if isinstance(value, Node):
            return "if True:", f"{scope.bind('_guard', one.require)}({text})"
        return "if True:", f"{scope.bind('_guard', one.require_itself)}()"
    if check in scope.waiting and value in inlined:
        array = _spelled(value.args[0], scope)
        test = f"if {scope.bind('_deferring', is_deferring)}() or {'not ' * (expected is True)}{text}:"
        return test, f"{scope.bind('_guard', Waiting(check).require)}({array})"
    writer = WRITERS.get(one.test)
    subject = Subject(value, text, first, again, wanted, *kinds, scope.name_of)
    condition = Condition("True") if writer is None else writer(subject, expected)
    passed = condition.known or (again if first in condition.text else text)  # which it has not been given yet
    if asking:
        also = "" if condition.text == "True" else f"({condition.text}) and "
        return f"if {also}not {scope.bind('_holds', one.holds)}({passed}):", "return False"
    return f"if {condition.text}:", f"{scope.bind('_guard', one.require)}({passed})"


def shown_check(check: Node, inlined: list[Node], scope: Scope, root: str) -> str:
    """A guard on a computed value as one line for people: ``guard(n > 3)``."""
    for node in reversed(inlined):
        scope.write_inline(node, expression(node, scope, root), is_operator(node))
    one, text = guard_of(check), _spelled(check.args[0], scope)
    told = TESTS[one.test].text(text, one.expected)
    if isinstance(one.expected, type) or is_plain_value(one.expected):  # its name must be one that the code can find
        compared = {"equals": f"{text} ==", "is": f"{text} is", "type": f"type({text}) is"}.get(one.test)
        told = told if compared is None else f"{compared} {scope.spell(one.expected)}"
    return f"{scope.name_of(guard)}({told})"


def _spelled(value: Any, scope: Scope) -> str:
    return scope.spell_bare(value) if isinstance(value, Node) else scope.spell(value)


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
