"""The inside of generated functions: the statements of a graph's nodes, in order, with their comments and frees.

The nodes of one function come in; out comes a ``Draft``: its parameters and its lines, each with the node it belongs
to. A graph among the arguments of a node is written as an inner function just before the statement that hands it over;
nodes between entering and leaving a context manager, as a ``with`` block; a check, as an ``if``. Locals are freed at
their last use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from clew.codegen.annotations import annotation
from clew.codegen.assignments import unread_roots
from clew.codegen.blocks import Blocks
from clew.codegen.checks import inlined_into, is_check, is_entry_check, shown_check, write_check
from clew.codegen.control import ControlWriter, among
from clew.codegen.finish import Finish, Return, Returning
from clew.codegen.lines import Draft, Line, line_of
from clew.codegen.raises import is_raise
from clew.codegen.reading import inlined_for_reading, renamed_for_reading, wrapped
from clew.codegen.statements import expression, statement
from clew.errors import CodegenError
from clew.ir.arguments import bodies_of
from clew.ir.node import Node


class Writer(ControlWriter):
    """Writes the functions of one piece of code, inner ones included; attributes are read from the name ``root``."""

    def lines_of(self, node: Node, text: str) -> list[Line]:
        """A statement with its comments; in code for people a long call stands in several lines."""
        return super().lines_of(node, wrapped(text) if self.comments.shown else text)

    def function(self, nodes: Any, returning: Returning) -> Draft:
        """The parameters and the lines of the function over ``nodes``."""
        draft = Draft()
        draft.lines = self.block(nodes, Return(returning), draft)
        last = next(iter(reversed(nodes)), None)
        if last is not None and last.op == "output" and last.type is not None:
            draft.returns = f" -> {annotation(last.type, self.scope)}"
        return draft

    def block(self, nodes: Any, finish: Finish, draft: Draft | None = None) -> list[Line]:
        """The statements of a function, or of a part of it that ``finish`` ends."""
        nodes = nodes if isinstance(nodes, list) else list(nodes)
        blocks, frees = self.plan.blocks, self.plan.frees
        checks = {node: inlined_into(node, self.plan.bound) for node in nodes if not node.users and is_check(node)}
        roots = unread_roots(nodes)
        skipped = self.skipped(nodes, finish).union(roots, *checks.values())
        around = (blocks.ends, blocks.closing, blocks.watched)
        special = among(nodes, *around, checks, self.plan.layouts, self.plan.handing, skipped)
        if self.comments.inline:
            ends = [node for node in nodes if node.op == "output" and draft is None]
            inlined = inlined_for_reading(nodes, {*special, *ends}, self.scope, self.root)
            skipped |= inlined
            special |= inlined
            if draft is not None and not self.plan.layouts:
                renamed_for_reading(nodes, inlined, self.plan.silent, self.scope, self.root)
        lines: list[Line] = []
        outside: list[list[Line]] = []
        watched: list[Node] = []
        for node in nodes:
            if node not in special:
                lines += self._plain(node, draft, finish, roots)
            elif node in blocks.ends:
                lines += self._head_of_block(node, blocks)
                outside.append(lines)
                lines = list(self.free(node, frees.get(node.args[0], []) if node.args[0] in blocks.inline else []))
            elif node in blocks.watched:
                lines += self._head_of_watched(node, blocks)
                outside.append(lines)
                lines = []
                watched.append(node)
            elif node in blocks.closing:
                inside, lines = lines, outside.pop()
                lines += [line.indented() for line in inside or [Line("pass", node, node)]]
                lines += self.free(node, [used for used in frees.get(node, []) if used not in blocks.inline])
            elif node in checks:
                lines += self._check(node, checks[node], frees)
            elif node in self.plan.layouts:
                lines += self.control(node, finish)
            elif node not in skipped:
                lines += self._inner_functions(node) if node.op != "placeholder" else ()
                lines += self._plain(node, draft, finish, roots)
        for node in reversed(watched):
            lines = [*outside.pop(), *self._watching(node, lines)]
        return lines

    def _head_of_watched(self, node: Node, blocks: Blocks) -> Iterable[Line]:
        """What begins a block that is left inside a branch."""
        is_whole = node in blocks.whole
        self.left[self.scope.locals.name(node.args[0])] = None if is_whole else 0
        if is_whole:
            return self._head_of_block(node, blocks)
        return (Line(statement(node, self.scope, self.root), node, node),)

    def _leaving(self, node: Node, local: str, freed: list[Node]) -> list[Node]:
        """What is set free with a call of ``__exit__``: the context manager as well if it is watched."""
        if local not in self.left:
            return freed
        self.left[local] = (self.left[local] or 0) + 1
        return freed if local in map(self.scope.locals.name, freed) else [*freed, node.args[0]]

    def _watching(self, node: Node, inside: list[Line]) -> Iterator[Line]:
        """Statements in which a context manager is left; if an error comes first, it is left then."""
        local = self.scope.locals.name(node.args[0])
        count = self.left.pop(local)
        if not count:
            yield from inside if count == 0 else (line.indented() for line in inside)
            return
        yield Line("try:", node, node)
        yield from (line.indented() for line in inside)
        yield Line("finally:", node, node)
        yield Line(f"if {local} is not None:", node, node).indented()
        yield Line(f"{local}.__exit__(None, None, None)", node, node).indented().indented()

    def _check(self, node: Node, inlined: list[Node], frees: dict[Node, list[Node]]) -> Iterator[Line]:
        """An ``if`` with the call that raises, then the locals that the two were the last to use."""
        if self.comments.shown:
            yield from self.lines_of(node, shown_check(node, inlined, self.scope, self.root))
            return
        test, call = write_check(node, inlined, self.scope, self.root, self.comments.asking)
        yield from self.lines_of(node, test)
        yield Line(call, node, node).indented()
        if is_entry_check(node):  # what it reads are inputs, which the caller holds
            return
        used = [value for part in (*reversed(inlined), node) for value in frees.get(part, [])]
        yield from self.free(node, [value for value in used if value not in inlined])

    def _plain(self, node: Node, draft: Draft | None, finish: Finish, roots: set[Node]) -> Iterable[Line]:
        """A statement on its own, with the locals that it sets free: all but the ``roots``, which have no locals."""
        op = node.op
        if op == "output":
            return self.end(node, finish)
        if op == "placeholder":
            assert draft is not None
            text = self._parameter(node, draft)
            if text is None:
                return ()
        else:
            text = statement(node, self.scope, self.root)
        freed = self.plan.frees.get(node)
        if self.left and node.target == "__exit__":
            local = self.scope.locals.name(node.args[0])
            if self.left.get(local) is None and local in self.left:
                return self.free(node, [used for used in freed or [] if used is not node.args[0]])
            freed = self._leaving(node, local, freed or [])
        if freed and (node.users or not is_raise(node)):
            text += self.freeing([used for used in freed if used not in roots] if roots else freed)
        if self.comments.verbose or self.comments.modules or "\n" in text:
            return self.lines_of(node, text)
        return (line_of(text, node),)

    def _head_of_block(self, node: Node, blocks: Blocks) -> Iterator[Line]:
        """The ``with`` for a call of ``__enter__``."""
        manager = node.args[0]
        if manager in blocks.inline:
            yield from self._inner_functions(manager)
        text = expression(manager, self.scope, self.root) if manager in blocks.inline else self.scope.spell(manager)
        local = f" as {self.scope.locals.name(node)}" if node.users else ""
        yield from self.lines_of(node, f"with {text}{local}:")

    def _parameter(self, node: Node, draft: Draft) -> str | None:
        """Note a parameter of the function; the line that renames it, if the node bears another name."""
        scope = self.scope
        stars, name = scope.locals.parameters[node]
        if stars in draft.stars:
            raise CodegenError(f"node {node.name} is a second {stars}{name}", why="a Python function can have only one")
        draft.stars |= {stars} - {""}
        kind = "" if node.type is None else f" : {annotation(node.type, scope)}"
        kind = self.comments.parameter_annotation(node) or kind
        equals = " = " if kind else scope.equals
        default = "" if not node.args or stars else f"{equals}{scope.spell(node.args[0])}"
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
