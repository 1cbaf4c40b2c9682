"""Liveness: which variables of a function may still be read after each of its branches and loops.

In come the statements of a function; out come, for each ``if``, ``while`` and ``for``, the variables that may be read
after it, and for a loop those that a round may read before it sets them. Walked backwards. Always holds: a variable
that is not named is set before it is read again. Here too: which variables a block sets and reads, how it is left, and
``continue`` and ``return`` replaced by flags.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

Names = frozenset[str]
_NONE: Names = frozenset()
_DEFERRED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
"""What is read inside of these may be read at any later time."""
_BINDING = (ast.Assign, ast.AnnAssign)


class Liveness:
    """What is live behind the branches and loops of one function, and at the head of its loops."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.after: dict[ast.AST, Names] = {}
        self.again: dict[ast.AST, Names] = {}
        self.ever: dict[ast.AST, Names] = {}
        """For each loop what may be read even after it has left the function: by functions inside, or a ``finally``."""
        self._breaking = self._continuing = _NONE
        self._always = _read_later(body) | frozenset(Variables(body).outer)
        self._block(body, _NONE)

    def _block(self, body: Iterable[ast.stmt], live: Names) -> Names:
        """What is live before some statements."""
        for statement in reversed(list(body)):
            live = self._statement(statement, live | self._always)
        return live | self._always

    def _statement(self, node: ast.stmt, live: Names) -> Names:
        if isinstance(node, ast.If):
            self.after[node] = live
            return _read([node.test]) | self._block(node.body, live) | self._block(node.orelse, live)
        if isinstance(node, LOOPS):
            return self._loop(node, live)
        if isinstance(node, ast.Break):
            return self._breaking
        if isinstance(node, ast.Continue):
            return self._continuing
        if isinstance(node, (ast.Return, ast.Raise)):
            return _read([node])
        if isinstance(node, ast.Match):
            cases = [self._block(case.body, live) | _read([case.pattern, case.guard]) for case in node.cases]
            return live.union(_read([node.subject]), *cases)
        if isinstance(node, (ast.Try, ast.TryStar, ast.With)):
            return self._interrupted(node, live)
        set_here = Variables(_targets(node)).stored if isinstance(node, _BINDING) else _NONE
        return (live - set_here) | _read([node])

    def _loop(self, node: ast.While | ast.For, live: Names) -> Names:
        """Live at the head is what a round reads first, and what is read when no further one follows."""
        before = self._breaking, self._continuing
        self.ever[node] = self._always
        behind = self._block(node.orelse, live)
        self.after[node] = live | behind
        head = behind | _read([node.test] if isinstance(node, ast.While) else [])
        item = Variables([node.target]).stored if isinstance(node, ast.For) else _NONE
        parts = _read([node.target]) if isinstance(node, ast.For) else _NONE  # of ``for d[k] in``
        while True:
            self._breaking, self._continuing = live, head
            round_ = (self._block(node.body, head) - item) | parts | head
            if round_ == head:
                break
            head = round_
        self._breaking, self._continuing = before
        self.again[node] = head
        return head | _read([node.iter] if isinstance(node, ast.For) else []) | self._always

    def _interrupted(self, node: ast.Try | ast.TryStar | ast.With, live: Names) -> Names:
        """Statements that may be left at any point: all that is read behind that is live throughout."""
        parts: list[ast.AST] = [node]
        before, self._always = self._always, self._always | live | _read(parts) | self._breaking | self._continuing
        blocks = [node.body] if isinstance(node, ast.With) else [node.body, node.orelse, node.finalbody]
        blocks += [] if isinstance(node, ast.With) else [handler.body for handler in node.handlers]
        found = self._always.union(*[self._block(block, live) for block in blocks])
        self._always = before
        return found


def _read(nodes: Iterable[ast.AST | None]) -> Names:
    """The variables that are read, or must be there to be deleted."""
    present = [node for node in nodes if node is not None]
    deleted = {
        part.id for node in present for part in ast.walk(node) if isinstance(part, ast.Name) and _is_deleted(part)
    }
    return frozenset(Variables(present).loaded) | deleted


def _is_deleted(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Del)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    """What an assignment sets for sure."""
    if isinstance(node, ast.AnnAssign):
        return [] if node.value is None else [node.target]
    return node.targets


def _read_later(body: list[ast.stmt]) -> Names:
    """The variables that functions, classes and generators inside read: nobody knows when."""
    return _read([node for node in own_nodes(body) if isinstance(node, _DEFERRED)])


# ---- variables, and how a block is left ------------------------------------------------------------------------------

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


