"""One node as one Python statement, in the words a colleague would choose.

Operators print as operators, ``getitem`` as a subscript, ``getattr`` as an attribute, the in-place operators and what
sets or deletes an item or an attribute as assignments, a function that raises as ``raise``, annotations as types;
everything else is a call. Values that nobody uses are not assigned. Where a name could not stand in code, or would mean
something else there, a call stays a call.
"""

from __future__ import annotations

import builtins
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from clew.codegen.scope import Scope, can_stand_bare, is_plain_identifier, is_private, plain, quoted
from clew.errors import CodegenError
from clew.ir.arguments import leaves
from clew.ir.control_flow import choose
from clew.ir.guests import guest_of
from clew.ir.node import Node

# ---- statements and expressions --------------------------------------------------------------------------------------


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
            text = f"{scope.name_of(node.target)}({arguments(node.args, told(node, scope), scope)})"
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


def _lookup(table: dict[Any, ValueT], target: Any) -> ValueT | None:
    try:
        return table.get(target)
    except TypeError:  # a callable without a hash cannot be in a table
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
    # An object of the root, of TorchScript for one, may have the method without being callable.
    is_plain_call = node.target == "__call__" and getattr(node.args[0], "op", None) != "get_attr"
    called = receiver if is_plain_call else scope.attribute(receiver, node.target)
    return f"{called}({arguments(node.args[1:], node.kwargs, scope)})"


def _call_function(node: Node, scope: Scope, root: str) -> str:
    return _called(node, form_of(node.target, scope), scope)


def _called(node: Node, form: Form, scope: Scope) -> str:
    """The call of a function, in the form that it has."""
    if form.write is not None and not node.kwargs:
        text = form.write(node.args, form.sign, scope)
        if text is not None:
            return text
    return f"{scope.name_of(node.target)}({arguments(node.args, told(node, scope), scope)})"


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
    written = _f_string if any(target is one for one in _saying) else written
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


def told(node: Node, scope: Scope) -> dict[str, Any]:
    """The keyword arguments that the call of a function names: for people, those that are no defaults."""
    if not scope.is_shown or not node.kwargs:
        return node.kwargs
    usual = _defaults(node.target)
    return {key: value for key, value in node.kwargs.items() if key not in usual or not _is_same(value, usual[key])}


def _defaults(function: Any) -> dict[str, Any]:
    """What the parameters of a function are where a call leaves them out."""
    if type(function) is not types.FunctionType:
        return {}
    guest = guest_of(function)
    known = None if guest is None else guest.defaults(function)
    if known is not None:
        return known
    code = function.__code__
    names = code.co_varnames[code.co_posonlyargcount : code.co_argcount]
    last = function.__defaults__ or ()
    return {**dict(zip(reversed(names), reversed(last), strict=False)), **(function.__kwdefaults__ or {})}


def _is_same(value: Any, usual: Any) -> bool:
    """Whether an argument is the default: the very same object, or an equal number or text."""
    if value is usual:
        return True
    return type(value) is type(usual) and type(value) in (int, float, str) and repr(value) == repr(usual)


# ---- subscripts and assignments --------------------------------------------------------------------------------------


def subscript(index: Any, scope: Scope) -> str:
    """What stands between the brackets: ``:, 0`` rather than ``(slice(None, None, None), 0)``."""
    if isinstance(index, slice):
        ends = (index.start, index.stop, index.step)
        start, stop, step = ("" if end is None else scope.spell(end) for end in ends)
        return f"{start}:{stop}" + (f":{step}" if step else "")
    if type(index) is tuple and index:
        parts = [scope.spell(part) if isinstance(part, tuple) else subscript(part, scope) for part in index]
        inner = ", ".join(parts)
        return f"{inner}," if len(index) == 1 else inner
    return scope.spell(index)


_roots: dict[Any, str] = {}


def written_as_assignment(function: Callable[..., Any], root: str) -> None:
    """Let ``function(root, path, value)`` be written as ``self.path = value``; without a value, as ``del self.path``.

    ``root`` is the attribute of a root by which the graph gets the root itself.
    """
    _roots[function] = root


def assignment(node: Node, scope: Scope, root: str) -> str | None:
    """The statement of a node that assigns or deletes; None for all other nodes."""
    if node.op != "call_function" or node.kwargs or not node.args or not isinstance(node.args[0], Node):
        return None
    if scope.resolve(node.args[0]) is not node.args[0]:  # nothing can be assigned to a part of a literal
        return None
    writer = _lookup(_WRITERS, node.target)
    text = writer(node, scope) if writer is not None else _of_root(node, scope, root)
    return f"{text};  {scope.locals.name(node)} = None" if text is not None and node.users else text


