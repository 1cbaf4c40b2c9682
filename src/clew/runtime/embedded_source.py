"""Functions and classes of Clew's written out into a file that shall run without Clew.

In comes a function that a graph calls; out goes its source, with that of all it uses: functions and classes of Clew's
as source, constants as literals, everything of Python and of frameworks as imports. What uses an object that is none of
these is refused. Decorators that only declare something to Clew are left out.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from clew.errors import CodegenError
from clew.ir.names import name_for

_FRAMEWORKS = frozenset({"torch", "numpy", "jax", "jaxlib", "tensorflow", "keras"})
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_MOST = 60
"""Functions that one program may bring along: more of them is a part of Clew rather than a helper."""


def is_outside(value: Any) -> bool:
    """Whether something is of Python's own library or of a framework, so that a file may import it."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    package = str(home).partition(".")[0]
    return package in _FRAMEWORKS or package in sys.stdlib_module_names


class Embedded:
    """The source of all that one file brings along; ``imports`` are lines that it adds to."""

    def __init__(self, imports: dict[str, None]) -> None:
        self._imports = imports
        self._names: dict[str, Any] = {}
        self._sources: dict[str, str] = {}

    def add(self, value: Any) -> str:
        """Bring a function or class of Clew's along; its name in the file."""
        name = value.__name__
        known = self._names.setdefault(name, value)
        if known is not value:
            raise _refused(value, f"another function of the same name, {known.__module__}.{name}, is needed too")
        if name not in self._sources:
            if len(self._sources) >= _MOST:
                raise _refused(value, "it needs more of Clew than a file should bring along")
            self._sources[name] = ""
            tree = _definition(value)
            for used in _global_names(value):
                self._bring(used, value)
            self._sources[name] = ast.unparse(tree)
        return name

    def text(self) -> str:
        """All definitions, those first that others need when they are defined: constants, then functions, classes."""
        constants = [source for source in self._sources.values() if not source.startswith(("def ", "class "))]
        functions = [source for source in self._sources.values() if source.startswith("def ")]
        classes = [source for source in self._sources.values() if source.startswith("class ")]
        return "\n\n\n".join([*(["\n".join(constants)] if constants else []), *functions, *classes])

    def _bring(self, name: str, user: Any) -> None:
        """Bring what a function calls by a global name."""
        scope = _scope(user)
        value = scope[name]
        if isinstance(value, ModuleType):
            if not is_outside(value):
                raise _refused(user, f"it uses the module {value.__name__}")
            alias = "" if value.__name__ == name else f" as {name}"
            self._imports[f"import {value.__name__}{alias}"] = None
        elif isinstance(value, (FunctionType, type)) and str(value.__module__).startswith("clew."):
            if self.add(value) != name:
                raise _refused(user, f"it calls {value.__name__} by another name")
        elif isinstance(value, (FunctionType, BuiltinFunctionType, type)) or callable(value):
            dotted = name_for(value)
            if dotted is None or not is_outside(sys.modules.get(dotted.partition(".")[0])):
                raise _refused(user, f"it uses {name}")
            home, _, last = dotted.rpartition(".")
            if home != "builtins":
                self._imports[f"from {home} import {last}" + (f" as {name}" if last != name else "")] = None
        else:
            self._constant(name, value, user)

    def _constant(self, name: str, value: Any, user: Any) -> None:
        if self._names.setdefault(name, value) is not value:
            raise _refused(user, f"there are two constants {name}")
        self._sources[name] = f"{name} = {self._literal(value, user)}"

    def _literal(self, value: Any, user: Any) -> str:
        if type(value) in _PLAIN:
            return repr(value)
        if type(value) in (tuple, list, set, frozenset):
            inner = ", ".join(self._literal(part, user) for part in value)
            comma = "," if len(value) == 1 else ""
            return f"{type(value).__name__}(({inner}{comma}))"
        if type(value) is dict:
            items = (f"{self._literal(key, user)}: {self._literal(part, user)}" for key, part in value.items())
            return "{" + ", ".join(items) + "}"
        dotted = name_for(value) if isinstance(value, type) or callable(value) else None
        if dotted is not None and is_outside(sys.modules.get(dotted.partition(".")[0])):
            package, _, rest = dotted.partition(".")
            if package == "builtins":
                return rest
            self._imports[f"import {dotted.rpartition('.')[0]}"] = None
            return dotted
        if str(value).startswith("torch.") and type(value).__module__ == "torch":
            self._imports["import torch"] = None
            return str(value)
        member = getattr(value, "name", None)
        if isinstance(member, str) and member.isidentifier() and getattr(type(value), member, None) == value:
            self._imports[f"import {type(value).__module__}"] = None  # a member of an enumeration
            return f"{type(value).__module__}.{type(value).__qualname__}.{member}"
        raise _refused(user, f"it uses a {type(value).__qualname__}")


def _definition(value: Any) -> ast.stmt:
    """The definition of a function or class without decorators and documentation of Clew's own."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    except (OSError, TypeError, SyntaxError) as error:
        raise _refused(value, "its source is not found") from error
    if not isinstance(tree, (ast.FunctionDef, ast.ClassDef)):
        raise _refused(value, "its source is no definition")
    tree.decorator_list = [one for one in tree.decorator_list if ast.unparse(one) not in ("pure", "has_side_effect")]
    return tree


def _scope(value: Any) -> dict[str, Any]:
    home = sys.modules[value.__module__]
    return vars(home)


def _global_names(value: Any) -> Iterator[str]:
    """The globals that a function, or the methods of a class, use."""
    scope = _scope(value)
    codes = [value.__code__] if isinstance(value, FunctionType) else [
        one.__code__ for one in vars(value).values() if isinstance(one, FunctionType)
    ]  # fmt: skip
    names = [name for code in codes for name in _names_in(code)]
    names += [base.__name__ for base in getattr(value, "__bases__", ()) if base is not object]
    yield from (name for name in dict.fromkeys(names) if name in scope)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names_in(part)


def _refused(value: Any, why: str) -> CodegenError:
    return CodegenError(
        f"the graph calls {value.__module__}.{value.__qualname__}, which cannot be written into a file of its own",
        why=why,
        fixes=("clew.save keeps it for Clew",),
    )