# ---- jumps replaced by flags -----------------------------------------------------------------------------------------


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
        if rest and _jumps_inside(node, ast.Continue):
            (node,) = _Flagging(flag).block([node])
            after = _skipping(flag, without_continues(rest, flag), node)
            return [*body[:place], _set(flag, ast.Constant(False), node), node, after]
    return body


def without_inner_returns(body: list[ast.stmt], flag: str, value: str) -> list[ast.stmt]:
    """A function in which a branch sets two variables where a branch inside of it returns, and returns are behind."""
    written: list[ast.stmt] = []
    for place, node in enumerate(body):
        if not _jumps_inside(node, ast.Return) or place == len(body) - 1 or _returns_at_end(node):
            written.append(node)
            continue
        (new,) = _Flagging(flag, value).block([node])
        leaving = ast.If(_at(ast.Name(flag, ast.Load()), node), [_returning(value, node)], [])
        written += [_set(flag, ast.Constant(False), node), _set(value, ast.Constant(None), node), new]
        written.append(ast.copy_location(leaving, node))
    return written


def _returns_at_end(node: ast.stmt) -> bool:
    """Whether one side of a branch ends with a return."""
    sides = [node.body, node.orelse] if isinstance(node, ast.If) else []
    return any(bool(side) and isinstance(side[-1], ast.Return) for side in sides)


def _returning(name: str, at: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Return(_at(ast.Name(name, ast.Load()), at)), at)


def _continues(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Continue)


def _jumps_inside(node: ast.stmt, kind: type[ast.stmt]) -> bool:
    """Whether a branch is left by a statement of this kind, which stands in branches alone: in no ``try``, say."""
    if not isinstance(node, ast.If):
        return False
    nodes = own_nodes([node]) if kind is ast.Return else _of_this_loop([node])
    count = sum(isinstance(one, kind) for one in nodes)
    return count > 0 and count == _in_branches([node], kind)


def _in_branches(body: list[ast.stmt], kind: type[ast.stmt]) -> int:
    """How many statements of a kind stand in branches alone."""
    sides = [side for node in body if isinstance(node, ast.If) for side in (node.body, node.orelse)]
    return sum(_in_branches(side, kind) for side in sides) + sum(isinstance(node, kind) for node in body)


class _Flagging:
    """Writes statements that set a variable where they were left by ``continue``; with another one for its ``value``,
    where they were left by ``return``. What would not have been reached stands behind a test of it."""

    def __init__(self, flag: str, value: str = "") -> None:
        self.flag = flag
        self.value = value
        self.kind: type[ast.stmt] = ast.Return if value else ast.Continue

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """New statements for some."""
        written: list[ast.stmt] = []
        for place, node in enumerate(body):
            rest = body[place + 1 :]
            if isinstance(node, self.kind):
                return [*written, *self._leaving(node)]
            if not rest and self._only_continues(node):
                return [*written, self._answered(node)]
            written.append(node)
            if isinstance(node, ast.If) and _in_branches([node], self.kind):
                node.body, node.orelse = (self.block(side) for side in (node.body, node.orelse))
                return [*written, _skipping(self.flag, self.block(rest), node)] if rest else written
        return written

    def _leaving(self, node: ast.stmt) -> list[ast.stmt]:
        left = [_set(self.flag, ast.Constant(True), node)]
        if isinstance(node, ast.Return) and node.value is not None:
            left.insert(0, _set(self.value, node.value, node))
        return left

    def _only_continues(self, node: ast.stmt) -> bool:
        return not self.value and isinstance(node, ast.If) and _continues(node.body[:1]) and not node.orelse

    def _answered(self, node: Any) -> ast.stmt:
        """The variable is what decides about a ``continue``."""
        chosen = ast.IfExp(node.test, _at(ast.Constant(True), node), _at(ast.Constant(False), node))
        return _set(self.flag, chosen, node)


def _set(name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    value = value if hasattr(value, "lineno") else _at(value, at)
    return ast.copy_location(ast.Assign([_at(ast.Name(name, ast.Store()), at)], value), at)


def _at(value: ast.expr, at: ast.stmt) -> ast.expr:
    return ast.copy_location(value, at)


def _skipping(flag: str, rest: list[ast.stmt], at: ast.stmt) -> ast.stmt:
    """A branch that goes on with the rest if a variable is not set."""
    test = _at(ast.Name(flag, ast.Load()), at)
    return ast.copy_location(ast.If(test, [ast.copy_location(ast.Pass(), at)], rest), at)


# ---- what a block contains -------------------------------------------------------------------------------------------


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
