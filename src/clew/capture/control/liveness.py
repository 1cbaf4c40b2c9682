"""Which variables of a function may still be read behind each of its branches and loops.

In come the statements of a function; out comes, for each ``if``, ``while`` and ``for`` among them, what may be read
after it, and for a loop what a round may read before it sets it. All is walked from the end to the beginning.
Always holds: a variable that is not named is not read before it is set again; when in doubt, it is named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from clew.capture.control.scopes import LOOPS, Variables, own_nodes

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
