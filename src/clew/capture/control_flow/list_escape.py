"""Escape analysis of lists: which lists of a function are only iterated, counted, joined or split by a framework.

In comes a function's definition; out come the expressions and variables whose lists never leave the function, or those
of the same file that it calls, because the source says so. No question about their type or length is asked, so such a
list may have any length in the graph, with a proxy in its place.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import Any

from clew.ir.guests import FRAMEWORK_PACKAGES

_WALKING = frozenset({"zip", "enumerate"})
_SPLITTING = frozenset({"split", "split_with_sizes"})
_MODULES = FRAMEWORK_PACKAGES | {"np", "jnp"}
"""The names by which the modules are known whose functions join lists."""
_JOINING = frozenset("cat concat concatenate stack hstack vstack dstack column_stack tensor array".split())
_REDUCING = frozenset({"len", "max", "min", "sum", "any", "all"})
_FOLDED = frozenset({"max", "min", "sum", "any", "all"})
_GROWING = frozenset({"append", "extend"})
_OWN_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LATER = (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
"""What may read the variable of a comprehension after its round, or sets one of the function's."""


class FileFunctions:
    """The functions and methods that a file defines, each name once or in several classes."""

    def __init__(self, tree: ast.Module | None) -> None:
        self._functions: dict[tuple[str, bool], list[ast.FunctionDef]] = {}
        self._keeping: dict[tuple[ast.FunctionDef, str], bool] = {}
        for statement in [] if tree is None else tree.body:
            is_class = isinstance(statement, ast.ClassDef)
            for one in statement.body if isinstance(statement, ast.ClassDef) else [statement]:
                if isinstance(one, ast.FunctionDef):
                    self._functions.setdefault((one.name, is_class), []).append(one)

    def keep(self, call: ast.Call, argument: ast.AST) -> bool:
        """Whether a list that is an argument of a call does not escape from the called function, whichever of that
        name it is."""
        function = call.func
        is_method = isinstance(function, ast.Attribute)
        if isinstance(function, ast.Attribute):
            name = function.attr if isinstance(function.value, ast.Name) and function.value.id == "self" else ""
        else:
            name = function.id if isinstance(function, ast.Name) else ""
        found = self._functions.get((name, is_method), [])
        return bool(found) and all(self._keeps(one, _parameter(one, call, argument, is_method)) for one in found)

    def _keeps(self, definition: ast.FunctionDef, parameter: str) -> bool:
        key = definition, parameter
        if not parameter or definition.decorator_list:
            return False
        if key not in self._keeping:
            self._keeping[key] = True  # of a function that calls itself
            self._keeping[key] = ListEscape(definition.body, self).keeps_parameter(parameter)
        return self._keeping[key]


def _parameter(definition: ast.FunctionDef, call: ast.Call, argument: ast.AST, is_method: bool) -> str:
    """The parameter that an argument of a call goes into; nothing if that cannot be told."""
    if isinstance(argument, ast.keyword):
        return argument.arg or ""
    if any(isinstance(one, ast.Starred) for one in call.args):
        return ""
    parameters = [one.arg for one in (*definition.args.posonlyargs, *definition.args.args)][is_method:]
    place = call.args.index(argument)  # type: ignore[arg-type]
    return parameters[place] if place < len(parameters) else ""


