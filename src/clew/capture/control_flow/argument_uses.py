"""What the code of a program does with its arguments, and with optional values, texts, lists and dicts elsewhere.

In come functions; out comes, by the name of a variable, attribute or key, whether it is compared with None, and with
which texts: a guess about what other arguments may be given, on which nothing relies. What is relied on is said of the
parameters of the program itself: which it only compares, which lists it only reads, and of which dicts it sees no more
than single keys. Nothing is run.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType, WrapperDescriptorType
from typing import Any

from clew.capture.control_flow.definitions import definition_of
from clew.ir.source import is_installed

_EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_IDENTITIES = (ast.Is, ast.IsNot)
_BLIND = frozenset({"locals", "vars", "exec", "eval", "dir", "_getframe", "currentframe"})


class Asked:
    """What some functions ask, of what they call by these names."""

    def __init__(self) -> None:
        self.optional: set[str] = set()
        """What is compared with None."""
        self.falsy: set[str] = set()
        """What is asked for its truth, so that None may stand for nothing."""
        self.texts: dict[str, list[str]] = {}
        """With which texts a name is compared."""
        self.only_compared: frozenset[str] = frozenset()
        """Parameters of the program itself that it only compares with texts and None."""
        self.compared_items: frozenset[tuple[str, str]] = frozenset()
        """The same of items of dicts, by parameter and key."""
        self.only_read: frozenset[str] = frozenset()
        """Parameters that, if they are lists, it walks, measures and indexes, and hands to the framework at most."""
        self.read_alike: frozenset[str] = frozenset()
        """Of these, those that it would treat alike if they were tuples."""
        self.only_values: frozenset[str] = frozenset()
        """Parameters of which, if they are dicts, it only walks, counts and adds up the values."""
        self.keys: dict[str, dict[str, bool]] = {}
        """Parameters of which, if they are dicts, it only takes single items, and whether each has to be there."""

    def add(self, other: Asked) -> None:
        """Take in what another function asks."""
        self.optional |= other.optional
        self.falsy |= other.falsy
        for name, texts in other.texts.items():
            known = self.texts.setdefault(name, [])
            known += [text for text in texts if text not in known]


def asks(
    program: Any, functions: Iterable[FunctionType], is_of_framework: Callable[[Any], bool] = lambda _: False
) -> Callable[[], Asked]:
    """Tells what a program asks, which is one of these functions, or calls them; it looks once, when it is needed."""

    @functools.cache
    def asked() -> Asked:
        own = [one for one in functions if one is program or not is_installed(one.__code__)]
        return _asked_by(program, own, is_of_framework)

    return asked


def _asked_by(program: Any, functions: Iterable[FunctionType], is_of_framework: Callable[[Any], bool]) -> Asked:
    found = Asked()
    for function in functions:
        definition = definition_of(function.__code__)
        if definition is None:
            continue
        look = _Look(definition, function.__globals__)
        found.add(look.asked)
        if function is getattr(program, "__func__", program):
            uses = _Uses(definition, function, is_of_framework)
            found.only_compared = only_compared(function)
            found.only_read = frozenset(name for name in uses.parameters if uses.are_reads(name))
            found.read_alike = frozenset(name for name in found.only_read if uses.are_reads(name, of_any=True))
            found.only_values = frozenset(name for name in uses.parameters if uses.are_values(name))
            keys = {name: uses.keys(name) for name in uses.parameters}
            found.keys = {name: one for name, one in keys.items() if one}
            items = [(name, key) for name, taken in found.keys.items() for key in taken]
            found.compared_items = frozenset(one for one in items if uses.are_compared(*one, look.compared))
    return found


class _Look:
    """One definition, looked through once."""

    def __init__(self, definition: Any, variables: dict[str, Any]) -> None:
        self.asked = Asked()
        self._definition = definition
        self._variables = variables
        self.compared: set[ast.AST] = set()
        self._tables = dict(_tables(definition))
        self._fixed = _fixed_tables(definition)
        for node in ast.walk(definition):
            self._look(node)

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
                self._compare(operator, left, right)
        elif isinstance(node, (ast.If, ast.IfExp)):
            self.asked.falsy |= {*_name(node.test)}
        elif isinstance(node, ast.BoolOp):
            self.asked.falsy |= {name for value in node.values for name in _name(value)}
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.asked.falsy |= {*_name(node.operand)}
        elif isinstance(node, ast.Match):
            texts = [
                one.value for case in node.cases for one in ast.walk(case.pattern) if isinstance(one, ast.Constant)
            ]
            self._note(node.subject, texts)
            if all(isinstance(one, (ast.MatchValue, ast.MatchOr, ast.MatchAs)) for one in _patterns(node)):
                self.compared.add(node.subject)
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):
            self._note(node.slice, self._keys(node.value))
            self.compared |= {node.slice} if self._is_fixed(node.value) else set()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            self._note(node.args[0] if node.args else node, self._keys(node.func.value))

    def _compare(self, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> None:
        if isinstance(operator, _IDENTITIES) and isinstance(right, ast.Constant) and right.value is None:
            self.asked.optional |= {*_name(left)}
            self.compared.add(left)
        elif isinstance(operator, (ast.Eq, ast.NotEq)):
            for one, other in ((left, right), (right, left)):
                if isinstance(other, ast.Constant) and isinstance(other.value, str):
                    self._note(one, [other.value])
                    self.compared.add(one)
        elif isinstance(operator, _EQUALITIES):
            keys = self._keys(right)
            self._note(left, keys)
            is_group = isinstance(right, (ast.Tuple, ast.List, ast.Set)) and len(keys) == len(right.elts)
            if is_group or self._is_fixed(right):
                self.compared.add(left)

    def _is_fixed(self, group: ast.expr) -> bool:
        """Whether all keys of a dict are known, so that to look one up is to compare it with them."""
        return isinstance(group, ast.Name) and group.id in self._fixed

    def _keys(self, group: ast.expr) -> list[str]:
        """The texts in a group that is written out, or in a dict that a variable holds."""
        if isinstance(group, ast.Name) and group.id in self._tables:
            group = self._tables[group.id]
        elif isinstance(group, ast.Name):
            held = self._variables.get(group.id)
            return [key for key in held if type(key) is str] if isinstance(held, (dict, tuple, list, set)) else []
        parts = group.keys if isinstance(group, ast.Dict) else getattr(group, "elts", [])
        return [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]

    def _note(self, asked: ast.AST, texts: Iterable[Any]) -> None:
        for name in _name(asked):
            known = self.asked.texts.setdefault(name, [])
            known += [text for text in texts if type(text) is str and text not in known]

    def uses(self) -> dict[str, list[ast.AST]]:
        """Where each name stands."""
        used: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self._definition):
            if isinstance(node, ast.Name):
                used.setdefault(node.id, []).append(node)
        return used

    def handed_over(self) -> Iterator[tuple[ast.AST, ast.Call, int | str]]:
        """What stands among the arguments of calls: each with the call, and its place or name there."""
        for call in ast.walk(self._definition):
            if isinstance(call, ast.Call) and not any(isinstance(one, ast.Starred) for one in call.args):
                yield from ((value, call, place) for place, value in enumerate(call.args))
                yield from ((one.value, call, one.arg) for one in call.keywords if one.arg is not None)


def only_compared(function: FunctionType, around: tuple[Any, ...] = ()) -> frozenset[str]:
    """The parameters of a function that it only compares, or hands to functions that do."""
    code = function.__code__
    definition = definition_of(code) if code not in around else None
    if definition is None or not _BLIND.isdisjoint(code.co_names):
        return frozenset()
    look = _Look(definition, function.__globals__)
    compared = set(look.compared)
    for value, call, place in look.handed_over():
        called = _called(function, call.func) if isinstance(value, ast.Name) else None
        if called is not None and _parameter(called, place) in only_compared(called, (*around, code)):
            compared.add(value)
    used = look.uses()
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return frozenset(name for name in names if name in used and compared.issuperset(used[name]))


def _called(function: FunctionType, name: ast.expr) -> FunctionType | None:
    """The function of the program that stands behind a global name in another one, in a cache or compiled perhaps:
    what is written in C does no more with a text than to compare it."""
    code = function.__code__
    if not isinstance(name, ast.Name) or name.id in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
        return None
    found = function.__globals__.get(name.id)
    if type(found) is not FunctionType and isinstance(type(found).__call__, WrapperDescriptorType):
        found = getattr(found, "__wrapped__", found)
    return found if type(found) is FunctionType else None


def _parameter(function: FunctionType, place: int | str) -> str | None:
    """The parameter that gets an argument by its place or its name."""
    code = function.__code__
    if isinstance(place, str):
        return place
    return code.co_varnames[place] if place < code.co_argcount else None


_READING = frozenset({"len", "enumerate", "zip", "sum", "max", "min"})
_JOINING = frozenset("array asarray concatenate concat stack hstack vstack dstack column_stack".split())
"""Functions that take a tuple for a list."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class _Uses:
    """What becomes of the parameters of one function."""

    def __init__(self, definition: Any, function: FunctionType, is_of_framework: Callable[[Any], bool]) -> None:
        self._variables = function.__globals__
        self._is_of_framework = is_of_framework
        self._parents: dict[ast.AST, ast.AST] = {}
        self._names: dict[str, list[ast.Name]] = {}
        self._lost: set[str] = set()
        code = function.__code__
        given = definition.args
        starred = [one for one in (given.vararg, given.kwarg) if one is not None]
        named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *starred]
        self.parameters = [one.arg for one in named if _BLIND.isdisjoint(code.co_names)]
        for statement in definition.body if isinstance(definition.body, list) else [definition.body]:
            self._parents[statement] = definition
            self._look(statement, False)

    def _look(self, node: ast.AST, is_inner: bool) -> None:
        is_inner = is_inner or isinstance(node, _SCOPES)
        if isinstance(node, ast.Name):
            self._names.setdefault(node.id, []).append(node)
            self._lost |= {node.id} if is_inner else set()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            self._lost |= set(node.names)
        for part in ast.iter_child_nodes(node):
            self._parents[part] = node
            self._look(part, is_inner)

    def are_reads(self, name: str, of_any: bool = False) -> bool:
        """Whether all that is done with a list is to read it: nobody changes it, keeps it or gives it back; ``of_any``:
        and nobody sees whether it is a list or a tuple."""
        found = self._names.get(name, [])
        return bool(found) and name not in self._lost and all(self._is_read(node, of_any) for node in found)

    def _is_read(self, node: ast.Name, of_any: bool) -> bool:
        parent = self._parents[node]
        if not isinstance(node.ctx, ast.Load):
            return isinstance(node.ctx, ast.Store) and not isinstance(parent, ast.AugAssign)
        if isinstance(parent, (ast.For, ast.comprehension)):
            return node is parent.iter
        if self._is_asked(node):
            return True
        if isinstance(parent, ast.Subscript):
            is_item = not of_any or isinstance(parent.slice, ast.Constant)
            return node is parent.value and isinstance(parent.ctx, ast.Load) and is_item
        if not isinstance(parent, ast.Call) or node is parent.func:
            return False
        function = parent.func
        if isinstance(function, ast.Name) and function.id == "reversed":
            loop = self._parents[parent]  # a list stands for the iterator, which is walked once
            is_walked = isinstance(loop, (ast.For, ast.comprehension)) and parent is loop.iter
            return is_walked and function.id not in self._variables and function.id not in self._names_set
        if isinstance(function, ast.Name):
            return self._is_reading(function)
        is_joining = isinstance(function, ast.Attribute) and function.attr in _JOINING
        return self._is_framework(function) and (not of_any or (is_joining and node in parent.args))

    def are_values(self, name: str) -> bool:
        """Whether all that is done with a dict is to walk, count or add up its values."""
        found = self._names.get(name, [])
        return bool(found) and name not in self._lost and all(map(self._is_of_values, found))

    def _is_of_values(self, node: ast.Name) -> bool:
        method = self._parents[node]
        call = self._parents[method] if isinstance(method, ast.Attribute) and method.attr == "values" else None
        if not isinstance(call, ast.Call) or call.func is not method or call.args or call.keywords:
            return False
        parent = self._parents[call]
        if isinstance(parent, (ast.For, ast.comprehension)):
            return call is parent.iter
        return isinstance(parent, ast.Call) and call is not parent.func and self._is_reading(parent.func)

    def _is_reading(self, function: ast.expr) -> bool:
        """Whether an expression is a builtin that only walks or counts what it is given."""
        is_name = isinstance(function, ast.Name) and function.id in _READING
        return is_name and function.id not in self._variables and function.id not in self._names_set  # type: ignore[attr-defined]

    def _is_asked(self, node: ast.expr) -> bool:
        """Whether an expression is asked for its truth alone."""
        parent = self._parents[node]
        if isinstance(parent, (ast.If, ast.IfExp, ast.While, ast.Assert)):
            return node is parent.test
        if isinstance(parent, ast.UnaryOp):
            return isinstance(parent.op, ast.Not)
        return isinstance(parent, ast.BoolOp) and self._is_asked(parent)

    @property
    def _names_set(self) -> set[str]:
        stored = (one for found in self._names.values() for one in found if not isinstance(one.ctx, ast.Load))
        return {one.id for one in stored} | set(self.parameters)

    def _is_framework(self, function: ast.expr) -> bool:
        """Whether an expression such as ``np.linalg.norm`` is a function of the framework's."""
        path: list[str] = []
        while isinstance(function, ast.Attribute):
            path.insert(0, function.attr)
            function = function.value
        if not isinstance(function, ast.Name) or not path or function.id in self._names_set:
            return False
        found = self._variables.get(function.id)
        for name in path:
            found = getattr(found, name, None) if isinstance(found, ModuleType) else None
        return found is not None and self._is_of_framework(found)

    def keys(self, name: str) -> dict[str, bool]:
        """The keys by which items of a dict are taken, and whether each has to be there; empty if more is done."""
        found = self._names.get(name, [])
        if name in self._lost:
            return {}
        keys: dict[str, bool] = {}
        for node in found:
            key, is_needed = self._key(node)
            if key is None:
                return {}
            keys[key] = keys.get(key, True) and is_needed
        return keys

    def are_compared(self, name: str, key: str, compared: set[ast.AST]) -> bool:
        """Whether all items that are taken of a dict by a key are only compared."""
        taken = [self._parents[node] for node in self._names[name] if self._key(node)[0] == key]
        return all(isinstance(one, ast.Subscript) and one in compared for one in taken)

    def _key(self, node: ast.Name) -> tuple[str | None, bool]:
        """The key by which a use takes an item, and whether it has to be there; None for another use."""
        parent = self._parents[node]
        key: Any = None
        is_needed = False
        if not isinstance(node.ctx, ast.Load):
            return None, False
        if isinstance(parent, ast.Subscript) and node is parent.value and isinstance(parent.ctx, ast.Load):
            key, is_needed = parent.slice, not self._is_tried(parent)
        elif isinstance(parent, ast.Attribute) and parent.attr == "get":
            call = self._parents[parent]
            if isinstance(call, ast.Call) and parent is call.func and call.args and not call.keywords:
                key = call.args[0]
        elif isinstance(parent, ast.Compare) and isinstance(parent.ops[0], (ast.In, ast.NotIn)):
            key = parent.left if parent.comparators == [node] else None
        is_text = isinstance(key, ast.Constant) and type(key.value) is str
        return (key.value, is_needed) if is_text else (None, False)

    def _is_tried(self, node: ast.AST) -> bool:
        """Whether the program goes on where an item is not there: a handler around it catches that."""
        while node in self._parents:
            inner, node = node, self._parents[node]
            handlers = node.handlers if isinstance(node, ast.Try) and inner in node.body else []
            if any(one.type is None or not _MISSING_KEY.isdisjoint(_name_of(one.type)) for one in handlers):
                return True
        return False


