"""Functions are rewritten: each loop, branch and condition becomes a call of the runtime.

In comes a code object; out comes another that does the same, line by line, in which each body is an inner function and
what it assigns is ``nonlocal``. ``break``, ``continue`` and ``return`` inside become what the body returns. A function
without source, whose file has changed since, or that does what no inner function can, is left alone. ``Rewrites`` holds
the functions of one capture that asked for data, for as long as it runs.
"""

from __future__ import annotations

import ast
import copy
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from clew.capture.control_flow.definitions import (
    OWN,
    bare,
    compiled_body,
    definition_of,
    functions_of,
    tree_of,
)
from clew.capture.control_flow.list_escape import FileFunctions, ListEscape, is_reduce, opening_lines, reduces
from clew.capture.control_flow.liveness import (
    LOOPS,
    Liveness,
    Variables,
    breaks,
    jumps,
    leaves_early,
    own_nodes,
    returns,
    without_continues,
    without_inner_returns,
)
from clew.capture.control_flow.raising import escaped
from clew.capture.control_flow.runtime import RUNTIME, Runtime
from clew.capture.patches import REWRITTEN, Patches
from clew.ir.source import is_installed_file

_BLIND = frozenset({"locals", "vars", "exec", "eval", "dir", "_getframe", "currentframe"})
"""Functions that see which function they are called in."""
_GENERATORS = 0x20 | 0x80 | 0x200  # flags of code objects that can be suspended


def rewritten(code: CodeType, runtime: Runtime) -> CodeType | None:
    """The code with its control flow handed to ``runtime``; None if that cannot be done, or there is none."""
    definition = None if code.co_flags & _GENERATORS else definition_of(code)
    if definition is None or not _BLIND.isdisjoint(code.co_names):
        return None
    writer = BodyWriter(definition, functions_of(tree_of(code.co_filename)))
    body = writer.body_of(definition)
    compiled = compiled_body(definition, body, code) if writer.count else None
    if compiled is None or compiled.co_freevars != code.co_freevars:
        return None
    return _with_runtime(compiled, runtime)


def is_one_expression(code: CodeType) -> bool:
    """Whether a function does nothing but return the value of an expression."""
    definition = None if code.co_flags & _GENERATORS else definition_of(code)
    body = getattr(definition, "body", [])
    return isinstance(body, list) and len(body) == 1 and isinstance(body[0], ast.Return)


@functools.lru_cache(maxsize=1024)
def lines_of_loops(code: CodeType) -> frozenset[int]:
    """The lines of a function on which a loop begins, or a list that may have any length."""
    definition = None if code.co_flags & _GENERATORS else definition_of(code)
    body = [] if definition is None else [definition.body] if isinstance(definition, ast.Lambda) else definition.body
    body = copy_of(body)
    return frozenset(opening_lines(body, ListEscape(body, functions_of(tree_of(code.co_filename)))))


def replaced_inside(code: CodeType, changes: dict[CodeType, CodeType]) -> CodeType:
    """The code with others in the place of those of functions that are made inside of it."""
    if code in changes:
        return changes[code]
    constants = tuple([replaced_inside(one, changes) if isinstance(one, CodeType) else one for one in code.co_consts])
    same = all(new is old for new, old in zip(constants, code.co_consts, strict=True))
    return code if same else code.replace(co_consts=constants)


def _with_runtime(code: CodeType, runtime: Runtime, around: str = "") -> CodeType:
    """The code with the runtime in it; bodies bear the name of the function that they are a part of."""
    name = around if code.co_name.startswith(OWN) else code.co_name
    constants = [_with_runtime(part, runtime, name) if isinstance(part, CodeType) else part for part in code.co_consts]
    constants = [runtime if isinstance(part, str) and part == _RUNTIME_NAME else part for part in constants]
    return code.replace(co_consts=tuple(constants), co_name=name)


# ---- the functions of one capture that are rewritten -----------------------------------------------------------------

Key = tuple[str, int, str]
_known: dict[CodeType, CodeType | None] = {}
_MOST_KNOWN = 1024


