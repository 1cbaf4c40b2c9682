"""Calls that Python writes as a statement: an attribute or an item is assigned or deleted.

``setattr``, ``delattr``, ``setitem`` and ``delitem`` are known here; another function that sets or deletes what a path
leads to from the root of a graph may register. A node comes in, out comes its statement; or None where the name of an
attribute could not stand in code, or would mean another one there: such a call stays a call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from clew.codegen.locals import is_plain_identifier, plain
from clew.codegen.scope import Scope, is_private
from clew.codegen.subscripts import subscript
from clew.ir.arguments import leaves
from clew.ir.node import Node

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


def _lookup(table: dict[Any, Any], function: Any) -> Any:
    try:
        return table.get(function)
    except TypeError:  # a callable without a hash cannot be in a table
        return None
