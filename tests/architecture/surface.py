"""Writes down the public surface: every public name of `clew` and `clew.fx`, and how it is called.

In comes a loaded module; out come lines of text in alphabetical order, the same on each run. Parameters are written
with their names, kinds and defaults, and without annotations, whose spelling differs between Python versions. What a
class inherits from a framework is the framework's surface and is left out.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

MODULES = ("clew", "clew.fx")
GOLDEN = Path(__file__).with_name("surface.txt")
REGENERATE = "python -m tests.architecture.regenerate"

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+| from '[^']*'")
SPECIAL = ("__init__", "__call__", "__iter__", "__len__", "__getitem__", "__enter__", "__exit__")


def surface() -> str:
    """The text of the golden file, as the code stands now."""
    lines: list[str] = []
    seen: dict[int, str] = {}
    for name in MODULES:
        lines += describe_module(importlib.import_module(name), seen)
    return "\n".join(lines) + "\n"


def describe_module(module: ModuleType, seen: dict[int, str] | None = None) -> list[str]:
    """One line per public name of a module; a thing listed before under another name is only referred to."""
    seen = {} if seen is None else seen
    lines = []
    for name in public_names(module):
        full, value = f"{module.__name__}.{name}", getattr(module, name)
        if callable(value) and id(value) in seen:
            lines.append(f"{full} = {seen[id(value)]}")
        else:
            seen[id(value)] = full
            lines += describe(full, value)
    return lines


def public_names(module: ModuleType) -> list[str]:
    """What a module declares public, or, where it declares nothing, what it holds without an underscore."""
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return sorted(set(declared))
    values = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    return sorted(name for name, value in values.items() if not isinstance(value, ModuleType) and name != "annotations")


def describe(full: str, value: object) -> list[str]:
    """The lines of one public thing: a class with its members, a function with its parameters, or a plain value."""
    if inspect.isclass(value):
        return [f"{full}: class", *(f"{full}.{line}" for line in describe_members(value))]
    if inspect.isroutine(value):
        return [f"{full}{parameters(value)}"]
    if isinstance(value, ModuleType):
        return [f"{full}: module"]
    return [f"{full}: {type(value).__name__}"]


def describe_members(kind: type) -> list[str]:
    """The members of a class that Clew itself defines, its own ancestors' included."""
    home = kind.__module__.split(".")[0]
    owners = [owner for owner in reversed(kind.__mro__) if owner.__module__.split(".")[0] == home]
    members: dict[str, object] = {}
    for owner in owners:
        members |= {name: value for name, value in vars(owner).items() if is_public_member(name)}
    return [describe_member(name, members[name]) for name in sorted(members)]


def is_public_member(name: str) -> bool:
    """Members without an underscore, and the few special methods that users call through syntax."""
    return not name.startswith("_") or name in SPECIAL


def describe_member(name: str, value: object) -> str:
    """One member of a class: a method as it is called, a property, or a plain attribute."""
    if isinstance(value, (staticmethod, classmethod)):
        return f"{name}{parameters(value.__func__)} [{type(value).__name__}]"
    if inspect.isroutine(value):
        return f"{name}{parameters(value)}"
    if isinstance(value, property):
        return f"{name}: property" if value.fset is None else f"{name}: property, can be set"
    return f"{name}: attribute"


def parameters(function: object) -> str:
    """The parameters of a function between parentheses: names, kinds and defaults."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    listed = signature.parameters.values()
    plain = [each.replace(annotation=each.empty, default=_steady(each.default)) for each in listed]
    return ADDRESS.sub("", str(signature.replace(parameters=plain, return_annotation=signature.empty)))


class _Written:
    """A default value that shows as given text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _steady(default: object) -> object:
    """A default whose text is the same on each run: sets are sorted, functions and classes go by their names."""
    if default is inspect.Parameter.empty:
        return default
    if isinstance(default, (set, frozenset)):
        return _Written("{" + ", ".join(sorted(map(repr, default))) + "}")
    if inspect.isroutine(default) or inspect.isclass(default):
        return _Written(default.__qualname__)
    return default
