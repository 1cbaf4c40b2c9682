"""Lines of generated code, each with the node it belongs to, and their comments.

A ``Draft`` collects the lines of one function while it is written. A ``Commentator`` adds, for reading, where a line
comes from and the type of its value: off by default, ``print_readable`` turns it on. All text that comes from outside
is kept on one line.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType, Type, type_of

_INDENT = "    "


class Line(NamedTuple):
    """A line of code, indented as it is inside its function, and the node of the function's graph that it is for.

    A line of an inner function comes from a node of the inner graph, its ``origin``; any other from ``node`` itself.
    """

    text: str
    node: Node
    origin: Node

    @property
    def is_inner(self) -> bool:
        """True for a line of an inner function."""
        return self.origin is not self.node

    def indented(self) -> Line:
        """The line one step further to the right."""
        return self._replace(text=f"{_INDENT}{self.text}") if self.text else self


_made = tuple.__new__


def line_of(text: str, node: Node) -> Line:
    """The line of a node itself; what the constructor does, with one call less, because there are so many."""
    return _made(Line, (text, node, node))


@dataclass
class Draft:
    """What is known of a function while it is written."""

    parameters: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    returns: str = ""
    keywords: list[str] = field(default_factory=list)
    rest: str = ""
    has_default: bool = False
    nameless: int = 0
    stars: set[str] = field(default_factory=set)

    def add_parameter(self, text: str, default: str, keyword_only: bool) -> None:
        """Note a parameter where Python wants it: positional ones, ``*args``, keyword-only ones, ``**kwargs``."""
        # A parameter without a default cannot follow one with a default, but for ``*args``.
        misplaced = self.has_default and not default and text[0] != "*"
        if text.startswith("**"):
            self.rest = text
        elif keyword_only or misplaced:
            self.keywords.append(text + default)
        else:
            self.has_default = self.has_default or bool(default)
            self.parameters.append(text + default)

    def signature(self) -> list[str]:
        """All parameters in order; the first ``nameless`` ones can only be passed by position."""
        has_star = any(text.startswith("*") for text in self.parameters)
        star = ["*"] if self.keywords and not has_star else []
        first = [*self.parameters[: self.nameless], "/"] if self.nameless else []
        return [*first, *self.parameters[self.nameless :], *star, *self.keywords, *([self.rest] if self.rest else [])]


_DIM, _RESET = "\x1b[2m", "\x1b[0m"


class Commentator:
    """Decides what is said around a statement; says nothing unless ``verbose``.

    ``shown`` if the code is for people, not for running, and ``inline`` if values are written there where they are
    used; ``asking`` if it only asks whether guards hold.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.verbose = bool(options.get("verbose"))
        self.shown = bool(options.get("shown"))
        self.asking = bool(options.get("asking"))
        self.inline = bool(options.get("inline"))
        modules = options.get("modules")
        self.modules = self.inline if modules is None else modules
        self._module = ""
        self.include_stride = bool(options.get("include_stride"))
        self.include_device = bool(options.get("include_device"))
        self.colored = bool(options.get("colored"))
        self._last = ""

    def around(self, node: Node, name: str, text: str) -> list[str]:
        """The lines of a statement, which may give the local ``name`` its value, with its comments."""
        if not self.verbose:
            return [*self.heading(node), text]
        lines = self.heading(node)
        place = "" if node.op in ("placeholder", "output") else self._place(node)
        if place and place != self._last:
            self._last = place
            lines += ["", f"{_DIM}{place}{_RESET}" if self.colored else place]
        described = self.describe(node) if node.op not in ("placeholder", "output") else ""
        if described and text.startswith(f"{name} = "):
            text = f"{name}: {_quoted(described)} = {text[len(name) + 3 :]}"
        return [*lines, text]

    def heading(self, node: Node) -> list[str]:
        """A line that names the module whose inside begins here, where that is another one than before."""
        path = None if not self.modules or node.op in ("placeholder", "output") or _reads(node) else module_path(node)
        if path is None or path == self._module:
            return []
        self._module = path
        return [f"# {path}"] if path else []

    def parameter_annotation(self, node: Node) -> str:
        """The type of an input as an annotation."""
        described = self.describe(node) if self.verbose else ""
        return f": {_quoted(described)}" if described else ""

    def describe(self, node: Node) -> str:
        """The type of a node's value, from its own account or from what a pass left in ``meta``."""
        value = node.value_type or node.meta.get("val", node.meta.get("tensor_meta"))
        kind = value if isinstance(value, Type) else type_of(value) if hasattr(value, "dtype") else None
        if not isinstance(kind, ArrayType):
            return "" if kind is None or hasattr(value, "dtype") else _one_line(str(kind))
        text = _one_line(str(ArrayType(kind.dtype, kind.shape)))
        stride = getattr(value, "stride", None)
        if self.include_stride and callable(stride):
            text += str(list(stride()))
        return text + (f" {_one_line(kind.device)}" if self.include_device else "")

    @staticmethod
    def _place(node: Node) -> str:
        source = node.source
        if source is None:
            return ""
        return _one_line(f"# File: {source.filename}:{source.lineno} in {source.function}, code: {source.text}")


def import_lines(lines: Iterable[str]) -> list[str]:
    """Import statements as people order them: packages first, and all names of a module in one line."""
    packages, names = set(), dict[str, list[str]]()
    for line in lines:
        module, is_from, name = line.removeprefix("from ").partition(" import ")
        if is_from and line.startswith("from "):
            names.setdefault(module, []).append(name)
        else:
            packages.add(line)
    members = {module: ", ".join(sorted(some)) for module, some in sorted(names.items())}
    return [*sorted(packages), *(f"from {module} import {some}" for module, some in members.items())]


def _reads(node: Node) -> bool:
    """Whether a node only reads an attribute, a fact or a size, which are read where they are first needed."""
    is_size = node.target is operator.getitem and isinstance(node.value_type, ScalarType)
    return node.op == "get_attr" or node.target is getattr or is_size


def module_path(node: Node) -> str | None:
    """The path of the module inside of which a node was recorded, as code writes it; None where that is not known."""
    stack = (node._meta or {}).get("nn_module_stack")
    if not stack:
        return None
    *around, (path, _) = stack.values()
    if node.op == "call_module" and path == node.target:  # which is the leaf itself
        path = around[-1][0] if around else ""
    return _NUMBER.sub(r"[\1]", path) if isinstance(path, str) else None


_NUMBER = re.compile(r"\.(\d+)(?=\.|$)")


def _one_line(text: str) -> str:
    return "".join(character if character.isprintable() and character != '"' else "'" for character in text)


def _quoted(line: str) -> str:
    return '"' + line.replace("\\", "\\\\") + '"'
