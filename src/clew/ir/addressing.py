"""Addressing: nodes by the module that made them, what they do, their source line, their name or the user's variable.

A graph and conditions come in; out come its nodes that meet all of them, in order, those of nested graphs included. A
module path is a pattern of names between dots: ``*`` stands within a name, ``**`` for any number of names. A node is
inside of every module of its ``nn_module_stack``; a call of a module that stays one node is inside of that one too.
``node_of`` gives what a module returned: one node, or a tuple, list or dict of nodes where it returned such.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from typing import Any

from clew.errors import GraphError, a_or_an
from clew.ir.arguments import nested_graphs
from clew.ir.effects import resolve
from clew.ir.module_calls import MARKS, ModuleCall, Unheld, all_calls, as_returned, not_returned, stack_of
from clew.ir.node import Node
from clew.ir.spellings import forms_of, operations_of


def find(
    graph: Any, module: str | None, op: Any, kind: type | None, line: str | int | None, name: str | None
) -> list[Node]:
    """The nodes of ``graph`` that meet all conditions that are not None."""
    nodes = [node for one in (graph, *nested_graphs(graph)) for node in one.nodes]
    wanted = None if module is None else path_pattern(module)
    return [
        node
        for node in nodes
        if (wanted is None or any(wanted.fullmatch(path) for path, _ in stack_of(node).values()))
        and (op is None or does(node, op, graph.owning_module))
        and (kind is None or any(_is_kind(found, kind) for _, found in stack_of(node).values()))
        and (line is None or _is_at(node, line))
        and (name is None or _is_named(node, name))
    ]


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


def calls_at(graph: Any, path: str, call: int | None = None) -> list[ModuleCall]:
    """The calls of the modules whose paths fit a pattern, all of them or the one of this number.

    A call inside of control flow is there once for each body that holds it. The error names the nearest paths.
    """
    if not isinstance(path, str):
        raise GraphError(
            f"a module is addressed by its path, and this is {a_or_an(path)}", fixes=["'encoder.layer.1', or a pattern"]
        )
    wanted = path_pattern(path)
    fitting = [one for one in all_calls(graph) if wanted.fullmatch(one.path)]
    found = [one for one in fitting if call is None or one.number == call]
    if not found and not any(MARKS in (node._meta or {}) for node in graph.nodes):
        found = _guessed(graph, path, call or 1)
    if not found:
        raise not_returned(path, call, graph)
    return found


def _guessed(graph: Any, path: str, call: int) -> list[ModuleCall]:
    """A call in a graph that another tool has recorded: its value is the only one that leaves the module."""
    key = path if call == 1 else f"{path}@{call - 1}"
    inside = {node for node in graph.nodes if key in stack_of(node) and node.op != "get_attr"}
    leaving = [node for node in graph.nodes if node in inside and not inside.issuperset(node.users)]
    given = tuple(Unheld("value") for _ in leaving)
    return [ModuleCall(key, path, graph, given, {}, leaving[0])] if len(leaving) == 1 else []


def node_of(graph: Any, path: str, call: int = 1) -> Any:
    """What a module returned in its first call, or another one: a node, or the nest of nodes that it returned."""
    found = calls_at(graph, path, call)[0].result
    return as_returned(found)