class ListEscape:
    """The lists of one function that do not escape; ``functions`` are those of its file."""

    def __init__(self, body: list[Any], functions: FileFunctions | None = None) -> None:
        self._functions = functions or FileFunctions(None)
        self._parents: dict[ast.AST, ast.AST] = {}
        self._names: dict[str, list[ast.Name]] = {}
        self._lost: set[str] = set()
        self._body = body
        self._gives_parts = False  # whether what is taken apart by a list may go anywhere
        self._gives_back = False  # whether the function may return a list
        self._statements: dict[ast.AST, int] = {}
        for place, statement in enumerate(body):
            self._look(statement, place)

    @functools.cached_property
    def names(self) -> dict[ast.For, set[str]]:
        """For each loop the variables whose lists do not escape from there on."""
        kept = {loop: {name for name in self._names if self._is_kept(name, loop, frozenset())} for loop in self._loops}
        return kept

    @functools.cached_property
    def chains(self) -> dict[ast.For, set[str]]:
        """Those of them whose lists are looked at, or made longer by more than one item, in the loop."""
        return {loop: {name for name in names if self._is_chain(name, loop)} for loop, names in self.names.items()}

    @functools.cached_property
    def given_names(self) -> dict[ast.For, set[str]]:
        """For each loop the variables whose lists do not escape either, but for a return of the function."""
        self.names  # noqa: B018, which is without
        self._gives_back = True
        kept = {loop: {name for name in self._names if self._is_kept(name, loop, frozenset())} for loop in self._loops}
        self._gives_back = False
        return kept

    @property
    def kinds(self) -> list[dict[ast.For, set[str]]]:
        """For each loop the variables that hold lists of any length: local ones, chains, those that are given back."""
        return [self.names, self.chains, self.given_names]

    @functools.cached_property
    def given_back(self) -> set[ast.AST]:
        """List comprehensions whose lists do not escape either, but for a return of the function."""
        self._gives_back = True
        plain = [node for node in self._parents if isinstance(node, ast.ListComp) and _is_plain(node)]
        found: set[ast.AST] = {node for node in plain if self._keeps(node)}
        self._gives_back = False
        return found

    @functools.cached_property
    def lists(self) -> set[ast.AST]:
        """Calls of ``tolist`` whose lists do."""
        return {node for node in self._parents if is_list_of_array(node) and self._keeps(node)}

    @functools.cached_property
    def parted(self) -> set[ast.AST]:
        """Calls of ``tolist`` whose lists do, but for what a framework takes apart by them."""
        others = {node for node in self._parents if is_list_of_array(node)} - self.lists
        self._gives_parts = True
        found = {node for node in others if self._keeps(node)}
        self._gives_parts = False
        return found

    @functools.cached_property
    def unpacked(self) -> set[ast.AST]:
        """Those of them whose items are taken apart at once, each into variables."""
        return {node for node in self.lists if self._is_unpacked(self._target(node))}

    @functools.cached_property
    def comprehensions(self) -> set[ast.AST]:
        """List comprehensions whose lists do, and what ``max`` or ``min`` takes all items out of at once."""
        return {node for node in self._parents if _is_plain(node) and self._is_taken(node)}

    @functools.cached_property
    def reductions(self) -> set[ast.AST]:
        """Calls that make one value of what they walk."""
        return {node for node in [*self._body, *self._parents] if reduces(node)}

    @functools.cached_property
    def walks(self) -> set[ast.AST]:
        """Calls of ``iter`` of whose iterators only the next item is asked for."""
        return {node for node in self._parents if _is_call(node, "iter") and self._is_advanced(node)}

    @functools.cached_property
    def indices(self) -> set[ast.AST]:
        """Variables that hold lists which the function makes, where something is indexed by them."""
        growing = {node.value.id for node in self._parents if _is_growing(node)}  # type: ignore[attr-defined]
        made = {name.id for node in self._parents if isinstance(node, ast.ListComp) for name in self._set_to(node)}
        places = (node for node in self._parents if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load))
        return {one.slice for one in places if isinstance(one.slice, ast.Name) and one.slice.id in growing | made}

    def _set_to(self, node: ast.AST) -> list[ast.Name]:
        """The variables that an expression is assigned to."""
        parent = self._parents.get(node)
        return [one for one in getattr(parent, "targets", []) if isinstance(one, ast.Name)]

    @functools.cached_property
    def repeats(self) -> set[ast.AST]:
        """Lists that are repeated, ``[1] * n``, and do not escape."""
        return {node for node in self._parents if _is_repeat(node) and (self._keeps(node) or self._is_walk(node))}

    @functools.cached_property
    def groups(self) -> dict[ast.AST, int | None]:
        """Calls of ``groupby`` whose groups are made lists at once, each with the index of the key in an item."""
        return {loop.iter: key_place(loop.iter) for loop in self._loops if _lists_groups(loop)}

    @functools.cached_property
    def copied(self) -> set[ast.AST]:
        """The calls of ``list`` that do so."""
        return {loop.body[0].value for loop in self._loops if loop.iter in self.groups}  # type: ignore[attr-defined]

    @functools.cached_property
    def _loops(self) -> list[ast.For]:
        return [node for node in [*self._body, *self._parents] if isinstance(node, ast.For)]

    def keeps_parameter(self, name: str) -> bool:
        """Whether a list that is given to the function as this parameter does not escape."""
        asked = frozenset({(name, None)})
        uses = [node for node in self._names.get(name, []) if not self._is_set_before(node)]
        return name not in self._lost and all(self._is_harmless(node, asked) for node in uses)

    def _is_set_before(self, node: ast.Name) -> bool:
        """Whether a statement of the function's own has set a variable anew by then."""
        before = self._body[: self._statements[node]]
        return any(isinstance(one, ast.Assign) and _is_set(node.id, one) for one in before)

    def _look(self, node: ast.AST, place: int) -> None:
        """Note the parent and the statement of each node; what inner functions read escapes."""
        self._statements[node] = place
        if isinstance(node, _OWN_SCOPES):
            self._lost |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            return
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            self._lost |= set(node.names)
        if isinstance(node, ast.Name):
            self._names.setdefault(node.id, []).append(node)
        for part in ast.iter_child_nodes(node):
            self._parents[part] = node
            self._look(part, place)

    def _is_kept(self, name: str, since: Any, asked: frozenset[Any]) -> bool:
        """Whether all that a variable may hold since then does not escape."""
        if name in self._lost:
            return False
        if (name, since) in asked:
            return True
        later = [node for node in self._names.get(name, []) if self._may_follow(node, since)]
        return all(self._is_harmless(node, asked | {(name, since)}) for node in later)

    def _may_follow(self, node: ast.Name, since: Any) -> bool:
        """Whether a variable may be used there after some statement: it stands behind it, or in a loop around both.

        If it was set anew in between, by a statement of the function's own, it holds something else there.
        """
        between = self._body[self._statements[since] + 1 : self._statements[node]]
        if any(isinstance(one, ast.Assign) and _is_set(node.id, one) for one in between):
            return False
        if (node.lineno, node.col_offset) >= (since.lineno, since.col_offset):
            return True
        around = {one for one in self._around(since) if isinstance(one, (ast.For, ast.While))}
        return any(one in around for one in self._around(node))

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._parents:
            node = self._parents[node]
            yield node

    def _is_harmless(self, node: ast.Name, asked: frozenset[Any]) -> bool:
        if isinstance(node.ctx, ast.Load):
            return self._keeps(node, asked)
        return not isinstance(self._parents.get(node), (ast.AugAssign, ast.NamedExpr))

    def _is_walk(self, node: ast.AST) -> bool:
        return self._parents.get(node) in self.walks

    def _is_advanced(self, node: ast.AST) -> bool:
        """Whether an iterator goes into a variable, perhaps as an item of a dict there, that ``next`` alone reads."""
        parent, key = self._parents.get(node), False
        while isinstance(parent, ast.IfExp) or (isinstance(parent, ast.Dict) and not key):
            if node is getattr(parent, "test", None):
                return False
            key = key or isinstance(parent, ast.Dict)
            node, parent = parent, self._parents.get(parent)
        if not isinstance(parent, ast.Assign):
            return False
        targets = parent.targets
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or targets[0].id in self._lost:
            return False
        uses = [one for one in self._names[targets[0].id] if isinstance(one.ctx, ast.Load)]
        later = [one for one in uses if self._may_follow(one, parent) and parent not in self._around(one)]
        return all(self._is_next(one, key) for one in later)

    def _is_next(self, node: ast.AST, of_item: bool) -> bool:
        """Whether a variable, or an item of it, is what ``next`` is given, and nothing else."""
        parent = self._parents.get(node)
        if of_item:
            if not isinstance(parent, ast.Subscript) or parent.value is not node:
                return False
            parent = self._parents.get(parent)
        return _is_call(parent, "next")

    def _is_unpacked(self, target: ast.expr | None) -> bool:
        """Whether an item that is put there is taken apart, or only read by its parts."""
        if not isinstance(target, ast.Name):
            return isinstance(target, (ast.Tuple, ast.List))
        later = [node for node in self._names[target.id] if self._may_follow(node, target)]
        loads = [node for node in later if isinstance(node.ctx, ast.Load)]
        return target.id not in self._lost and all(self._reads_parts(node, self._parents[node]) for node in loads)

    def _reads_parts(self, node: ast.Name, parent: ast.AST) -> bool:
        if isinstance(parent, ast.Assign):
            return all(isinstance(one, (ast.Tuple, ast.List)) and _sets_variables(one) for one in parent.targets)
        if not isinstance(parent, ast.Subscript) or node is not parent.value:
            return False
        return isinstance(parent.ctx, ast.Load) and _is_number(parent.slice)

    def _target(self, node: ast.AST) -> ast.expr | None:
        """What the items of a list are put into, if it is walked where it stands."""
        parent = self._parents.get(node)
        if isinstance(parent, (ast.For, ast.comprehension)):
            return parent.target if _sets_variables(parent.target) else None
        if not isinstance(parent, ast.Call) or not isinstance(parent.func, ast.Name):
            return None
        around = self._target(parent)
        items = around.elts if isinstance(around, (ast.Tuple, ast.List)) else []
        if parent.func.id == "enumerate" and parent.args[:1] == [node] and len(items) == 2:
            return items[1]
        is_zip = parent.func.id == "zip" and not any(isinstance(one, ast.Starred) for one in parent.args)
        return items[parent.args.index(node)] if is_zip and len(items) == len(parent.args) else None  # type: ignore[arg-type]

    def _is_taken(self, node: ast.AST) -> bool:
        """Whether a comprehension gives its items at once, to a list or to a function that wants them all."""
        if isinstance(node, ast.ListComp):
            return self._keeps(node)
        call = self._parents.get(node)
        is_call = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("max", "min")
        return is_call and self._keeps(node)

    def _is_chain(self, name: str, loop: ast.For) -> bool:
        inside = [node for node in self._names[name] if loop in self._around(node) and isinstance(node.ctx, ast.Load)]
        parents = [(node, self._parents[node]) for node in inside]
        return any(
            isinstance(one, ast.Subscript)
            or getattr(one, "attr", "") == "extend"
            or (isinstance(one, (ast.For, ast.comprehension)) and one is not loop and one.iter is node)
            for node, one in parents
        )

    def _keeps(self, node: ast.AST, asked: frozenset[Any] = frozenset()) -> bool:
        """Whether the list that an expression gives does not escape."""
        parent = self._parents.get(node)
        if isinstance(parent, (ast.For, ast.comprehension)):
            return node is parent.iter
        if isinstance(parent, (ast.Starred, ast.keyword)):
            return self._is_given(self._parents.get(parent), parent, asked)
        if isinstance(parent, ast.Call):
            return self._is_given(parent, node, asked)
        if isinstance(parent, ast.ListComp):
            return node is parent.elt and self._keeps(parent, asked)
        if isinstance(parent, ast.Assign):
            names = [one.id for one in parent.targets if isinstance(one, ast.Name)]
            return len(names) == len(parent.targets) and all(self._is_kept(name, parent, asked) for name in names)
        if isinstance(parent, ast.Attribute):
            call = self._parents.get(parent)
            return parent.attr in _GROWING and isinstance(call, ast.Call) and call.func is parent
        if isinstance(parent, ast.Subscript):
            is_part = isinstance(parent.slice, ast.Slice) and self._keeps(parent, asked)
            is_read = node is parent.value and isinstance(parent.ctx, ast.Load)
            is_index = node is parent.slice and isinstance(parent.ctx, ast.Load)
            return is_index or (is_read and (is_part or _is_end(parent.slice)))
        if isinstance(parent, ast.BinOp):
            return _joins_literal(parent, node) and self._keeps(parent, asked)
        if isinstance(parent, ast.Compare):
            return _asks_for_none(parent)
        if isinstance(parent, (ast.If, ast.IfExp)) and node is parent.test:
            return True  # whether there is an item
        if isinstance(parent, ast.UnaryOp):
            return isinstance(parent.op, ast.Not)
        if self._gives_back and isinstance(parent, (ast.Tuple, ast.Dict)):
            parent = self._parents.get(parent)
        return isinstance(parent, ast.Expr) or (self._gives_back and isinstance(parent, ast.Return))

    def _is_given(self, call: Any, argument: ast.AST, asked: frozenset[Any]) -> bool:
        """Whether a list that is an argument of a call does not escape."""
        if not isinstance(call, ast.Call) or argument is call.func:
            return False
        if not isinstance(argument, ast.Starred) and self._functions.keep(call, argument):
            return True
        function = call.func
        loop = self._parents.get(call)
        if isinstance(loop, ast.For) and loop.iter is call and call.args[:1] == [argument] and _lists_groups(loop):
            return True
        if isinstance(function, ast.Name) and not isinstance(argument, ast.keyword):
            is_reduced = function.id in _REDUCING and not isinstance(argument, ast.Starred)
            is_first = len(call.args) == 1 or (function.id == "sum" and call.args[0] is argument)
            return (is_reduced and is_first and not call.keywords) or (
                function.id in _WALKING and self._keeps(call, asked)
            )
        if not isinstance(function, ast.Attribute) or isinstance(argument, ast.Starred):
            return False
        if function.attr in _SPLITTING:
            return self._gives_parts or self._keeps(call, asked)
        if call.args[:1] != [argument] or not isinstance(function.value, ast.Name):
            return False
        if function.attr == "extend":
            return self._is_kept(function.value.id, call, asked)
        return function.value.id in _MODULES and function.attr in _JOINING


