"""Parameters that a function only hands on, as they are, to functions and methods of the framework.

In come a function, which of its arguments are arrays, and what counts as the framework's; out come the names of such
parameters, because the source says so. Whatever is given for one of them (another shape, axis, dtype or list), the
calls of the graph get the same: the program itself cannot have looked at it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from clew.capture.control_flow.definitions import definition_of

_OWN_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp,
               ast.DictComp, ast.GeneratorExp)  # fmt: skip
_BLIND = frozenset({"locals", "vars", "exec", "eval", "dir", "_getframe", "currentframe"})
_VIEWS = frozenset({"T", "mT", "real", "imag"})


class Framework:
    """What counts as the framework's: its functions, and the methods of its arrays that give arrays or numbers."""

    def __init__(self, is_function: Callable[[Any], bool], methods: frozenset[str]) -> None:
        self.is_function = is_function
        self.methods = methods


def handed_on(function: Any, arrays: set[str], framework: Framework) -> frozenset[str]:
    """The parameters of a function that it only hands on; those in ``arrays`` hold arrays."""
    code = getattr(function, "__code__", None)
    if not isinstance(function, FunctionType) or code is None or not _BLIND.isdisjoint(code.co_names):
        return frozenset()
    definition = definition_of(code)
    if not isinstance(definition, ast.FunctionDef):
        return frozenset()
    uses = _Uses(definition, function.__globals__, arrays, framework)
    names = [one.arg for one in (*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs)]
    return frozenset(name for name in names if uses.are_handed_on(name))


class _Uses:
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