_MISSING_KEY = frozenset({"KeyError", "LookupError", "Exception", "BaseException"})


def _name_of(kinds: ast.expr) -> set[str]:
    """The names of the classes that a handler catches."""
    return {one.id for one in ast.walk(kinds) if isinstance(one, ast.Name)}


def _only_compares(pattern: ast.pattern) -> bool:
    """Whether a pattern compares with a constant, and gives the value no other name."""
    if isinstance(pattern, ast.MatchValue):
        return isinstance(pattern.value, ast.Constant) and type(pattern.value.value) is str
    return isinstance(pattern, ast.MatchOr) or (isinstance(pattern, ast.MatchAs) and pattern.name is None)


def _patterns(match: ast.Match) -> Iterator[ast.pattern]:
    for case in match.cases:
        yield from (one for one in ast.walk(case.pattern) if isinstance(one, ast.pattern))


def _tables(definition: Any) -> Iterator[tuple[str, ast.expr]]:
    """Variables that a dict, or a group of values, that is written out is put into."""
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Dict, ast.Tuple, ast.List, ast.Set)):
            yield from ((one.id, node.value) for one in node.targets if isinstance(one, ast.Name))


def _fixed_tables(definition: Any) -> frozenset[str]:
    """Variables of a function that hold a dict which is written out, with texts as keys, and is only looked up."""
    made = {name for name, value in _tables(definition) if isinstance(value, ast.Dict) and _has_texts(value)}
    looked_up = {one.value for one in ast.walk(definition) if isinstance(one, ast.Subscript) and _is_load(one)}
    asked = (one for one in ast.walk(definition) if isinstance(one, ast.Compare))
    looked_up |= {
        right
        for one in asked
        for kind, right in zip(one.ops, one.comparators, strict=True)
        if isinstance(kind, (ast.In, ast.NotIn))
    }
    names = [one for one in ast.walk(definition) if isinstance(one, ast.Name)]
    lost = {one.id for one in names if _is_load(one) and one not in looked_up}
    lost |= {name for one in ast.walk(definition) if isinstance(one, (ast.Global, ast.Nonlocal)) for name in one.names}
    stores = [one.id for one in names if not _is_load(one)]
    return frozenset(name for name in made - lost if stores.count(name) == 1)


