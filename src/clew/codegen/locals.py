"""The local names of generated functions: their parameters, and one name for the value of each node.

The nodes of a function come in, in order; out comes for each placeholder the parameter it is, and for the few nodes
whose own name cannot stand in this function another one. Always holds: no two nodes of a function share a local name,
no node has the name of the root, of a global that the code needs, or of another node's parameter. An inner function
refers to no local of an outer one, so the two may well have the same names.
"""

from __future__ import annotations

import functools
import keyword
from collections.abc import Iterable, Sequence
from typing import Any

from clew.ir.names import Namespace
from clew.ir.node import Node


def plain(text: str) -> str:
    """The text as a plain string: a class that derives from str may answer for itself anything it likes."""
    return text if type(text) is str else str.__str__(text)


_NO_NAMES = frozenset({*keyword.kwlist, "__debug__"})


@functools.lru_cache(maxsize=8192)
def is_plain_identifier(name: str) -> bool:
    """True for a name that can stand in code as it is."""
    return name.isidentifier() and name.isascii() and name not in _NO_NAMES


def needs_name(node: Node) -> bool:
    """False for a call whose value nobody uses: no local is made of it, so its name is free for others."""
    if node.users or node.op in ("placeholder", "get_attr"):
        return True
    return node.op == "call_function" and getattr(node.target, "__module__", "") == "_operator"


class Locals:
    """The parameters and local names of functions; ``fixed`` are names that no local may have."""

    def __init__(self, fixed: set[str], names: Namespace) -> None:
        self.parameters: dict[Node, tuple[str, str]] = {}
        self.literals: dict[Node, Any] = {}
        self.special: set[Node] = set()
        """All nodes whose value is perhaps not written as their name."""
        self._renamed: dict[Node, str] = {}
        self._fixed = fixed
        self._names = names
        for name in fixed:
            names.reserve(name)

    def add_function(self, nodes: Sequence[Node]) -> None:
        """Choose the names of a function over ``nodes``."""
        owners, parameters = self._choose_parameters([node for node in nodes if node.op == "placeholder"])
        self._choose_locals(nodes, owners)
        for node, (stars, name) in parameters.items():
            self.parameters[node] = (stars, name or self.name(node))

    def name(self, node: Node) -> str:
        """The local name of a node's value."""
        return self._renamed.get(node) or node.name

    def rename(self, node: Node, name: str) -> None:
        """Let the value of a node have the variable ``name``, which the caller knows to be free for it."""
        self._renamed[node] = name
        self.special.add(node)

    def stand_for(self, node: Node, value: Any) -> None:
        """Let ``value``, a literal, be written wherever the value of ``node`` is used."""
        self.literals[node] = value
        self.special.add(node)

    def claim(self, node: Node, taken: set[str]) -> None:
        """Give a node of a block a name that is not among those ``taken`` in its function, and take it."""
        name = node.name
        if type(name) is not str or not is_plain_identifier(name) or name in taken:
            self.rename(node, self._names.create_name(plain(name)))
        self._names.reserve(self.name(node))
        taken.add(self.name(node))

    def fresh(self, candidate: str) -> str:
        """A name that nothing in the code has."""
        return self._names.create_name(candidate)

    def taken_by(self, nodes: Iterable[Node]) -> set[str]:
        """All names of a function that ``add_function`` has chosen, and those that no local may have."""
        named = {self.name(node) for node in nodes if needs_name(node)}
        return named | self._fixed | {self.parameters[node][1] for node in nodes if node in self.parameters}

    def _choose_parameters(self, inputs: list[Node]) -> tuple[dict[str, Node], dict[Node, tuple[str, str]]]:
        """Each placeholder's parameter is called like its target, unless that name is taken or no identifier."""
        owners: dict[str, Node] = {}
        parameters: dict[Node, tuple[str, str]] = {}
        unnamed = []
        for node in inputs:
            target = plain(node.target)
            name = target.lstrip("*")
            stars = target[: len(target) - len(name)]
            parameters[node] = (stars if len(stars) < 3 else "", name)
            if not is_plain_identifier(name) or name in self._fixed or owners.setdefault(name, node) is not node:
                unnamed.append(node)
        for node in unnamed:
            parameters[node] = (parameters[node][0], "")
        return owners, parameters

    def _choose_locals(self, nodes: Sequence[Node], owners: dict[str, Node]) -> None:
        """Let nodes be called by their own names; those for which that is not possible get others in the end."""
        named = [node for node in nodes if node.users or needs_name(node)]
        odd: list[Node] = []
        if not self._take_all([node.name for node in named], owners):
            odd = self._take_usable(named, owners)
        for name in owners:
            self._names.reserve(name)
        for node in odd:
            self.rename(node, self._names.create_name(plain(node.name)))

    def _take_all(self, names: list[str], owners: dict[str, Node]) -> bool:
        """Take all names of a function if every single one can be used, which is nearly always so; else take none."""
        if not set(map(type, names)) <= {str}:
            return False
        different = set(names)
        if len(different) < len(names) or not different.isdisjoint(self._fixed | _NO_NAMES):
            return False
        if not all(map(str.isidentifier, names)) or not "".join(names).isascii():
            return False
        if any(name in different and owner.name != name for name, owner in owners.items()):
            return False
        self._names.reserve_all(names)
        return True

    def _take_usable(self, named: list[Node], owners: dict[str, Node]) -> list[Node]:
        """Take the names that can be used; returns the nodes that need other ones."""
        odd = []
        seen = set(self._fixed)
        for node in named:
            name = node.name
            usable = type(name) is str and name not in seen and is_plain_identifier(name)
            if not usable or owners.get(name, node) is not node:
                odd.append(node)
            else:
                seen.add(name)
                self._names.reserve(name)
        return odd
