"""Calls that Python writes as ``raise``: of a function that raises an error of the class that it is given.

A function may register; a call of it is a statement, and nothing that stands behind it in its block can run. Another
one that makes the text of the error, of a template and values, is written inside of the statement, as an f-string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from clew.codegen.scope import Scope
from clew.ir.node import Node

_raising: list[Callable[..., Any]] = []
_saying: list[Callable[..., Any]] = []
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def written_as_raise(function: Callable[..., Any]) -> None:
    """Let ``function(kind, *args)`` be written as ``raise kind(*args)``."""
    _raising.append(function)


def written_as_text(function: Callable[..., Any]) -> None:
    """Let ``function(template, *values)`` be written as ``f"..."`` in a ``raise``."""
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
        scope.write_inline(said, _formatted(said, scope), False)
    return f"raise {scope.spell(kind)}({', '.join(map(scope.spell, args))})"


def texts_inside(node: Node) -> list[Node]:
    """The text that a raise is given, if it is made for it alone, right before it."""
    said = node._prev
    if not is_raise(node) or list(said.users) != [node] or said.op != "call_function" or said.kwargs:
        return []
    if sum(one is said for one in node.args) != 1 or not any(said.target is one for one in _saying):
        return []
    template, *values = said.args
    fields = [found for found in _FIELD.finditer(template) if found[1] is not None]
    return [said] if len(fields) == len(values) and all(map(_is_bare, values)) else []


def _is_bare(value: Any) -> bool:
    """Whether a value is written without quotes, which must not stand in an f-string."""
    return all(map(_is_bare, value)) if type(value) is tuple else isinstance(value, (Node, int))


def _formatted(node: Node, scope: Scope) -> str:
    """The f-string of a template and its values, which are variables."""
    values = iter(node.args[1:])

    def filled(found: re.Match[str]) -> str:
        return found[0] if found[1] is None else f"{{{scope.spell(next(values))}{found[1]}}}"

    return f"f{_FIELD.sub(filled, node.args[0])!r}"


def raises(body: Any) -> bool:
    """Whether a body never comes to its end, because it raises an error."""
    last = body._root._prev
    return last.op == "output" and is_raise(last._prev)