def _has_texts(group: ast.Dict) -> bool:
    return all(isinstance(key, ast.Constant) and type(key.value) is str for key in group.keys)


def _is_load(node: Any) -> bool:
    return isinstance(node.ctx, ast.Load)


def _name(node: ast.AST) -> Iterator[str]:
    """What a variable, an attribute or an item is called."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is str:
        yield node.slice.value
    elif isinstance(node, ast.NamedExpr):
        yield from _name(node.target)
        yield from _name(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        key = node.args[0]
        yield from [key.value] if isinstance(key, ast.Constant) and type(key.value) is str else []


# ---- arguments that are only handed on -------------------------------------------------------------------------------
#
# In come a function, which of its arguments are arrays, and what counts as the framework's; out come the names of
# parameters that it only hands on, as they are, to functions and methods of the framework, because the source says so.
# Whatever is given for one of them (another shape, axis, dtype or list), the calls of the graph get the same: the
# program itself cannot have looked at it.


_OWN_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp,
               ast.DictComp, ast.GeneratorExp)  # fmt: skip
_VIEWS = frozenset({"T", "mT", "real", "imag"})


class Framework:
    """What counts as the framework's: its functions, the methods of its arrays that give arrays or numbers, and what
    looks at dicts as nests only, whose keys it sorts."""

    def __init__(
        self,
        is_function: Callable[[Any], bool],
        methods: frozenset[str],
        takes_nests: Callable[[Any], bool] = lambda _: False,
    ) -> None:
        self.is_function = is_function
        self.methods = methods
        self.takes_nests = takes_nests


def handed_on(function: Any, arrays: set[str], framework: Framework) -> frozenset[str]:
    """The parameters of a function that it only hands on; those in ``arrays`` hold arrays."""
    code = getattr(function, "__code__", None)
    if not isinstance(function, FunctionType) or code is None or not _BLIND.isdisjoint(code.co_names):
        return frozenset()
    definition = definition_of(code)
    if not isinstance(definition, ast.FunctionDef):
        return frozenset()
    uses = _UsesOfHanded(definition, function.__globals__, arrays, framework)
    names = [one.arg for one in (*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs)]
    return frozenset(name for name in names if uses.are_handed_on(name))


class _UsesOfHanded:
    """The variables of one function, and what becomes of them."""

    def __init__(self, definition: Any, variables: dict[str, Any], arrays: set[str], framework: Framework) -> None:
        self._variables, self._arrays, self._framework = variables, arrays, framework
        self._parents: dict[ast.AST, ast.AST] = {}
        self._names: dict[str, list[ast.Name]] = {}
        self._lost: set[str] = set()
        parameters = definition.args
        self._own = {one.arg for one in ast.walk(parameters) if isinstance(one, ast.arg)}
        for statement in definition.body:
            self._look(statement, False)

    def _look(self, node: ast.AST, is_inner: bool) -> None:
        """Note the parent of each node; what inner functions or comprehensions name is lost."""
        is_inner = is_inner or isinstance(node, _OWN_SCOPES)
        if isinstance(node, ast.Name):
            self._names.setdefault(node.id, []).append(node)
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            self._lost |= set(node.names)
        if is_inner:
            self._lost |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        for part in ast.iter_child_nodes(node):
            self._parents[part] = node
            self._look(part, is_inner)

    def are_handed_on(self, name: str) -> bool:
        """Whether all that is done with a parameter is to hand it on."""
        found = self._names.get(name, [])
        return bool(found) and name not in self._lost and all(map(self._is_handed_on, found))

    def _is_handed_on(self, node: ast.Name) -> bool:
        parent, given = self._parents[node], node
        if not isinstance(node.ctx, ast.Load):
            return False
        if isinstance(parent, ast.keyword):
            if parent.arg is None or parent.arg == "out":
                return False
            parent = self._parents[parent]
            return isinstance(parent, ast.Call) and self._is_of_framework(parent.func)
        if isinstance(parent, ast.Subscript):
            return given is parent.slice and isinstance(parent.ctx, ast.Load) and self._is_array(parent.value)
        is_argument = isinstance(parent, ast.Call) and given is not parent.func
        return is_argument and self._is_of_framework(parent.func)  # type: ignore[attr-defined]

    def _is_of_framework(self, function: ast.expr) -> bool:
        """Whether what is called is the framework's, and not the user's."""
        if self._is_function(function):
            return True
        if not isinstance(function, ast.Attribute) or function.attr not in self._framework.methods:
            return False
        return self._is_array(function.value)

    def _is_function(self, function: ast.expr) -> bool:
        """Whether an expression such as ``np.linalg.norm`` is a function of the framework's."""
        names = list(_path(function))
        if len(names) < 2 or names[0] in self._own or self._is_set(names[0]):
            return False
        found = self._variables.get(names[0])
        for name in names[1:]:
            found = getattr(found, name, None) if isinstance(found, ModuleType) else None
        return found is not None and self._framework.is_function(found)

    def _is_set(self, name: str) -> bool:
        return name in self._lost or any(not isinstance(one.ctx, ast.Load) for one in self._names.get(name, []))

    def _is_array(self, value: ast.expr) -> bool:
        """Whether an expression gives an array, or a number of the framework's: its methods are the framework's."""
        if isinstance(value, ast.Name):
            return self._holds_array(value.id)
        if isinstance(value, ast.Call):
            return self._is_of_framework(value.func)
        if isinstance(value, ast.BinOp):
            sides = [value.left, value.right]
            return any(map(self._is_array, sides)) and all(_is_number(one) or self._is_array(one) for one in sides)
        if isinstance(value, ast.UnaryOp):
            return not isinstance(value.op, ast.Not) and self._is_array(value.operand)
        if isinstance(value, ast.Attribute):
            return value.attr in _VIEWS and self._is_array(value.value)
        return isinstance(value, ast.Subscript) and self._is_array(value.value)

    def _holds_array(self, name: str) -> bool:
        """Whether a variable holds an array: a parameter that nothing else is put into, or one that is set once."""
        stores = [one for one in self._names.get(name, []) if not isinstance(one.ctx, ast.Load)]
        if name in self._lost or (name in self._own and stores):
            return False
        if name in self._own:
            return name in self._arrays
        statement = self._parents[stores[0]] if len(stores) == 1 else None
        if not isinstance(statement, ast.Assign) or statement.targets != stores:
            return False
        return not any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(statement.value)) and (
            self._is_array(statement.value)
        )


