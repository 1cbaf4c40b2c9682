"""Addressing: nodes by the module that made them, what they do, their source line, their name or the user's variable.

A graph and conditions come in; out come its nodes that meet all of them, in order, those of nested graphs included. A
module path is a pattern of names between dots: ``*`` stands within a name, ``**`` for any number of names. A node is
inside of every module of its ``nn_module_stack``; a call of a module that stays one node is inside of that one too.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterable
from typing import Any

from clew.errors import GraphError
from clew.ir.arguments import nested_graphs
from clew.ir.effects import resolve
from clew.ir.node import Node
from clew.ir.spellings import forms_of, operations_of
from clew.ir.types import ArrayType


def find(
    graph: Any, module: str | None, op: Any, kind: type | None, line: str | int | None, name: str | None
) -> list[Node]:
    """The nodes of ``graph`` that meet all conditions that are not None."""
    nodes = [node for one in (graph, *nested_graphs(graph)) for node in one.nodes]
    wanted = None if module is None else path_pattern(module)
    return [
        node
        for node in nodes
        if (wanted is None or any(wanted.fullmatch(path) for path, _ in _stack(node).values()))
        and (op is None or does(node, op, graph.owning_module))
        and (kind is None or any(_is_kind(found, kind) for _, found in _stack(node).values()))
        and (line is None or _is_at(node, line))
        and (name is None or _is_named(node, name))
    ]


def _stack(node: Node) -> dict[str, tuple[str, Any]]:
    found: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    return found


@functools.lru_cache(maxsize=256)
def path_pattern(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern of module paths."""
    names = [".*" if one == "**" else re.escape(one).replace(r"\*", "[^.]*") for one in pattern.split(".")]
    return re.compile(r"\.".join(names))


def does(node: Node, op: Any, root: Any) -> bool:
    """Whether a node does what ``op`` says: a function however it is spelled, a class of modules, an opcode, a name.

    ``root`` has the modules, of which graphs inside of a graph do not know.
    """
    if isinstance(op, str):
        return op in (node.op, node.target) or any(form.operation == op for form in forms_of(node))
    if isinstance(op, type) and node.op == "call_module":
        return isinstance(resolve(root, str(node.target)), op)
    if node.op == "call_function" and node.target == op:
        return True
    wanted = operations_of(op)
    return any((form.framework, form.operation) in wanted for form in forms_of(node))


def _is_kind(found: Any, kind: type) -> bool:
    return issubclass(found, kind) if isinstance(found, type) else found == f"{kind.__module__}.{kind.__qualname__}"


def _is_named(node: Node, name: str) -> bool:
    """Whether a node, or the user's variable that its value was assigned to, has a name."""
    variable = None if node.source is None else node.source._variable
    return fnmatch.fnmatchcase(node.name, name) or variable == name


def _is_at(node: Node, line: str | int) -> bool:
    """Whether a node comes from a line, given as a number or as ``model.py:12``."""
    if node.source is None:
        return False
    if isinstance(line, int):
        return node.source.lineno == line
    return f"/{node.source.filename}:{node.source.lineno}".endswith(f"/{line}")


def node_of(graph: Any, path: str, call: int = 1) -> Node:
    """The value that a module returned in its first call, or another one: the last array computed inside of it that is
    used outside."""
    key = path if call == 1 else f"{path}@{call - 1}"
    nodes: list[Node] = [node for one in (graph, *nested_graphs(graph)) for node in one.nodes]
    inside = [node for node in nodes if key in _stack(node) and node.op != "get_attr"]
    if not inside:
        raise GraphError(f"the graph has no node of call {call} of the module {path!r}", fixes=[_known(nodes, path)])
    members = set(inside)
    leaving = [node for node in inside if any(user not in members for user in node.users)]
    arrays = [node for node in leaving if node.value_type is None or isinstance(node.value_type, ArrayType)]
    return (arrays or leaving or inside)[-1]


def _known(nodes: Iterable[Node], path: str) -> str:
    paths = {found: None for node in nodes for found, _ in _stack(node).values() if found}
    last = path.rpartition(".")[2]
    near = [found for found in paths if last in found] or list(paths)
    return (
        f"modules of the graph: {', '.join(near[:8])}{', ...' if len(near) > 8 else ''}" if paths else "none is known"
    )
