"""Names in one piece of generated code: which objects it refers to, and how it reaches them.

An object that a dotted name reaches is imported the way a colleague would import it; any other is bound by a fresh
name in the globals of the code. No text of a graph gets into the code except through ``repr`` or as a checked
identifier, so no name, string or annotation can inject code.
"""

from __future__ import annotations

import keyword
import sys
import types
import typing
from typing import Any

from clew.ir.literals import Speller
from clew.ir.lookup import name_for
from clew.ir.names import Namespace
from clew.ir.node import Node

_WHOLE_PACKAGES = frozenset({"torch", "operator", "math", "numpy", "jax", "tensorflow", "typing", "collections"})


def is_plain_identifier(name: str) -> bool:
    """True for a name that can stand in code as it is."""
    return name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


def attribute(base: str, name: str) -> str:
    """``base.name``, or a ``getattr`` call for a name that is no identifier."""
    return f"{base}.{name}" if is_plain_identifier(name) else f"getattr({base}, {quoted(name)})"


def attribute_path(base: str, path: str) -> str:
    """The expression that walks a dotted path from ``base``."""
    for atom in path.split("."):
        base = attribute(base, atom)
    return base


def quoted(text: str) -> str:
    """A string literal in double quotes where that needs no escapes."""
    plain = repr(text)
    return f'"{plain[1:-1]}"' if '"' not in plain and "\\" not in plain else plain


class Scope:
    """The globals and imports of one piece of generated code."""

    def __init__(self, names: Namespace) -> None:
        self.names = names
        self.globals: dict[str, Any] = {}
        self.imports: dict[str, None] = {}
        self.speller = Speller(self.name_of, _node_name)
        self._known: dict[int, tuple[str, Any]] = {}

    def spell(self, value: Any) -> str:
        """Any argument as an expression."""
        return value.name if type(value) is Node else self.speller.spell(value)

    def name_of(self, thing: Any) -> str:
        """The expression that reaches an object: a dotted name, an imported name, or a global."""
        known = self._known.get(id(thing))
        if known is None:
            known = self._known[id(thing)] = (self._reach(thing), thing)
        return known[0]

    def bind(self, candidate: str, thing: Any) -> str:
        """Make ``thing`` a global under a fresh name."""
        name = self.names.create_name(candidate, thing)
        self.globals[name] = thing
        return name

    def bind_exactly(self, name: str, thing: Any) -> None:
        """Make ``thing`` a global under this very name."""
        self.names.reserve(name)
        self.globals[name] = thing

    def _reach(self, thing: Any) -> str:
        if thing is type(None):
            return self.bind("NoneType", thing)
        if isinstance(thing, types.ModuleType):
            return self._package(thing.__name__)
        if not callable(thing):
            return self.bind(f"_{type(thing).__name__.lower()}", thing)
        dotted = name_for(thing)
        if dotted is not None:
            module, _, name = dotted.rpartition(".")
            package = dotted.partition(".")[0]
            if module == "builtins" and name not in self.names:
                return name
            if package in _WHOLE_PACKAGES:
                return f"{self._package(package)}{dotted[len(package):]}"
            if module in sys.modules:
                return self._imported(module, name, thing)
        return self.bind(getattr(thing, "__name__", type(thing).__name__), thing)

    def _package(self, name: str) -> str:
        root = name.partition(".")[0]
        self.imports[f"import {root}"] = None
        self.bind_exactly(root, sys.modules[root])
        return name

    def _imported(self, module: str, name: str, thing: Any) -> str:
        alias = self.bind(name, thing)
        if module != "__main__":
            self.imports[f"from {module} import {name}" + (f" as {alias}" if alias != name else "")] = None
        return alias

    def annotation(self, kind: Any) -> str:
        """A type annotation as code; what cannot be written is bound by a name."""
        if kind is None:
            return "None"
        if kind is ...:
            return "..."
        if isinstance(kind, (str, typing.ForwardRef)):
            return repr(kind if isinstance(kind, str) else kind.__forward_arg__)
        if isinstance(kind, (list, tuple)):
            inner = ", ".join(map(self._inner_annotation, kind))
            return f"[{inner}]" if isinstance(kind, list) else f"({inner})"
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if isinstance(kind, types.UnionType):
            return " | ".join(map(self._inner_annotation, arguments))
        if origin is None:
            return self._typing_name(kind) or (self.name_of(kind) if callable(kind) else self.bind("annotation", kind))
        head = self._typing_name(kind) or self.name_of(origin)
        if origin is typing.Union and len(arguments) == 2 and arguments[1] is type(None):
            return f"{self._from_typing('Optional')}[{self.annotation(arguments[0])}]"
        if origin is typing.Literal:
            return f"{head}[{', '.join(map(self.spell, arguments))}]"
        return f"{head}[{', '.join(map(self._inner_annotation, arguments)) or '()'}]"

    def _inner_annotation(self, kind: Any) -> str:
        return "None" if kind is type(None) else self.annotation(kind)

    def _typing_name(self, kind: Any) -> str | None:
        """``List`` for ``typing.List[int]``: aliases of typing keep their own name."""
        if type(kind).__module__ != "typing" or isinstance(kind, typing.TypeVar):
            return None
        name = getattr(kind, "_name", None) or getattr(kind, "__name__", None)
        if name is None and typing.get_origin(kind) is not None:
            name = getattr(typing.get_origin(kind), "_name", None)
        return self._from_typing(name) if isinstance(name, str) and hasattr(typing, name) else None

    def _from_typing(self, name: str) -> str:
        return self._imported("typing", name, getattr(typing, name))


def _node_name(node: Any) -> str:
    return str(node.name)
