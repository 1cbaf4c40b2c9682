"""The new body of a function whose loops, branches and conditions are handed to a runtime.

A definition of the user's comes in; out come the statements of its new body, in which each body of a loop or branch is
a function of its own and what it assigns is ``nonlocal``. ``break``, ``continue`` and ``return`` inside of a body
become what the body returns. The definition itself is not changed.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator
from typing import Any

from clew.capture.control.liveness import Liveness
from clew.capture.control.raising import escaped
from clew.capture.control.scopes import (
    LOOPS,
    Variables,
    breaks,
    jumps,
    leaves_early,
    own_nodes,
    returns,
    without_continues,
    without_inner_returns,
)
from clew.capture.control.sight import Functions, Sight

RUNTIME = "the runtime of clew's control flow"
"""A constant in the new code, for which the runtime itself is put."""
OWN = "clew_"
"""How the names of functions begin that stand for bodies."""


def bare(given: ast.arguments | None) -> ast.arguments:
    """Parameters by name alone: their defaults and annotations are the function's, not its code's."""
    if given is None:
        return ast.arguments([], [], None, [], [], None, [])
    plain = [[ast.arg(one.arg) for one in part] for part in (given.posonlyargs, given.args, given.kwonlyargs)]
    starred = [None if one is None else ast.arg(one.arg) for one in (given.vararg, given.kwarg)]
    return ast.arguments(plain[0], plain[1], starred[0], plain[2], [None] * len(plain[2]), starred[1], [])


def _names(word: str, first: int = 0) -> Iterator[str]:
    """Names for a variable that the source does not have."""
    return (f"{word}_{number}" if number else word for number in itertools.count(first))


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _runtime(method: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Constant(RUNTIME), method, ast.Load()), list(args), [])


def _flag(value: Any) -> ast.Constant:
    return ast.Constant(bool(value))


def _texts(names: set[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(name) for name in sorted(names)], ast.Load())


class BodyWriter(ast.NodeTransformer):
    """Writes the new body of one function."""

    def __init__(self, definition: Any, functions: Functions) -> None:
        self.count = 0
        self.functions = functions
        self.inside = ""  # of which kind of body the statement at hand is a part: "", "loop" or "branch"
        body = [definition.body] if isinstance(definition, ast.Lambda) else definition.body
        self.variables = Variables(body)
        self.first = next((one.arg for one in (*definition.args.posonlyargs, *definition.args.args)), "")
        self.shared: set[str] = set()
        self.rounds: list[ast.stmt] = []
        """The functions that the comprehensions of the body at hand call for each item."""
        self.sight = Sight([])
        self.says = False  # whether the expression at hand is a part of a ``raise``

    def body_of(self, definition: Any) -> list[ast.stmt]:
        """The new body: all variables that some inner body sets are set in the function itself too."""
        if isinstance(definition, ast.Lambda):
            parts: list[Any] = [copy_of(definition.body)]
            self.sight = Sight([ast.Return(parts[0])], self.functions)
            body: list[ast.stmt] = [ast.Return(self.visit(parts[0]), lineno=definition.lineno)]
        else:
            parts = [copy_of(one) for one in definition.body]
            taken = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
            for place, loop in enumerate([node for node in own_nodes(parts) if isinstance(node, LOOPS)]):
                flag = next(name for name in _names("skip", place) if name not in taken)
                loop.body = without_continues(loop.body, flag)
            flag, value = (next(name for name in _names(word) if name not in taken) for word in ("left", "result"))
            parts = without_inner_returns(parts, flag, value)
            self.liveness = Liveness(parts)
            self.sight = Sight(parts, self.functions)
            body = self._block(parts, is_whole=True)
        body = [*self.rounds, *body]
        own = sorted(self.shared - self.variables.outer.keys())
        if own:
            names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in own]
            body.insert(0, ast.If(ast.Constant(False), [ast.Assign(names, ast.Constant(None))], []))
        outer = [one for one in body if isinstance(one, (ast.Global, ast.Nonlocal))]
        return [*outer, *(one for one in body if one not in outer)]

    def _block(self, body: list[ast.stmt], is_whole: bool = False) -> list[ast.stmt]:
        """New statements for some; with those of a ``whole`` function it ends."""
        written: list[ast.stmt] = []
        for place, statement in enumerate(body):
            if is_whole and isinstance(statement, ast.If) and leaves_early(statement, body[place + 1 :]):
                return [*written, *self._leave(statement, body[place + 1 :])]
            new = self.visit(statement)
            written += new if isinstance(new, list) else [new]
        return written

    def _number(self) -> int:
        self.count += 1
        return self.count

    # ---- pieces that become functions ----------------------------------------------------------------------------

    def _function(self, name: str, body: list[ast.stmt], at: ast.AST, item: str = "") -> ast.FunctionDef:
        """A function inside the function, for a body that has been written already."""
        names = Variables(body).stored
        outer = {name for name in names if self.variables.outer.get(name) == "global"}
        own = {one for one in names - outer - {item} if not one.startswith(OWN)}
        self.shared |= own
        head: list[ast.stmt] = [ast.Global(sorted(outer))] if outer else []
        head += [ast.Nonlocal(sorted(own))] if own else []
        arguments = ast.arguments([], [ast.arg(item)] if item else [], None, [], [], None, [])
        made = ast.FunctionDef(name, arguments, [*head, *body] or [ast.Pass()], [], None)
        return ast.copy_location(made, at)

    def _names(self, node: ast.If | ast.While | ast.For, parts: list[ast.AST]) -> list[ast.expr]:
        """The variables that a piece sets, and those of them that are read after it.

        Of a loop also those that are read in a next round too, and those that nobody reads after a return.
        """
        stored = {name for name in Variables(parts).stored if self.variables.outer.get(name) != "global"}
        found = [stored, stored & self.liveness.after[node]]
        if not isinstance(node, ast.If):
            found += [
                stored & self.liveness.again[node],
                stored - self.liveness.ever[node] - self.variables.outer.keys(),
            ]
        return [*map(_texts, found)]

    def _inner(self, kind: str, body: list[ast.stmt]) -> list[ast.stmt]:
        before, self.inside = self.inside, kind
        try:
            return self._block(body)
        finally:
            self.inside = before

    def visit_While(self, node: ast.While) -> Any:
        number, names = self._number(), self._names(node, [node.test, *node.body])
        result = f"{OWN}loop_{number}"
        has_return, has_break = returns(node.body), breaks(node.body)
        test = self._function(f"{OWN}test_{number}", [ast.Return(self._truth(node.test))], node)
        body = self._function(f"{OWN}body_{number}", self._inner("loop", node.body), node)
        call = _runtime(
            "while_", ast.Constant(number), _load(test.name), _load(body.name), *names, _flag(node.orelse and has_break)
        )
        start = ast.Assign([ast.Name(result, ast.Store())], call)
        return self._located([test, body, start, *self._after(result, node.orelse, has_return, has_break)], node)

    def visit_For(self, node: ast.For) -> Any:
        number, names = self._number(), self._names(node, [node.target, *node.body])
        result, item = f"{OWN}loop_{number}", f"{OWN}item"
        has_return, has_break = returns(node.body), breaks(node.body)
        iterable = self.visit(node.iter)
        taken = ast.copy_location(ast.Assign([node.target], _load(item)), node)
        body = self._function(f"{OWN}body_{number}", [taken, *self._inner("loop", node.body)], node, item)
        call = _runtime(
            "for_",
            ast.Constant(number),
            _iterated(iterable),
            _load(body.name),
            *names,
            _flag(node.orelse and has_break),
            _texts(self.sight.names.get(node, set())),
            _texts(self.sight.chains.get(node, set())),
        )
        start = ast.Assign([ast.Name(result, ast.Store())], call)
        return self._located([body, start, *self._after(result, node.orelse, has_return, has_break)], node)

    def _after(self, result: str, orelse: list[ast.stmt], has_return: bool, has_break: bool) -> list[ast.stmt]:
        """What follows a loop: the return that it ended with, and its ``else``."""
        written: list[ast.stmt] = []
        if has_return:
            value = self._leaving(ast.Attribute(_load(result), "value", ast.Load()))
            written.append(ast.If(ast.Attribute(_load(result), "returned", ast.Load()), [value], []))
        if orelse and has_break:
            finished = ast.UnaryOp(ast.Not(), ast.Attribute(_load(result), "broke", ast.Load()))
            written.append(ast.If(finished, self._block(orelse), []))
        elif orelse:
            written += self._block(orelse)
        return written

    def visit_If(self, node: ast.If) -> Any:
        if jumps([*node.body, *node.orelse]):
            node.test, test = ast.Constant(True), self._truth(node.test)
            self.generic_visit(node)
            node.test = test
            return node
        if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            node.test, node.body, node.orelse = node.test.operand, node.orelse, node.body
        number, names = self._number(), self._names(node, [*node.body, *node.orelse])
        test = self._truth(node.test)
        then = self._function(f"{OWN}then_{number}", self._inner("branch", node.body), node)
        other = self._function(f"{OWN}else_{number}", self._inner("branch", node.orelse), node)
        call = _runtime("if_", ast.Constant(number), test, _load(then.name), _load(other.name), *names)
        return self._located([then, other, ast.Expr(call)], node)

    def _leave(self, node: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
        """A branch with which the function ends: what follows it is its other side."""
        names = {name for name in Variables([*node.body, *rest]).stored if self.variables.outer.get(name) != "global"}
        number, test = self._number(), self._truth(node.test)
        then = self._function(f"{OWN}then_{number}", self._block(node.body, is_whole=True), node)
        other = self._function(f"{OWN}else_{number}", self._block(rest, is_whole=True), node)
        call = _runtime("leave", ast.Constant(number), test, _load(then.name), _load(other.name), _texts(names))
        return self._located([then, other, ast.Return(call)], node)

    # ---- errors --------------------------------------------------------------------------------------------------

    def visit_Assert(self, node: ast.Assert) -> Any:
        """An ``assert`` is a branch that raises."""
        kind = ast.Attribute(ast.Constant(RUNTIME), "ASSERTION_ERROR", ast.Load())
        error = kind if node.msg is None else ast.Call(kind, [node.msg], [])
        raised = ast.copy_location(ast.Raise(error), node)
        branch = ast.copy_location(ast.If(node.test, [ast.copy_location(ast.Pass(), node)], [raised]), node)
        self.liveness.after[branch] = frozenset()  # neither side sets anything
        return self.visit_If(branch)

    def visit_Raise(self, node: ast.Raise) -> Any:
        """What an error says may be made of values."""
        before, self.says = self.says, True
        try:
            return self.generic_visit(node)
        finally:
            self.says = before

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """A text in a ``raise`` is put together by the runtime, if values stand in it as simply as they can."""
        fields = _fields_of(node) if self.says and not _binds(node) else None
        if fields is None:
            return self.generic_visit(node)
        values = [self.visit(part.value) for part in node.values if isinstance(part, ast.FormattedValue)]
        pieces = ast.Tuple([ast.Constant(piece) for piece in fields], ast.Load())
        return ast.copy_location(_runtime("text", pieces, *values), node)

    # ---- leaving -------------------------------------------------------------------------------------------------

    def visit_Return(self, node: ast.Return) -> Any:
        value = self.visit(node.value) if node.value is not None else ast.Constant(None)
        return ast.copy_location(self._leaving(value), node)

    def _leaving(self, value: ast.expr) -> ast.Return:
        return ast.Return(_runtime("returned", value) if self.inside == "loop" else value)

    def visit_Break(self, node: ast.Break) -> Any:
        if self.inside != "loop":
            return node
        return ast.copy_location(ast.Return(ast.Attribute(ast.Constant(RUNTIME), "BREAK", ast.Load())), node)

    def visit_Continue(self, node: ast.Continue) -> Any:
        return ast.copy_location(ast.Return(ast.Constant(None)), node) if self.inside == "loop" else node

    # ---- expressions ---------------------------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if _binds(node):
            return node
        if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not):
            node.test, node.body, node.orelse = node.test.operand, node.orelse, node.body
        number, test = self._number(), self._truth(node.test)
        sides = [self._lambda(self.visit(part)) for part in (node.body, node.orelse)]
        return ast.copy_location(_runtime("choose", ast.Constant(number), test, *sides), node)

    def _truth(self, node: ast.expr) -> Any:
        """An expression of which only the truth is asked."""
        if isinstance(node, ast.BoolOp) and not _binds(node):
            return self._joined(node, [self._truth(part) for part in node.values], ("all_", "any_"))
        return self.visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return node if _binds(node) else self._joined(node, [self.visit(part) for part in node.values], ("and_", "or_"))

    def _joined(self, node: ast.BoolOp, values: list[ast.expr], kinds: tuple[str, str]) -> Any:
        kind = kinds[0] if isinstance(node.op, ast.And) else kinds[1]
        made = values[-1]
        for value in reversed(values[:-1]):
            made = _runtime(kind, ast.Constant(self._number()), value, self._lambda(made))
        return ast.copy_location(made, node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if _is_in_group(node) and not _binds(node):
            asked = _runtime("contained", ast.Constant(self._number()), node.left, node.comparators[0])
            return ast.copy_location(asked if isinstance(node.ops[0], ast.In) else _runtime("not_", asked), node)
        if len(node.ops) == 1 or _binds(node):
            return node
        names = ast.Tuple([ast.Constant(type(one).__name__) for one in node.ops], ast.Load())
        rest = [self._lambda(part) for part in node.comparators]
        return ast.copy_location(_runtime("compare", ast.Constant(self._number()), names, node.left, *rest), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.Not):
            return self.generic_visit(node)
        return ast.copy_location(_runtime("not_", self._truth(node.operand)), node)

    def visit_Call(self, node: ast.Call) -> Any:
        """``super()`` needs to be told what it sees by itself in a method; a list in sight may have any length."""
        in_sight, unpacks = node in self.sight.lists, _flag(node in self.sight.unpacked)
        gives_parts = node in self.sight.parted
        place, walks = self.sight.groups.get(node), node in self.sight.walks
        self.generic_visit(node)
        if walks:
            return ast.copy_location(_runtime("walk", node.func, *node.args), node)
        if place is not None:
            items = _iterated(node.args[0])
            return ast.copy_location(_runtime("grouped", node.func, items, node.args[1], ast.Constant(place)), node)
        if node in self.sight.copied:
            return ast.copy_location(_runtime("copied", node.func, *node.args), node)
        if in_sight or gives_parts:
            self._number()  # so that the function counts as one with something to hand to the runtime
            array: Any = node.func.value  # type: ignore[attr-defined]
            return ast.copy_location(_runtime("listed", array, unpacks, _flag(gives_parts)), node)
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords
        if is_super and self.first:
            node.args = [_load("__class__"), _load(self.first)]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """A list that is repeated and stays in sight may have any length."""
        repeats = node in self.sight.repeats
        self.generic_visit(node)
        return ast.copy_location(_runtime("repeated", node.left, node.right), node) if repeats else node

    def visit_ListComp(self, node: Any) -> Any:
        """A comprehension whose list stays in sight is a loop that appends."""
        if node not in self.sight.comprehensions:
            return self.generic_visit(node)
        number, generator = self._number(), node.generators[0]
        iterable = _iterated(self.visit(generator.iter))
        found, item, outside = f"{OWN}found_{number}", f"{OWN}item", self.rounds
        self.rounds = []
        appended = ast.Call(ast.Attribute(_load(found), "append", ast.Load()), [self.visit(node.elt)], [])
        body = [*self.rounds, ast.Assign([generator.target], _load(item)), ast.Expr(appended)]
        arguments = ast.arguments([], [ast.arg(item)], None, [], [], None, [])
        each = ast.FunctionDef(f"{OWN}each_{number}", arguments, body, [], None)
        self.shared.add(found)
        self.rounds = [*outside, *self._located([each], node)]
        call = _runtime("collected", ast.Constant(number), ast.Constant(found), iterable, _load(each.name))
        return ast.copy_location(call, node)

    visit_GeneratorExp = visit_ListComp

    def _lambda(self, value: ast.expr) -> ast.Lambda:
        return ast.Lambda(bare(None), value)

    # ---- what is left as it is -----------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    def _located(self, written: list[ast.stmt], at: ast.AST) -> list[ast.stmt]:
        for statement in written:
            for part in ast.walk(statement):
                if isinstance(part, (ast.stmt, ast.expr)) and not hasattr(part, "lineno"):
                    _locate(part, at)
        return written


def _iterated(iterable: ast.expr) -> ast.expr:
    """``range(...)``, ``enumerate(...)`` and ``zip(...)`` are made by the runtime, which takes traced numbers; so is
    ``x.unbind(...)``, whose items a loop walks."""
    if not isinstance(iterable, ast.Call):
        return iterable
    function = iterable.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    is_builtin = isinstance(function, ast.Name) and name in ("range", "enumerate", "zip")
    is_taken_apart = isinstance(function, ast.Attribute) and name == "unbind"
    if not is_builtin and (not is_taken_apart or any(isinstance(one, ast.Starred) for one in iterable.args)):
        return iterable
    made = _runtime("iterate", function, *map(_iterated, iterable.args))
    made.keywords = iterable.keywords
    return ast.copy_location(made, iterable)


def _fields_of(node: ast.JoinedStr) -> tuple[str, ...] | None:
    """A text in pieces, each with a field for one value but the last; None if a field is not written out."""
    pieces = [""]
    for part in node.values:
        if isinstance(part, ast.Constant):
            pieces[-1] += escaped(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        spec = [] if part.format_spec is None else part.format_spec.values  # type: ignore[attr-defined]
        form = "".join(str(one.value) if isinstance(one, ast.Constant) else "{" for one in spec)
        if "{" in form:
            return None
        conversion = f"!{chr(part.conversion)}" if part.conversion > 0 else ""
        pieces[-1] += f"{{{conversion}{':' + form if form else ''}}}"
        pieces.append("")
    return tuple(pieces)


def _is_in_group(node: ast.Compare) -> bool:
    """Whether a comparison asks if something is one of some numbers, or values with names, that are written out."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.In, ast.NotIn)):
        return False
    group = node.comparators[0]
    is_group = isinstance(group, (ast.Tuple, ast.List, ast.Set)) and bool(group.elts)
    return is_group and all(_is_number(one) or _is_name(one) for one in group.elts)  # type: ignore[attr-defined]


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _is_name(node: ast.expr) -> bool:
    """Whether an expression is ``torch.float16``, say."""
    return isinstance(node, ast.Attribute) and (isinstance(node.value, ast.Name) or _is_name(node.value))


def _locate(part: Any, at: Any) -> None:
    """Let a new piece of source stand where a statement begins: a call that ends lower would be said to be there."""
    part.lineno = part.end_lineno = at.lineno
    part.col_offset = part.end_col_offset = at.col_offset


def _binds(node: ast.AST) -> bool:
    """Whether an expression sets variables: no ``lambda`` can do that."""
    return any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def copy_of(node: Any) -> Any:
    """A copy of a piece of source that may be changed; variables have no annotations in it, which nobody evaluates and
    which a ``nonlocal`` variable must not have."""
    if isinstance(node, ast.ClassDef):
        return copy.deepcopy(node)
    if isinstance(node, ast.AnnAssign) and node.simple and node.value is not None:
        return ast.copy_location(ast.Assign([copy_of(node.target)], copy_of(node.value)), node)
    if isinstance(node, ast.AST):
        twin = type(node)(**{name: copy_of(part) for name, part in ast.iter_fields(node)})
        return ast.copy_location(twin, node) if hasattr(node, "lineno") else twin
    return [copy_of(part) for part in node] if isinstance(node, list) else node
