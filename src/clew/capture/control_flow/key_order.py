"""Whether a program may see in which order the keys of a dict stand: it walks, unpacks, joins, copies or shows one.

In come the functions of the program; out comes an answer that the source gives, without running anything. A function
that only takes single items, and hands whole dicts to functions that look at nests by sorted keys, gives the same
whatever the order is. What is not known to leave the order alone may see it.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any

from clew.capture.control_flow.definitions import definition_of

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
    return any(_Function(one, known, takes_nests).sees() for one in functions if not _is_made(one))


def _is_made(function: FunctionType) -> bool:
    """Whether Python has written a function itself, for a class of fields."""
    return function.__code__.co_filename == "<string>" and function.__name__.startswith("__")


class _Function:
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
            return not (_is_range(node.iter) or (isinstance(node, ast.For) and _walks_no_keys(node)))
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