def can_assign(function: Any) -> bool:
    """Whether some calls of a function are written as such a statement."""
    return _lookup(_WRITERS, function) is not None or _lookup(_roots, function) is not None


def is_assignment(node: Node) -> bool:
    """True for a node that may be written as such a statement."""
    return _lookup(_WRITERS, node.target) is not None or _is_of_root(node)


def _set_attribute(node: Node, scope: Scope) -> str | None:
    if len(node.args) != 3 or not _is_attribute(node.args[1]):
        return None
    return f"{scope.spell(node.args[0])}.{node.args[1]} = {scope.spell(node.args[2])}"


def _delete_attribute(node: Node, scope: Scope) -> str | None:
    if len(node.args) != 2 or not _is_attribute(node.args[1]):
        return None
    return f"del {scope.spell(node.args[0])}.{node.args[1]}"


def _set_item(node: Node, scope: Scope) -> str | None:
    if len(node.args) != 3:
        return None
    return f"{scope.spell(node.args[0])}[{subscript(node.args[1], scope)}] = {scope.spell(node.args[2])}"


def _delete_item(node: Node, scope: Scope) -> str | None:
    return f"del {scope.spell(node.args[0])}[{subscript(node.args[1], scope)}]" if len(node.args) == 2 else None


_WRITERS: dict[Any, Callable[[Node, Scope], str | None]] = {
    setattr: _set_attribute,
    delattr: _delete_attribute,
    operator.setitem: _set_item,
    operator.delitem: _delete_item,
}


def _is_attribute(name: Any) -> bool:
    return isinstance(name, str) and is_plain_identifier(plain(name)) and not is_private(plain(name))


def _is_of_root(node: Node) -> bool:
    """Whether a node is a registered call, for a path that can be written."""
    if node.op != "call_function" or node.kwargs or len(node.args) not in (2, 3):
        return False
    holder, path = node.args[:2]
    root = _lookup(_roots, node.target)
    is_root = root is not None and isinstance(holder, Node) and holder.op == "get_attr" and holder.target == root
    return is_root and isinstance(path, str) and all(map(_is_attribute, plain(path).split(".")))


def _of_root(node: Node, scope: Scope, root: str) -> str | None:
    if not _is_of_root(node):
        return None
    place = f"{root}.{plain(node.args[1])}"
    return f"{place} = {scope.spell(node.args[2])}" if len(node.args) == 3 else f"del {place}"


def unread_roots(nodes: Iterable[Node]) -> set[Node]:
    """The nodes that get a root for nothing but registered calls, in which it is written as the root itself."""
    gotten = [node for node in nodes if node.op == "get_attr" and node.target in _roots.values() and node.users]
    return {node for node in gotten if all(_is_of_root(user) and not _is_value(node, user) for user in node.users)}


def _is_value(node: Node, user: Node) -> bool:
    return any(leaf is node for leaf in leaves(user.args[1:]))


# ---- raise -----------------------------------------------------------------------------------------------------------

_raising: list[Callable[..., Any]] = []
_saying: list[Callable[..., Any]] = []
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_UNFIT = re.compile(r"['\"\\{}\n]")
"""What no expression inside of an f-string may have."""


def written_as_raise(function: Callable[..., Any]) -> None:
    """Let ``function(kind, *args)`` be written as ``raise kind(*args)``."""
    _raising.append(function)


def written_as_text(function: Callable[..., Any]) -> None:
    """Let ``function(template, *values)`` be written as ``f"..."``."""
    _saying.append(function)


def can_raise(function: Any) -> bool:
    """Whether calls of a function are written so."""
    return any(function is one for one in _raising)


def is_raise(node: Node) -> bool:
    """Whether a node is such a call."""
    if node.users or node.kwargs or not node.args or node.op != "call_function":  # as almost all are
        return False
    return can_raise(node.target)


def raising(node: Node, scope: Scope) -> str | None:
    """The statement of such a call; None for all other nodes."""
    if not is_raise(node):
        return None
    kind, *args = node.args
    for said in texts_inside(node):
        scope.write_inline(said, _call_function(said, scope, ""), False)
    return f"raise {scope.spell(kind)}({', '.join(map(scope.spell, args))})"