class Rewrites:
    """Which functions are rewritten, by file, line and name."""

    def __init__(self) -> None:
        self.functions: list[FunctionType] = []
        self._met: list[FunctionType] = []
        self._wanted: set[Key] = set()
        self._refused: set[Key] = set()
        self._for_modes: set[tuple[str, int]] = set()

    def is_wanted(self, code: CodeType, line: int = 0, is_for_modes: bool = False) -> bool:
        """Whether a function that asks for data is to be rewritten from now on, which was not so before.

        With a ``line``, only if a loop begins there.
        """
        key = _key(code)
        if not is_for_modes and key[:2] in self._for_modes:
            self._for_modes.remove(key[:2])
            return True
        if "clew_" in code.co_qualname or key in self._wanted or key in self._refused:
            return False
        homes = (found for function in self._known() for found in _codes(function.__code__))
        original = next((found for found in homes if _key(found) == key), None)
        if line and original is not None and line not in lines_of_loops(original):
            return False
        if original is None or _rewritten(original) is None:
            self._refused.add(key)
            return False
        self._add(key, is_for_modes)
        return True

    def meet(self, function: FunctionType) -> None:
        """Let a function be rewritten that nobody knew would be called, if it gives what one expression is."""
        if function not in self._met and is_one_expression(function.__code__):
            self._met.append(function)

    def _known(self) -> list[FunctionType]:
        return [*self.functions, *self._met]

    def _add(self, key: Key, is_for_modes: bool) -> None:
        self._wanted.add(key)
        if is_for_modes and is_installed_file(key[0]):
            self._for_modes.add(key[:2])

    def is_for_modes(self, site: tuple[str, int, int]) -> bool:
        """Whether a branch stands in a library's function that was rewritten only because it asks for modes."""
        return site[:2] in self._for_modes

    def want(self, codes: Iterable[CodeType]) -> None:
        """Let functions be rewritten from the start that will ask for modes."""
        for code in codes:
            if _key(code) not in self._wanted and "clew_" not in code.co_qualname and _rewritten(code) is not None:
                self._add(_key(code), is_for_modes=True)

    def install(self, patches: Patches) -> None:
        """Let the functions run what they were rewritten to."""
        for function in self._known() if self._wanted else ():
            codes = [code for code in _codes(function.__code__) if _key(code) in self._wanted]
            changes = {code: new for code in codes if (new := _rewritten(code)) is not None}
            if changes:
                patches.on_function(function, replaced_inside(function.__code__, changes), layer=REWRITTEN)