def _path(node: ast.expr) -> Iterator[str]:
    """The names of ``a.b.c``; nothing for other expressions."""
    if isinstance(node, ast.Attribute):
        before = list(_path(node.value))
        yield from (*before, node.attr) if before else ()
    elif isinstance(node, ast.Name):
        yield node.id


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


# ---- the order of keys -----------------------------------------------------------------------------------------------
#
# Whether a program may see in which order the keys of a dict stand: it walks, unpacks, joins, copies or shows one. A
# function that only takes single items, and hands whole dicts to functions that look at nests by sorted keys, gives the
# same whatever the order is. What is not known to leave the order alone may see it.


_HARMLESS = frozenset(
    "len isinstance issubclass range float int bool complex abs round type callable super hasattr NotImplemented "
    "Ellipsis True False None object property staticmethod classmethod".split()
)
"""Builtins that walk nothing."""
_WALKING = frozenset(
    "keys values items popitem copy update setdefault fromkeys pop clear format join append extend insert union print "
    "callback debug pure_callback io_callback read write".split()
)
"""Methods and functions by which keys, or texts of them, are seen, or a dict gets others."""
_SEEING = (
    ast.Starred, ast.JoinedStr, ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.With, ast.Global, ast.Match,
    ast.Import, ast.ImportFrom, ast.ClassDef, ast.Delete,
)  # fmt: skip
TakesNests = Callable[[Any], bool]
"""Whether a function or module of the framework's looks at dicts as nests only, whose keys it sorts."""