def texts_inside(node: Node) -> list[Node]:
    """The text that a raise is given, if it is made for it alone, right before it."""
    said = node._prev
    if not is_raise(node) or list(said.users) != [node] or said.op != "call_function" or said.kwargs:
        return []
    if sum(one is said for one in node.args) != 1 or not any(said.target is one for one in _saying):
        return []
    return [said] if all(map(_is_bare, said.args[1:])) else []


def _is_bare(value: Any) -> bool:
    """Whether a value is written without quotes, which must not stand in an f-string."""
    return all(map(_is_bare, value)) if type(value) is tuple else isinstance(value, (Node, int))


def _f_string(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    """The f-string of a template and its values; None where an f-string takes no such expressions."""
    template = plain(args[0])
    spelled = [scope.spell(value) for value in args[1:]]
    count = sum(found[1] is not None for found in _FIELD.finditer(template))
    if count != len(spelled) or any(_UNFIT.search(one) for one in spelled):
        return None
    values = iter(spelled)

    def filled(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else f"{{{next(values)}{found[1]}}}"

    return f"f{_FIELD.sub(filled, template)!r}"


def raises(body: Any) -> bool:
    """Whether a body never comes to its end, because it raises an error."""
    last = body._root._prev
    return last.op == "output" and is_raise(last._prev)


# ---- type annotations ------------------------------------------------------------------------------------------------


def annotation(kind: Any, scope: Scope) -> str:
    """The annotation as an expression in ``scope``."""
    if kind is type(None):
        return scope.name_of(kind)  # None itself would say, if the code is captured again, that nothing is annotated
    text = _written(kind, scope)
    return text if _means(text, kind, scope) else scope.bind("annotation", kind)


def _means(text: str, kind: Any, scope: Scope) -> bool:
    """Whether the text evaluates back; it is made of checked names and plain literals alone."""
    try:
        found = eval(text, {"__builtins__": builtins, **scope.globals})
        wanted = kind.__forward_arg__ if isinstance(kind, typing.ForwardRef) else kind
        return bool(found == wanted)
    except (TypeError, NameError, AttributeError, SyntaxError, ValueError):
        return False


def _written(kind: Any, scope: Scope) -> str:
    if kind is None or kind is type(None):
        return "None"
    if kind is ...:
        return "..."
    if isinstance(kind, (str, typing.ForwardRef)):
        return repr(plain(kind if isinstance(kind, str) else kind.__forward_arg__))
    if isinstance(kind, list):
        return f"[{_joined(kind, scope)}]"
    if isinstance(kind, tuple):
        return f"({_joined(kind, scope)}{',' if len(kind) == 1 else ''})"
    arguments = typing.get_args(kind)
    if isinstance(kind, types.UnionType):
        return " | ".join(_written(argument, scope) for argument in arguments)
    origin = typing.get_origin(kind)
    if origin is None:
        return _typing_name(kind, scope) or scope.name_of(kind)
    return _subscripted(kind, origin, arguments, scope)


def _subscripted(kind: Any, origin: Any, arguments: tuple[Any, ...], scope: Scope) -> str:
    if origin is typing.Union:
        members = [argument for argument in arguments if argument is not type(None)]
        name = "Optional" if len(members) == 1 and len(arguments) == 2 else "Union"
        return f"{_from_typing(name, scope)}[{_joined(members if name == 'Optional' else arguments, scope)}]"
    if origin is typing.Literal:
        return f"{_from_typing('Literal', scope)}[{', '.join(map(scope.spell, arguments))}]"
    if origin is typing.Annotated:
        notes = ", ".join(map(scope.spell, arguments[1:]))
        return f"{_from_typing('Annotated', scope)}[{_written(arguments[0], scope)}, {notes}]"
    head = _typing_name(kind, scope) or scope.name_of(origin)
    return f"{head}[{_joined(arguments, scope) or '()'}]"


def _joined(kinds: Any, scope: Scope) -> str:
    return ", ".join(_written(kind, scope) for kind in kinds)


def _typing_name(kind: Any, scope: Scope) -> str | None:
    """``List`` for ``typing.List[int]``: aliases of typing keep their own name."""
    if type(kind).__module__ != "typing" and kind is not typing.Any:
        return None
    name = getattr(kind, "_name", None) or getattr(kind, "__name__", None)
    known = getattr(typing, name, None) if isinstance(name, str) else None
    if known is None or (known is not kind and typing.get_origin(known) is not typing.get_origin(kind)):
        return None
    return _from_typing(str(name), scope)


def _from_typing(name: str, scope: Scope) -> str:
    return scope.imported("typing", name, getattr(typing, name))
