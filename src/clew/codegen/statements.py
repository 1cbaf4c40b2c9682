"""One node as one Python statement, in the words a colleague would choose.

Operators print as operators, ``getitem`` as a subscript, ``getattr`` as an attribute, the in-place operators and what
sets an item or an attribute as assignments; everything else is a call. Values that nobody uses are not assigned.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from clew.codegen.annotations import annotation
from clew.codegen.assignments import assignment, can_assign, is_assignment
from clew.codegen.locals import is_plain_identifier, plain
from clew.codegen.raises import can_raise, raising
from clew.codegen.scope import Scope, can_stand_bare, quoted
from clew.codegen.subscripts import subscript
from clew.errors import CodegenError
from clew.ir.control_flow import choose
from clew.ir.node import Node

ValueT = TypeVar("ValueT")

_BINARY = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "**", operator.matmul: "@", operator.lshift: "<<", operator.rshift: ">>",
    operator.and_: "&", operator.or_: "|", operator.xor: "^", operator.eq: "==", operator.ne: "!=",
    operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip
_MAGIC_UNARY = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}
_UNARY = {**_MAGIC_UNARY, operator.not_: "not "}
_IN_PLACE = {
    operator.iadd: "+=", operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=", operator.ifloordiv: "//=",
    operator.imod: "%=", operator.ipow: "**=", operator.imatmul: "@=", operator.ilshift: "<<=",
    operator.irshift: ">>=", operator.iand: "&=", operator.ior: "|=", operator.ixor: "^=",
}  # fmt: skip

_IDENTITY = {operator.is_: "is", operator.is_not: "is not"}
_SIGNS: dict[Any, str] = {**_BINARY, **_UNARY, **_IDENTITY, operator.contains: "in"}

_LARGE = 10**15
"""Integers below are surely short enough to be written in base 10."""

_COMPARING = frozenset({"==", "!=", "<", "<=", ">", ">="})
COMPARING = frozenset(function for function, sign in _BINARY.items() if sign in _COMPARING)
"""The functions that compare."""

reflectable_magic_methods = {
    **{function.__name__: f"{{}} {sign} {{}}" for function, sign in _BINARY.items() if sign not in _COMPARING},
    "div": "{} / {}",
    "getitem": "{}[{}]",
}
"""Operators with a reflected form, by the name of their function, as templates: torch.fx's table."""
magic_methods = (
    {function.__name__: f"{{}} {sign} {{}}" for function, sign in _BINARY.items()}
    | {function.__name__: f"{sign}{{}}" for function, sign in _MAGIC_UNARY.items()}
    | reflectable_magic_methods
)
inplace_methods = {
    **{function.__name__: f"{{}} {sign} {{}}" for function, sign in _IN_PLACE.items()},
    "setitem": "{}[{}] = {}",
}


def statement(node: Node, scope: Scope, root: str) -> str:
    """The statement of a node that is neither placeholder nor output, without annotation and without a line end."""
    if node.op == "call_function":
        form = scope.forms.get(id(node.target)) or form_of(node.target, scope)
        kwargs = node.kwargs
        if form.may_assign and not kwargs:
            special = _in_place(node, scope) or raising(node, scope) or assignment(node, scope, root)
            if special is not None:
                return special
        text = None if form.write is None or kwargs else form.write(node.args, form.sign, scope)
        if text is None:
            text = f"{scope.name_of(node.target)}({arguments(node.args, kwargs, scope)})"
    else:
        text = _EXPRESSIONS[node.op](node, scope, root)
    if not node.users:
        return text
    name = scope.locals.name(node) if node in scope.special else node.name
    return f"{name} = {text}" if node.type is None else f"{name} : {annotation(node.type, scope)} = {text}"


def _in_place(node: Node, scope: Scope) -> str | None:
    """``x += y``; None for all other nodes."""
    sign = _lookup(_IN_PLACE, node.target)
    if sign is not None and len(node.args) == 2 and isinstance(node.args[0], Node):
        # A name of its own first: on an immutable value, ``x += y`` would rebind x for all who read it later.
        name, before = scope.locals.name(node), scope.spell(node.args[0])
        start = "" if name == before else f"{name} = {before};  "
        return f"{start}{name} {sign} {scope.spell(node.args[1])}"
    return None


def makes_statement(node: Node) -> bool:
    """True for a node that is no expression: an assignment in place."""
    if node.op != "call_function":
        return False
    return is_assignment(node) or _lookup(_IN_PLACE, node.target) is not None


def _lookup(signs: dict[Any, ValueT], target: Any) -> ValueT | None:
    try:
        return signs.get(target)
    except TypeError:  # a callable without a hash is no operator
        return None


def is_operator(node: Node) -> bool:
    """True for a node that is written with an operator, so that it needs parentheses inside of another expression."""
    if node.op != "call_function" or node.kwargs:
        return False
    if node.target is choose:
        return len(node.args) == 3
    count = 1 if _lookup(_UNARY, node.target) else 2
    return len(node.args) == count and _lookup(_SIGNS, node.target) is not None


def expression(node: Node, scope: Scope, root: str) -> str:
    """The value of a node as an expression."""
    return _EXPRESSIONS[node.op](node, scope, root)


def _get_attr(node: Node, scope: Scope, root: str) -> str:
    return scope.attribute_path(root, node.target)


