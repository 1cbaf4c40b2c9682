"""The inside of generated functions: the statements of a graph's nodes, in order, with their comments and frees.

The nodes of one function come in; out comes a ``Draft``: its parameters and its lines, each with the node it belongs
to. A graph among the arguments of a node is written as an inner function just before the statement that hands it over;
nodes between entering and leaving a context manager, as a ``with`` block; a check, as an ``if``. Locals are freed at
their last use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew.codegen.annotations import annotation
from clew.codegen.assignments import unread_roots
from clew.codegen.blocks import Blocks, blocks_of
from clew.codegen.checks import inlined_into, is_check, write_check
from clew.codegen.comments import Commentator
from clew.codegen.scope import Scope
from clew.codegen.statements import expression, statement
from clew.errors import CodegenError
from clew.ir.interpreter import last_uses
from clew.ir.nested import bodies_of
from clew.ir.node import Node

_INDENT = "    "
Returning = Callable[[Any], str]
"""How a function writes its return statement for the value of the output node."""


class Line(NamedTuple):
    """A line of code, indented as it is inside its function, and the node of the function's graph that it is for.

    A line of an inner function comes from a node of the inner graph, its ``origin``; any other from ``node`` itself.
    """

    text: str
    node: Node
    origin: Node

    @property
    def is_inner(self) -> bool:
        """True for a line of an inner function."""
        return self.origin is not self.node

    def indented(self) -> Line:
        """The line one step further to the right."""
        return self._replace(text=f"{_INDENT}{self.text}") if self.text else self


@dataclass
class Draft:
    """What is known of a function while it is written."""

    parameters: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    returns: str = ""
    keywords: list[str] = field(default_factory=list)
    rest: str = ""
    has_default: bool = False
    nameless: int = 0
    stars: set[str] = field(default_factory=set)

    def add_parameter(self, text: str, default: str, keyword_only: bool) -> None:
        """Note a parameter where Python wants it: positional ones, ``*args``, keyword-only ones, ``**kwargs``."""
        # A parameter without a default cannot follow one with a default, but for ``*args``.
        misplaced = self.has_default and not default and text[0] != "*"
        if text.startswith("**"):
            self.rest = text
        elif keyword_only or misplaced:
            self.keywords.append(text + default)
        else:
            self.has_default = self.has_default or bool(default)
            self.parameters.append(text + default)

    def signature(self) -> list[str]:
        """All parameters in order; the first ``nameless`` ones can only be passed by position."""
        has_star = any(text.startswith("*") for text in self.parameters)
        star = ["*"] if self.keywords and not has_star else []
        first = [*self.parameters[: self.nameless], "/"] if self.nameless else []
        return [*first, *self.parameters[self.nameless :], *star, *self.keywords, *([self.rest] if self.rest else [])]


class Writer:
    """Writes the functions of one piece of code, inner ones included; attributes are read from the name ``root``."""

    def __init__(self, scope: Scope, root: str, comments: Commentator) -> None:
        self.scope = scope
        self.root = root
        self.comments = comments

    def function(self, nodes: Any, returning: Returning) -> Draft:
        """The parameters and the lines of the function over ``nodes``."""
        draft = Draft()
        blocks = blocks_of(nodes)
        frees = last_uses(nodes)
        checks = {node: inlined_into(node) for node in nodes if is_check(node)}
        roots = unread_roots(nodes)
        skipped = blocks.inline.union(roots, *checks.values())
        lines, outside = draft.lines, []
        for node in nodes:
            if node in blocks.ends:
                lines += self._head_of_block(node, blocks)
                outside.append(lines)
                lines = list(self._free(node, frees.get(node.args[0], []) if node.args[0] in blocks.inline else []))
            elif node in blocks.closing:
                inside, lines = lines, outside.pop()
                lines += [line.indented() for line in inside or [Line("pass", node, node)]]
                lines += self._free(node, [used for used in frees.get(node, []) if used not in blocks.inline])
            elif node in checks:
                lines += self._check(node, checks[node], frees)
            elif node not in skipped:
                lines += self._plain(node, draft, returning, [one for one in frees.get(node, ()) if one not in roots])
        return draft

    def _check(self, node: Node, inlined: list[Node], frees: dict[Node, list[Node]]) -> Iterator[Line]:
        """An ``if`` with the call that raises, then the locals that the two were the last to use."""
        test, call = write_check(node, inlined, self.scope, self.root)
        yield from self._lines(node, test)
        yield Line(call, node, node).indented()
        used = [value for part in (*reversed(inlined), node) for value in frees.get(part, [])]
        yield from self._free(node, [value for value in used if value not in inlined])

    def _plain(self, node: Node, draft: Draft, returning: Returning, freed: list[Node]) -> Iterator[Line]:
        """A statement on its own, after the functions that it hands over, with the locals that it sets free."""
        if node.op != "placeholder":
            yield from self._inner_functions(node)
        text = self._statement(node, draft, returning)
        if text is not None and freed and node.op != "output":
            text += f";  {self._freeing(freed)}"
        if text is not None:
            yield from self._lines(node, text)

    def _head_of_block(self, node: Node, blocks: Blocks) -> Iterator[Line]:
        """The ``with`` for a call of ``__enter__``."""
        manager = node.args[0]
        if manager in blocks.inline:
            yield from self._inner_functions(manager)
        text = expression(manager, self.scope, self.root) if manager in blocks.inline else self.scope.spell(manager)
        local = f" as {self.scope.locals.name(node)}" if node.users else ""
        yield from self._lines(node, f"with {text}{local}:")

    def _free(self, node: Node, freed: list[Node]) -> Iterator[Line]:
        if freed:
            yield Line(self._freeing(freed), node, node)

    def _freeing(self, freed: list[Node]) -> str:
        return f"{' = '.join(map(self.scope.locals.name, freed))} = None"

    def _statement(self, node: Node, draft: Draft, returning: Returning) -> str | None:
        if node.op == "placeholder":
            return self._parameter(node, draft)
        if node.op == "output":
            if node.type is not None:
                draft.returns = f" -> {annotation(node.type, self.scope)}"
            return returning(node.args[0] if node.args else None)
        return statement(node, self.scope, self.root)

    def _lines(self, node: Node, text: str) -> Iterator[Line]:
        """A statement with its comments."""
        for written in self.comments.around(node, self.scope.locals.name(node), text):
            yield from (Line(line, node, node) for line in written.split("\n"))

    def _parameter(self, node: Node, draft: Draft) -> str | None:
        """Note a parameter of the function; the line that renames it, if the node bears another name."""
        scope = self.scope
        stars, name = scope.locals.parameters[node]
        if stars in draft.stars:
            raise CodegenError(f"node {node.name} is a second {stars}{name}", why="a Python function can have only one")
        draft.stars |= {stars} - {""}
        default = "" if not node.args or stars else f" = {scope.spell(node.args[0])}"
        kind = "" if node.type is None else f" : {annotation(node.type, scope)}"
        kind = self.comments.parameter_annotation(node) or kind
        draft.add_parameter(f"{stars}{name}{kind}", default, bool(node.kwargs.get("keyword_only")))
        if node.kwargs.get("positional_only"):
            draft.nameless = len(draft.parameters)
        local = scope.locals.name(node)
        return None if name == local else f"{local} = {name}"

    def _inner_functions(self, node: Node) -> Iterator[Line]:
        """The functions that ``node`` hands over for its graphs: the placeholders of a graph in, its output out."""
        named = [(body, self.scope.names.create_name(f"{node.name}_body")) for body in bodies_of(node)]
        for body, name in named:
            draft = self.function(body.nodes, lambda value: f"return {self.scope.spell(value)}")
            yield Line(f"def {name}({', '.join(draft.signature())}){draft.returns}:", node, node)
            for line in draft.lines or [Line("pass", node, node)]:
                yield line.indented()._replace(node=node)
        # Only now, because one of them may have handed another one over by a name of its own.
        for body, name in named:
            self.scope.name_body(body, name)