def sees_order(functions: Iterable[FunctionType], takes_nests: TakesNests) -> bool:
    """Whether one of the functions of a program may see the order of keys."""
    functions = list(functions)
    known = {id(one) for one in functions}
    return any(_KeyOrder(one, known, takes_nests).sees() for one in functions if not _is_made(one))


def _is_made(function: FunctionType) -> bool:
    """Whether Python has written a function itself, for a class of fields."""
    return function.__code__.co_filename == "<string>" and function.__name__.startswith("__")


class _KeyOrder:
    """One function, and what the names in it stand for."""

    def __init__(self, function: FunctionType, known: set[int], takes_nests: TakesNests) -> None:
        self._variables = function.__globals__
        self._known = known
        self._takes_nests = takes_nests
        self._definition = definition_of(function.__code__)

    def sees(self) -> bool:
        """Whether it may see an order."""
        definition = self._definition
        if definition is None:
            return True
        body = definition.body if isinstance(definition.body, list) else [definition.body]
        parts = [node for one in body for node in ast.walk(one)]
        stored = {one.id for one in parts if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
        own = {one.arg for one in ast.walk(definition) if isinstance(one, ast.arg)} | stored
        own |= {one.name for one in parts if isinstance(one, ast.FunctionDef)}
        return any(self._is_seeing(node, own) for node in parts)

    def _is_seeing(self, node: ast.AST, own: set[str]) -> bool:
        if isinstance(node, _SEEING):
            return True
        if isinstance(node, (ast.For, ast.comprehension)):
            is_ordered = _is_range(node.iter) or self._gives_leaves(node.iter)
            return not (is_ordered or (isinstance(node, ast.For) and _walks_no_keys(node)))
        if isinstance(node, ast.Assign):
            several = any(isinstance(one, (ast.Tuple, ast.List)) for one in node.targets)
            return several and not (isinstance(node.value, ast.Tuple) or self._is_of_framework(node.value))
        if isinstance(node, (ast.BinOp, ast.AugAssign)):
            return isinstance(node.op, (ast.BitOr, ast.Mod))  # a text may be made by ``%``
        if isinstance(node, ast.Subscript):
            return not isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Attribute):
            return node.attr in _WALKING or node.attr.startswith("__")
        if isinstance(node, ast.keyword):
            return node.arg is None
        if isinstance(node, ast.Dict):
            return None in node.keys
        return isinstance(node, ast.Name) and node.id not in own and self._may_walk(node.id)

    def _gives_leaves(self, value: ast.expr) -> bool:
        """Whether a value is the list of the leaves of a nest, in the order in which the framework sorts keys."""
        is_leaves = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute)
        return is_leaves and value.func.attr in ("leaves", "tree_leaves") and self._is_of_framework(value)  # type: ignore[attr-defined]

    def _is_of_framework(self, value: ast.expr) -> bool:
        """Whether a value is what a function of the framework gives, or one that it has made."""
        if not isinstance(value, ast.Call):
            return False
        path = value.func
        while isinstance(path, (ast.Attribute, ast.Call)):
            path = path.func if isinstance(path, ast.Call) else path.value
        return isinstance(path, ast.Name) and self._takes_nests(self._variables.get(path.id))

    def _may_walk(self, name: str) -> bool:
        """Whether what a name around the function stands for may walk a dict that it is given."""
        if name not in self._variables:
            found = getattr(builtins, name, None)
            is_error = isinstance(found, type) and issubclass(found, BaseException)
            return found is not None and not is_error and name not in _HARMLESS
        value = self._variables[name]
        if isinstance(value, type):
            return not (hasattr(value, "_fields") or dataclasses.is_dataclass(value))
        if not callable(value) and not isinstance(value, ModuleType):
            return False
        return not (self._takes_nests(value) or {id(value), id(getattr(value, "__wrapped__", None))} & self._known)


def _is_range(iterated: ast.expr) -> bool:
    return isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.func.id == "range"


def _walks_no_keys(loop: ast.For) -> bool:
    """Whether each round of a loop uses its item as no text can be used, nor any other key."""
    if not isinstance(loop.target, ast.Name):
        return False
    plain = [one for one in loop.body if isinstance(one, (ast.Assign, ast.AugAssign, ast.Expr, ast.Return))]
    sure = [one for one in plain if not any(isinstance(node, _PERHAPS) for node in ast.walk(one))]
    uses = [node for one in sure for node in ast.walk(one)]
    return any(_is(part, loop.target.id) for node in uses for part in _beside_texts(node))


_PERHAPS = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""What may run no time."""


def _beside_texts(node: ast.AST) -> list[ast.expr]:
    """What cannot be a text, or a number, because of what is done with it here."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return [node.left, node.right]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and type(node.slice.value) is str:
        return [node.value]
    return [node.func] if isinstance(node, ast.Call) else []


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