def _call_module(node: Node, scope: Scope, root: str) -> str:
    return f"{scope.attribute_path(root, node.target)}({arguments(node.args, node.kwargs, scope)})"


def _call_method(node: Node, scope: Scope, root: str) -> str:
    if not node.args:
        raise CodegenError(
            f"node {node.name} calls the method {plain(node.target)!r} of nothing",
            fixes=["give it the object as its first argument"],
        )
    receiver = owner(node.args[0], scope)
    called = receiver if node.target == "__call__" else scope.attribute(receiver, node.target)
    return f"{called}({arguments(node.args[1:], node.kwargs, scope)})"


def _call_function(node: Node, scope: Scope, root: str) -> str:
    return _called(node, form_of(node.target, scope), scope)


def _called(node: Node, form: Form, scope: Scope) -> str:
    """The call of a function, in the form that it has."""
    if form.write is not None and not node.kwargs:
        text = form.write(node.args, form.sign, scope)
        if text is not None:
            return text
    return f"{scope.name_of(node.target)}({arguments(node.args, node.kwargs, scope)})"


def _binary(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    if len(args) != 2:
        return None
    left, right = args
    first = left.name if type(left) is Node and left not in scope.special else operand(left, scope)
    return f"{first} {sign} {'None' if right is None else operand(right, scope)}"


def _membership(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    return f"{operand(args[1], scope)} in {operand(args[0], scope)}" if len(args) == 2 else None


def _unary(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    return f"{sign}{operand(args[0], scope)}" if len(args) == 1 else None


def _item(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    return f"{operand(args[0], scope)}[{subscript(args[1], scope)}]" if len(args) == 2 else None


def _attribute(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    if len(args) != 2 or not isinstance(args[1], str):
        return None
    return scope.attribute(owner(args[0], scope), args[1])


def _choice(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    if len(args) != 3:
        return None
    return f"{operand(args[1], scope)} if {operand(args[0], scope)} else {operand(args[2], scope)}"


class Form(NamedTuple):
    """How calls of a function are written, if they have no keyword arguments."""

    may_assign: bool
    """Whether they may be statements rather than expressions."""
    write: Callable[[tuple[Any, ...], str, Scope], str | None] | None
    """Writes the arguments with a sign; None for a call like any other."""
    sign: str
    target: Any
    """The function, kept so that its identity stays its own."""


def form_of(target: Any, scope: Scope) -> Form:
    """How calls of ``target`` are written, found out once for all its calls."""
    form: Form | None = scope.forms.get(id(target))
    if form is None:
        shown = _lookup(SHOWN, target) if scope.is_shown else None
        form = scope.forms[id(target)] = _form(target) if shown is None else Form(False, shown, "", target)
    return form


SHOWN: dict[Any, Callable[[tuple[Any, ...], str, Scope], str | None]] = {}
"""How calls of functions that only captures make are written in code for people."""


def _form(target: Any) -> Form:
    may_assign = can_assign(target) or can_raise(target) or _lookup(_IN_PLACE, target) is not None
    sign = _lookup(_BINARY, target) or _lookup(_IDENTITY, target)
    if sign is not None:
        return Form(may_assign, _binary, sign, target)
    sign = _lookup(_UNARY, target)
    if sign is not None:
        return Form(may_assign, _unary, sign, target)
    written = _item if target is operator.getitem else _attribute if target is getattr else None
    written = _choice if target is choose else _membership if target is operator.contains else written
    return Form(may_assign, written, "", target)


_EXPRESSIONS: dict[str, Callable[[Node, Scope, str], str]] = {
    "get_attr": _get_attr,
    "call_module": _call_module,
    "call_method": _call_method,
    "call_function": _call_function,
}


def operand(value: Any, scope: Scope) -> str:
    """An operand of an operator, in parentheses unless it is a name or a plain literal."""
    kind = type(value)
    if kind is Node:
        if value not in scope.special:
            return value.name  # type: ignore[no-any-return]
    elif kind is int and 0 <= value < _LARGE:
        return repr(value)
    value = scope.resolve(value)
    text = scope.spell(value)
    if type(value) is Node:
        return text
    simple = isinstance(value, (str, list, tuple, dict)) or (type(value) in (bool, float) and text[0] != "-")
    simple = simple or all(map(is_plain_identifier, text.split(".")))
    return text if simple or (type(value) is int and value >= 0) else f"({text})"


def owner(value: Any, scope: Scope) -> str:
    """What stands before a dot; a number needs parentheses there, or the dot would be a decimal point."""
    value = scope.resolve(value)
    return f"({scope.spell(value)})" if type(value) is int else operand(value, scope)


def arguments(args: tuple[Any, ...], kwargs: dict[str, Any], scope: Scope) -> str:
    """The arguments of a call, in order; keywords that are no identifiers go through a dict."""
    special, spell = scope.special, scope.spell_argument
    parts = [value.name if type(value) is Node and value not in special else spell(value) for value in args]
    for key, value in kwargs.items():
        key = plain(key)
        if can_stand_bare(key):
            parts.append(f"{key}{scope.equals}{spell(value)}")
        else:
            parts.append(f"**{{{quoted(key)}: {scope.spell(value)}}}")
    return ", ".join(parts)