def _is_growing(node: ast.AST) -> bool:
    """Whether a node is ``name.append``, say."""
    return isinstance(node, ast.Attribute) and node.attr in _GROWING and isinstance(node.value, ast.Name)


def _is_call(node: Any, name: str) -> bool:
    """Whether an expression calls a function of this name with one argument."""
    is_call = isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
    return is_call and isinstance(node.func, ast.Name) and node.func.id == name and not _is_starred(node.args[0])


def _is_starred(node: ast.expr) -> bool:
    return isinstance(node, ast.Starred)


def _is_repeat(node: ast.AST) -> bool:
    """Whether an expression is ``[...] * n``."""
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List)
    return is_product and not any(map(_is_starred, node.left.elts))  # type: ignore[attr-defined]


def key_place(call: Any) -> int | None:
    """The index of what ``groupby(items, lambda item: item[index])`` groups by; None for any other expression."""
    if not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords:
        return None
    if not isinstance(call.args[1], ast.Lambda):
        return None
    is_named = isinstance(call.func, ast.Attribute) and call.func.attr == "groupby"
    key, parameters = call.args[1].body, call.args[1].args.args
    is_item = isinstance(key, ast.Subscript) and isinstance(key.value, ast.Name) and _is_number(key.slice)
    is_called = isinstance(call.func, ast.Name) and call.func.id == "groupby"
    if not (is_named or is_called) or not is_item or [one.arg for one in parameters] != [key.value.id]:  # type: ignore[attr-defined]
        return None
    return int(ast.literal_eval(key.slice))  # type: ignore[attr-defined]


