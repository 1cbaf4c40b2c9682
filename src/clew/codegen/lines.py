"""Lines of generated code, each with the node it belongs to, and what is known of a function while it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from clew.ir.node import Node

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
