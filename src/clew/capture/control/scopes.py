"""The variables of a function as its source uses them: which a piece of it sets, which it reads, how it is left."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

LOOPS = (ast.While, ast.For)


class Variables(ast.NodeVisitor):
    """The variables that some statements set and read; those of functions and comprehensions inside are their own."""

    def __init__(self, nodes: Iterable[ast.AST]) -> None:
        self.stored: set[str] = set()
        self.loaded: Counter[str] = Counter()
        self.outer: dict[str, str] = {}
        for node in nodes:
            self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.loaded[node.id] += 1
        else:
            self.stored.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.loaded[node.target.id] += 1
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.outer |= dict.fromkeys(node.names, "global")

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.outer |= dict.fromkeys(node.names, "nonlocal")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.stored.add(node.name)
        self._inside(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.stored.add(node.name)
        self._inside(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inside(node)

    def _inside(self, node: ast.AST) -> None:
        """What is read inside of a function counts as read; what it sets with ``nonlocal`` as set."""
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                self.loaded[part.id] += 1
            elif isinstance(part, ast.Nonlocal):
                self.stored.update(part.names)

    def _comprehension(self, node: ast.AST) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                self.loaded[part.id] += 1
            elif isinstance(part, ast.NamedExpr):
                self.stored.add(part.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.stored |= {(one.asname or one.name).partition(".")[0] for one in node.names}

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.stored.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.stored.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.stored.add(node.rest)
        self.generic_visit(node)


def without_continues(body: list[ast.stmt], flag: str) -> list[ast.stmt]:
    """A round of a loop in which what follows a branch that ends with ``continue`` stands on its other side.

    What follows a branch with such a branch inside stands behind a test of the variable ``flag``.
    """
    for place, node in enumerate(body):
        if isinstance(node, ast.Continue):
            return body[:place] or [ast.copy_location(ast.Pass(), node)]
        rest = body[place + 1 :]
        if isinstance(node, ast.If) and (_continues(node.body) or _continues(node.orelse)):
            sides = [side if _continues(side) else [*side, *rest] for side in (node.body, node.orelse)]
            node.body, node.orelse = (without_continues(side, flag) for side in sides)
            return body[: place + 1]
        if isinstance(node, ast.If) and rest and (_may_continue(node.body) or _may_continue(node.orelse)):
            node.body, node.orelse = (_flagged(side, flag) for side in (node.body, node.orelse))
            after = _skipping(flag, without_continues(rest, flag), node)
            return [*body[:place], _set(flag, ast.Constant(False), node), node, after]
    return body


def _continues(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Continue)


def _may_continue(body: list[ast.stmt]) -> bool:
    """Whether a branch among some statements ends with ``continue``, and nothing else does: no ``try``, say."""
    found = [node for node in _of_this_loop(body) if isinstance(node, ast.Continue)]
    return bool(found) and len(found) == _in_branches(body)


def _in_branches(body: list[ast.stmt]) -> int:
    """How many ``continue`` stand in branches alone."""
    sides = [side for node in body if isinstance(node, ast.If) for side in (node.body, node.orelse)]
    return sum(map(_in_branches, sides)) + sum(isinstance(node, ast.Continue) for node in body)


def _flagged(body: list[ast.stmt], flag: str) -> list[ast.stmt]:
    """Statements that set a variable where they end with ``continue``, which is nowhere else."""
    written: list[ast.stmt] = []
    for place, node in enumerate(body):
        if isinstance(node, ast.Continue):
            return [*written, _set(flag, ast.Constant(True), node)]
        if place == len(body) - 1 and isinstance(node, ast.If) and _continues(node.body[:1]) and not node.orelse:
            chosen = ast.IfExp(node.test, _at(ast.Constant(True), node), _at(ast.Constant(False), node))
            return [*written, _set(flag, chosen, node)]
        written.append(node)
        if isinstance(node, ast.If) and _in_branches([node]):
            rest = body[place + 1 :]
            node.body, node.orelse = (_flagged(side, flag) for side in (node.body, node.orelse))
            return [*written, _skipping(flag, _flagged(rest, flag), node)] if rest else written
    return written


def _set(name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Assign([_at(ast.Name(name, ast.Store()), at)], _at(value, at)), at)


def _at(value: ast.expr, at: ast.stmt) -> ast.expr:
    return ast.copy_location(value, at)


def _skipping(flag: str, rest: list[ast.stmt], at: ast.stmt) -> ast.stmt:
    """A branch that goes on with the rest if a variable is not set."""
    test = _at(ast.Name(flag, ast.Load()), at)
    return ast.copy_location(ast.If(test, [ast.copy_location(ast.Pass(), at)], rest), at)


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of some statements, without those of functions and classes inside of them."""
    for node in nodes:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from own_nodes(ast.iter_child_nodes(node))


def returns(nodes: Iterable[ast.AST]) -> bool:
    """Whether some statements may leave the function."""
    return any(isinstance(node, ast.Return) for node in own_nodes(nodes))


def breaks(nodes: Iterable[ast.AST]) -> bool:
    """Whether some statements may leave the loop that they stand in."""
    return any(isinstance(node, ast.Break) for node in _of_this_loop(nodes))


def leaves_early(node: ast.If, rest: list[ast.stmt]) -> bool:
    """Whether a function ends on the one side of a branch, and goes on with the rest on the other; neither declares
    anything that would belong to another function then."""
    ends = bool(node.body) and isinstance(node.body[-1], ast.Return) and not node.orelse and bool(rest)
    return ends and not any(isinstance(one, _DECLARING) for one in own_nodes([*node.body, *rest]))


_DECLARING = (ast.Global, ast.Nonlocal, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def jumps(nodes: list[ast.stmt]) -> bool:
    """Whether some statements may be left otherwise than at their end."""
    return returns(nodes) or any(isinstance(node, (ast.Break, ast.Continue)) for node in _of_this_loop(nodes))


def _of_this_loop(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield node
        if isinstance(node, LOOPS):
            yield from _of_this_loop(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _of_this_loop(ast.iter_child_nodes(node))
