"""Attributes of modules read once, at the beginning of a call, instead of wherever bound code needs them.

The definition of bound code comes in, and is changed in place: a look into the dict of a module becomes a local. Out
come the statements that fill the locals; one of them raises ``KeyError`` where an attribute is gone. Only for code in
which no attribute becomes another object while it runs; what is written into a tensor is seen by all who hold it.
"""

from __future__ import annotations

import ast
from collections.abc import Collection


def read_once(definition: ast.FunctionDef, dicts: Collection[str], prefix: str, own: str) -> dict[str, list[str]]:
    """The statements that read what ``definition`` reads of these dicts, by the dict, which they call ``own``;
    ``definition`` has locals in their place afterwards."""
    reader = _Reader(dicts, prefix, own)
    definition.body = [reader.visit(statement) for statement in definition.body]
    return reader.statements


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

    def __init__(self, dicts: Collection[str], prefix: str, own: str) -> None:
        self.dicts = dicts
        self.prefix = prefix
        self.own = own
        self.locals: dict[str, str] = {}
        self.statements: dict[str, list[str]] = {}

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """``module["_parameters"]["weight"]`` as one name."""
        name = self._name(node) if isinstance(node.ctx, ast.Load) else None
        if name is None:
            self.generic_visit(node)
            return node
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def _name(self, node: ast.Subscript) -> str | None:
        """The local for what is read, which a statement fills; None for what is in none of the dicts."""
        holder, key = node.value, node.slice
        if not isinstance(key, ast.Constant):
            return None
        base = self._base(node)
        if base is None:
            return None
        read = ast.unparse(node)
        if read not in self.locals:
            within = self._name(holder) if isinstance(holder, ast.Subscript) else self.own
            self.locals[read] = f"{self.prefix}read{len(self.locals)}"
            self.statements.setdefault(base, []).append(f"{self.locals[read]} = {within}[{key.value!r}]")
        return self.locals[read]

    def _base(self, node: ast.expr) -> str | None:
        """The dict that a chain of subscripts starts at."""
        while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            node = node.value
        return node.id if isinstance(node, ast.Name) and node.id in self.dicts else None