def _key(code: CodeType) -> Key:
    return code.co_filename, code.co_firstlineno, code.co_qualname


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those of the functions made inside of it."""
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _rewritten(code: CodeType) -> CodeType | None:
    if code not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[code] = rewritten(code, RUNTIME)
    return _known[code]


# ---- the new body of a function --------------------------------------------------------------------------------------

_RUNTIME_NAME = "the runtime of clew's control flow"
"""A constant in the new code, for which the runtime itself is put."""


def _names(word: str, first: int = 0) -> Iterator[str]:
    """Names for a variable that the source does not have."""
    return (f"{word}_{number}" if number else word for number in itertools.count(first))


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _runtime(method: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Constant(_RUNTIME_NAME), method, ast.Load()), list(args), [])


def _flag(value: Any) -> ast.Constant:
    return ast.Constant(bool(value))


def _texts(names: set[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(name) for name in sorted(names)], ast.Load())


_FOLDING = frozenset({"sum", "max", "min", "reduce"})
"""Functions that make one value of all items, and look at each."""
_RESULTS = {
    "sum": "total", "max": "largest", "min": "smallest", "any": "holds", "all": "holds", "next": "first",
    "reduce": "result",
}  # fmt: skip
"""How variables are called that hold what these functions give."""


class BodyWriter(ast.NodeTransformer):
    """Writes the new body of one function."""

    def __init__(self, definition: Any, functions: FileFunctions) -> None:
        self.count = 0
        self.functions = functions
        self.inside = ""  # of which kind of body the statement at hand is a part: "", "loop" or "branch"
        body = [definition.body] if isinstance(definition, ast.Lambda) else definition.body
        self.variables = Variables(body)
        self.first = next((one.arg for one in (*definition.args.posonlyargs, *definition.args.args)), "")
        self.shared: set[str] = set()
        self.rounds: list[ast.stmt] = []
        """The functions that the comprehensions of the body at hand call for each item."""
        self.escape = ListEscape([])
        self.taken = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
        """The names that the function uses."""
        self.says = False  # whether the expression at hand is a part of a ``raise``

    def body_of(self, definition: Any) -> list[ast.stmt]:
        """The new body: all variables that some inner body sets are set in the function itself too."""
        if isinstance(definition, ast.Lambda):
            parts: list[Any] = [copy_of(definition.body)]
            self.escape = ListEscape([ast.Return(parts[0])], self.functions)
            body: list[ast.stmt] = [ast.Return(self.visit(parts[0]), lineno=definition.lineno)]
        else:
            parts = [copy_of(one) for one in definition.body]
            taken = self.taken
            for place, loop in enumerate([node for node in own_nodes(parts) if isinstance(node, LOOPS)]):
                flag = next(name for name in _names("skip", place) if name not in taken)
                loop.body = without_continues(loop.body, flag)
            flag, value = (next(name for name in _names(word) if name not in taken) for word in ("left", "result"))
            parts = without_inner_returns(parts, flag, value)
            self.liveness = Liveness(parts)
            self.escape = ListEscape(parts, self.functions)
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
            "while_",
            ast.Constant(number),
            _load(test.name),
            _load(body.name),
            ast.Tuple(names, ast.Load()),
            _flag(node.orelse and has_break),
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
            ast.Tuple(names, ast.Load()),
            _flag(node.orelse and has_break),
            ast.Tuple([_texts(kind.get(node, set())) for kind in self.escape.kinds], ast.Load()),
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
        """A branch with which the function ends, and its own variables with it: what follows is its other side."""
        names = Variables([*node.body, *rest]).stored - self.variables.outer.keys()
        number, test = self._number(), self._truth(node.test)
        then = self._function(f"{OWN}then_{number}", self._block(node.body, is_whole=True), node)
        other = self._function(f"{OWN}else_{number}", self._block(rest, is_whole=True), node)
        call = _runtime("leave", ast.Constant(number), test, _load(then.name), _load(other.name), _texts(names))
        return self._located([then, other, ast.Return(call)], node)

    # ---- errors --------------------------------------------------------------------------------------------------

    def visit_Assert(self, node: ast.Assert) -> Any:
        """An ``assert`` is a branch that raises."""
        kind = ast.Attribute(ast.Constant(_RUNTIME_NAME), "ASSERTION_ERROR", ast.Load())
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
        return ast.copy_location(ast.Return(ast.Attribute(ast.Constant(_RUNTIME_NAME), "BREAK", ast.Load())), node)

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
        """``super()`` must be told what it sees by itself in a method; a list that does not escape is of any length."""
        is_local, unpacks = node in self.escape.lists, _flag(node in self.escape.unpacked)
        gives_parts = node in self.escape.parted
        place, walks = self.escape.groups.get(node), node in self.escape.walks
        if reduces(node):
            return self._reduced(node)
        self.generic_visit(node)
        if walks:
            return ast.copy_location(_runtime("walk", node.func, *node.args), node)
        if place is not None:
            items = _iterated(node.args[0])
            return ast.copy_location(_runtime("grouped", node.func, items, node.args[1], ast.Constant(place)), node)
        if node in self.escape.copied:
            return ast.copy_location(_runtime("copied", node.func, *node.args), node)
        if is_local or gives_parts:
            self._number()  # so that the function counts as one with something to hand to the runtime
            array: Any = node.func.value  # type: ignore[attr-defined]
            return ast.copy_location(_runtime("listed", array, unpacks, _flag(gives_parts)), node)
        if _is_get(node) and not _binds(node):
            group: Any = node.func.value  # type: ignore[attr-defined]
            node.args[0] = self._chosen(group, node.args[0], node, may_miss=True)
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords
        if is_super and self.first:
            node.args = [_load("__class__"), _load(self.first)]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """An array may be indexed by a list of any length, a list or dict by a number that comes from data."""
        is_listed, can_be_chosen = node.slice in self.escape.indices, _may_be_number(node) and not _binds(node)
        self.generic_visit(node)
        if is_listed:
            return ast.copy_location(_runtime("indexed", node.value, node.slice), node)
        if can_be_chosen and _is_read_again(node.value):
            node.slice = self._chosen(node.value, node.slice, node)
        elif can_be_chosen and isinstance(node.value, (ast.Tuple, ast.List, ast.Dict)):
            return ast.copy_location(_runtime("item", ast.Constant(self._number()), node.value, node.slice), node)
        return node

    def _chosen(self, group: ast.expr, index: ast.expr, at: ast.expr, may_miss: bool = False) -> ast.expr:
        """The index of an item of a group, which may be one that comes from data."""
        found = _runtime("place", ast.Constant(self._number()), copy_of(group), index, _flag(may_miss))
        return ast.copy_location(found, at)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """A list that is repeated and does not escape may have any length."""
        repeats = node in self.escape.repeats
        self.generic_visit(node)
        return ast.copy_location(_runtime("repeated", node.left, node.right), node) if repeats else node

    def visit_ListComp(self, node: Any) -> Any:
        """A comprehension whose list does not escape, or is given back, is a loop that appends."""
        if node not in self.escape.comprehensions | self.escape.given_back:
            return self.generic_visit(node)
        number = self._number()
        iterable = _iterated(self.visit(node.generators[0].iter))
        found, is_local = f"{OWN}found_{number}", _flag(node in self.escape.comprehensions)

        def append(value: ast.expr) -> list[ast.stmt]:
            return [ast.Expr(ast.Call(ast.Attribute(_load(found), "append", ast.Load()), [value], []))]

        each = self._each(number, found, node, append)
        call = _runtime("collected", ast.Constant(number), ast.Constant(found), iterable, _load(each), is_local)
        return ast.copy_location(call, node)

    visit_GeneratorExp = visit_ListComp

    def _each(self, number: int, found: str, node: Any, use: Callable[[ast.expr], list[ast.stmt]]) -> str:
        """The name of a function for the rounds of a comprehension, or of a walk over a value: each item that its
        conditions let through is ``used``, for what the variable ``found`` holds."""
        item, outside = f"{OWN}item", self.rounds
        self.rounds = []
        body: list[ast.stmt] = []
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            generator = node.generators[0]
            tests = [self._truth(one) for one in generator.ifs]
            body = use(self.visit(node.elt))
            for test in reversed(tests):
                body = [ast.If(test, body, [])]
            body.insert(0, ast.Assign([generator.target], _load(item)))
        else:
            body = use(_load(item))
        stored = found in Variables(body).stored
        body = [*([ast.Nonlocal([found])] if stored else []), *self.rounds, *body]
        each = ast.FunctionDef(f"{OWN}each_{number}", bare(None), body, [], None)
        each.args.args.append(ast.arg(item))
        self.shared.add(found)
        self.rounds = [*outside, *self._located([each], node)]
        return each.name

    def _reduced(self, node: ast.Call) -> Any:
        """``sum(...)`` and its like over what may have any length: a loop that keeps one value."""
        number, merges = self._number(), is_reduce(node)
        kind: str = "reduce" if merges else node.func.id  # type: ignore[attr-defined]
        items, *start = node.args[1:] if merges else node.args
        found = next(name for name in _names(_RESULTS[kind]) if name not in self.taken)
        step = f"{OWN}step_{number}"
        self.taken.add(found)
        is_walk = isinstance(items, ast.GeneratorExp)

        def use(value: ast.expr) -> list[ast.stmt]:
            result: ast.expr = ast.Constant(kind == "any")
            if kind == "sum":
                result = ast.BinOp(_load(found), ast.Add(), _runtime("summand", ast.Constant(number), value))
            elif merges:
                result = _runtime("merged", ast.Constant(number), _load(step), _load(found), value)
            elif kind in _FOLDING:
                result = _runtime("better", ast.Constant(number), ast.Constant(kind), _load(found), value)
            elif kind == "next":
                result = value
            keep: list[ast.stmt] = [ast.Assign([ast.Name(found, ast.Store())], result)]
            if kind in _FOLDING:
                return keep
            stop = ast.Return(ast.Attribute(ast.Constant(_RUNTIME_NAME), "BREAK", ast.Load()))
            sides: list[list[ast.stmt]] = [[*keep, stop], [ast.Pass()]]
            return sides[0] if kind == "next" else [ast.If(value, *(sides if kind == "any" else sides[::-1]))]

        plainly: ast.expr = ast.Constant(None)
        function: ast.expr = _load(kind)
        if merges:
            self.shared.add(step)
            parts = [self.visit(node.func), self.visit(node.args[0]), ast.Constant(step)]
            function = ast.Tuple(parts, ast.Load())
        if isinstance(items, ast.GeneratorExp):
            plain = copy_of(items)
            source = _iterated(self.visit(items.generators[0].iter))
            plain.generators[0].iter = _load(f"{OWN}items")
            plainly = ast.Lambda(bare(None), plain)
            plainly.args.args.append(ast.arg(f"{OWN}items"))
        else:
            source = _iterated(self.visit(items))
        each = self._each(number, found, items if is_walk else node, use)
        start = [self.visit(one) for one in start]
        names = [ast.Constant(number), ast.Constant(kind), ast.Constant(found)]
        call = _runtime("reduced", *names, function, source, _load(each), plainly, *start)
        for part in ast.walk(call):
            if isinstance(part, (ast.stmt, ast.expr)) and not hasattr(part, "lineno"):
                _locate(part, node)
        return ast.copy_location(call, node)

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


def _may_be_number(node: ast.Subscript) -> bool:
    """Whether something is read by an index that is computed."""
    fixed = (ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp, ast.Starred, ast.Compare)
    return isinstance(node.ctx, ast.Load) and not isinstance(node.slice, fixed)


def _is_read_again(node: ast.expr) -> bool:
    """Whether an expression is a variable, or an attribute of one, which may be read twice."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))


def _is_get(node: ast.Call) -> bool:
    """Whether a call is ``group.get(key)`` or ``{...}.get(key, default)``, with constants written out."""
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr != "get" or node.keywords or not node.args:
        return False
    group = function.value
    is_literal = isinstance(group, ast.Dict) and all(isinstance(one, ast.Constant) for one in group.keys)
    return (is_literal or _is_read_again(group)) and not isinstance(node.args[0], (ast.Constant, ast.Starred))


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