def _lists_groups(loop: ast.For) -> bool:
    """Whether a loop walks ``groupby``, and begins each round with ``group = list(group)``."""
    target, first = loop.target, loop.body[0]
    if key_place(loop.iter) is None or not isinstance(target, ast.Tuple) or not isinstance(first, ast.Assign):
        return False
    items = loop.iter.args[0]  # type: ignore[attr-defined]
    if not is_list_of_array(items.args[0] if _is_call(items, "enumerate") else items):  # which nobody else can change
        return False
    names = [one.id for one in (*target.elts, *first.targets) if isinstance(one, ast.Name)]
    made = first.value
    is_list = isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "list"
    given = [getattr(one, "id", "") for one in made.args] if isinstance(made, ast.Call) and not made.keywords else []
    return is_list and len(target.elts) == 2 and len(names) == 3 and given == names[1:2] == names[2:]


def _is_set(name: str, statement: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def _asks_for_none(node: ast.Compare) -> bool:
    """Whether a comparison is ``value is None``, or ``is not``."""
    is_none = [isinstance(one, ast.Constant) and one.value is None for one in node.comparators]
    return is_none == [True] and isinstance(node.ops[0], (ast.Is, ast.IsNot))


def _joins_literal(sum_of_lists: ast.BinOp, node: ast.AST) -> bool:
    """Whether a list is joined with one that is written out, to a new list."""
    other = sum_of_lists.right if node is sum_of_lists.left else sum_of_lists.left
    return isinstance(sum_of_lists.op, ast.Add) and isinstance(other, ast.List)


def _is_end(index: ast.expr) -> bool:
    """Whether an index is that of the first item or the last."""
    return _is_number(index) and ast.literal_eval(index) in (0, -1)


def _is_number(index: ast.expr) -> bool:
    """Whether an index is a number that is written out."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        index = index.operand
    return isinstance(index, ast.Constant) and type(index.value) is int


def is_list_of_array(node: ast.AST) -> bool:
    """Whether an expression is ``something.tolist()``."""
    is_call = isinstance(node, ast.Call) and not node.args and not node.keywords
    return is_call and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist"  # type: ignore[attr-defined]


def _is_plain(node: ast.AST) -> bool:
    """Whether a node is a list comprehension whose rounds can be calls of a function."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) != 1:
        return False
    generator = node.generators[0]
    is_simple = not generator.is_async and _sets_variables(generator.target)
    inside = [part for part in ast.walk(node) if part is not node]
    return is_simple and not any(isinstance(part, (*_LATER, ast.GeneratorExp)) for part in inside)


def is_reduce(node: ast.Call) -> bool:
    """Whether a call may be one of ``functools.reduce``."""
    function = node.func
    is_there = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
    name = function.attr if is_there else getattr(function, "id", "")  # type: ignore[attr-defined]
    return name == "reduce" and (not is_there or function.value.id == "functools")  # type: ignore[attr-defined]


def reduces(node: Any) -> bool:
    """Whether a call makes one value of what it walks, whose rounds can be calls of a function."""
    if isinstance(node, ast.Call) and is_reduce(node):
        return _merges(node)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords or not node.args:
        return False
    items, count = node.args[0], len(node.args)
    if any(map(_is_starred, node.args)) or any(isinstance(part, _LATER) for part in ast.walk(node)):
        return False
    is_counted = count == 2 if node.func.id == "next" else count == 1 or (count == 2 and node.func.id == "sum")
    if isinstance(items, ast.GeneratorExp):
        return node.func.id in {*_FOLDED, "next"} and is_counted and _is_plain(items)
    return node.func.id in _FOLDED and is_counted and not isinstance(items, (ast.List, ast.Tuple))


def _merges(node: ast.Call) -> bool:
    """Whether a call of ``functools.reduce`` walks what may have any length; its function is made once, before."""
    if node.keywords or len(node.args) not in (2, 3) or any(map(_is_starred, node.args)):
        return False
    _, items, *start = node.args
    if any(isinstance(part, _LATER) for one in (items, *start) for part in ast.walk(one)):
        return False
    is_walk = isinstance(items, ast.GeneratorExp)
    return _is_plain(items) if is_walk else not isinstance(items, (ast.List, ast.Tuple))


def _sets_variables(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_sets_variables, target.elts))
    return isinstance(target, ast.Name)


def opening_lines(body: list[Any], escape: ListEscape) -> Iterator[int]:
    """The lines on which a loop begins that may be of any length, or a list is made that may be."""
    nodes = [
        *escape.lists,
        *escape.parted,
        *escape.comprehensions,
        *escape.given_back,
        *escape.reductions,
        *escape.repeats,
        *(node.iter for node in _loops(body)),
    ]
    for node in nodes:
        yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]


def _loops(nodes: Any) -> Iterator[ast.For]:
    for node in nodes:
        if isinstance(node, ast.For):
            yield node
        if not isinstance(node, _OWN_SCOPES):
            yield from _loops(ast.iter_child_nodes(node))
