"""Attributes of modules read once, at the beginning of a call, instead of wherever bound code needs them.

The definition of bound code comes in, and is changed in place: a look into the dict of a module becomes a local. Out
come the statements that fill the locals; one of them raises ``KeyError`` where an attribute is gone. Only for code in
which no attribute becomes another object while it runs; what is written into a tensor is seen by all who hold it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection


def read_once(definition: ast.FunctionDef, dicts: Collection[str], prefix: str) -> list[ast.stmt]:
    """The statements that read what ``definition`` reads of these dicts; it has locals in their place afterwards."""
    reader = _Reader(dicts, prefix)
    definition.body = [reader.visit(statement) for statement in definition.body]
    return [_filled(name, read, definition) for read, name in reader.found.items()]


def _filled(name: str, read: str, place: ast.AST) -> ast.stmt:
    (statement,) = ast.parse(f"{name} = {read}").body
    for node in ast.walk(statement):
        ast.copy_location(node, place)
    return statement


class OuterStatements(ast.NodeTransformer):
    """Changes a function, but not the functions and comprehensions inside of it: a name that is bound there is theirs,
    and what they share with the function around them is slower than a dict."""

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Stays as it is."""
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        """The same."""
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """The same, and for all that is written like it."""
        return node

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # type: ignore[assignment]


class _Reader(OuterStatements):
    """Puts locals in the place of reads, and notes what they stand for."""

    def __init__(self, dicts: Collection[str], prefix: str) -> None:
        self.dicts = dicts
        self.prefix = prefix
        self.found: dict[str, str] = {}

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """``module["_parameters"]["weight"]`` as one name."""
        if not isinstance(node.ctx, ast.Load) or not self._is_read(node):
            self.generic_visit(node)
            return node
        holder = ast.unparse(node.value)
        if isinstance(node.value, ast.Subscript):
            holder = self._name(holder)
        return ast.copy_location(ast.Name(self._name(f"{holder}[{ast.unparse(node.slice)}]"), ast.Load()), node)

    def _is_read(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            node = node.value
            if isinstance(node, ast.Name) and node.id in self.dicts:
                return True
        return False

    def _name(self, read: str) -> str:
        return self.found.setdefault(read, f"{self.prefix}read{len(self.found)}")
