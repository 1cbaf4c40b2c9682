"""The rules of the IR: what makes a list of nodes a graph. This file is their definition.

A graph comes in and is left as it is; the first broken rule is raised as an error that names the node.

1. Every opcode is one of the six and its target fits.          4. Names are unique.
2. Arguments are nodes of this graph that come earlier.         5. At most one output, and it is the last node.
3. ``users`` is exactly the reverse of the arguments.           6. Paths exist in the owning module, if there is one.
7. Guards read inputs of this graph.

Graphs inside a graph keep the same rules; those of branches and loops are in ``control_flow``.
"""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from clew.errors import (
    DuplicateName,
    ErasedNode,
    ForeignNode,
    GraphError,
    MissingAttribute,
    OutputCount,
    UseBeforeDefinition,
)
from clew.ir.arguments import with_bodies
from clew.ir.control_flow import check_control
from clew.ir.guests import guest_of
from clew.ir.node import Node, check_opcode, order_of

if TYPE_CHECKING:
    from clew.ir.graph import Graph


_FUNCTIONS = frozenset({BuiltinFunctionType, FunctionType, type})
"""Classes of targets that can be called for certain."""


def verify(graph: Graph, root: Any = None) -> None:
    """Raise the first broken rule of ``graph``; return if there is none.

    ``root`` has the attributes that a graph inside another one refers to; for one on its own that is its owner.
    """
    nodes = order_of(graph)
    functions = [node.target for node in nodes if node.op == "call_function"]
    others = [node for node in nodes if node.op != "call_function"]
    if not _FUNCTIONS.issuperset(map(type, functions)):
        _check_targets([node for node in nodes if node.op == "call_function"])
    _check_targets(others)
    _check_output(nodes, [node for node in others if node.op == "output"])
    _check_uses(graph, nodes)
    _check_names(nodes)
    _check_guards(graph)
    root = graph.owning_module if root is None else root
    for node, bodies in with_bodies(nodes) if graph._may_nest else ():
        for body in bodies:
            verify(body, root)
        check_control(node)
    if root is not None:
        _check_attributes(others, root)


def _check_targets(nodes: list[Node]) -> None:
    """Whether a target fits its opcode depends on its class alone, and of opcodes and classes there are few."""
    kinds = {(node.op, type(node.target)): node for node in reversed(nodes)}
    for node in kinds.values():
        check_opcode(node.op, node.target, node.name)


def _check_output(nodes: list[Node], outputs: list[Node]) -> None:
    if outputs and outputs[0] is not nodes[-1]:
        _raise_after_output(nodes[nodes.index(outputs[0]) + 1], outputs[0])


def _check_uses(graph: Graph, nodes: list[Node]) -> None:
    """Inputs come earlier and know their users; and there are no users besides these."""
    seen: set[Node] = set()
    see = seen.add
    uses = 0
    for node in nodes:
        for used in node._inputs:
            if used not in seen or node not in used.users:
                _raise_for_argument(graph, node, used, seen)
            uses += 1
        see(node)
    if uses != sum(map(len, [node.users for node in nodes])):
        _raise_for_false_user(graph)


def _check_guards(graph: Graph) -> None:
    for one in graph._guards:
        for node in one.inputs:
            if node.graph is not graph or node._erased or node.op != "placeholder":
                raise ForeignNode(f"the guard {one} reads {node.name}, which is no input of this graph")


def _check_names(nodes: list[Node]) -> None:
    if len({node.name for node in nodes}) == len(nodes):
        return
    names: set[str] = set()
    for node in nodes:
        if node.name in names:
            raise DuplicateName(f"Node redefined name {node.name}!", where=_place(node))
        names.add(node.name)


def _place(node: Node) -> str:
    return "" if node.source is None else node.source.describe()


def _raise_after_output(node: Node, output: Node) -> None:
    if node.op == "output":
        raise OutputCount(
            f"this graph has two outputs: {output.name} and {node.name}",
            where=_place(node),
            fixes=["erase one; to return several values give one output a tuple of them"],
        )
    raise OutputCount(
        f"Node {node.name} comes after the output {output.name}, so it would never run",
        where=_place(node),
        fixes=[f"insert it before: with graph.inserting_before(graph.output_node()), or {output.name}.prepend(node)"],
    )


def _raise_for_argument(graph: Graph, node: Node, used: Node, seen: set[Node]) -> None:
    if used.graph is not graph:
        raise ForeignNode(
            f"Argument '{used}' of Node '{node}' does not belong to this Graph, but was used as an argument!",
            where=_place(node),
            fixes=["give node_copy an arg_transform that maps nodes of the other graph to nodes of this one"],
        )
    if used._erased:
        raise ErasedNode(f"Argument '{used}' of Node '{node}' was erased from the graph", where=_place(node))
    if used not in seen:
        raise _disorder(node, used)
    raise GraphError(f"Node '{used}' does not know its user '{node}'", where=_place(node))


def _disorder(node: Node, used: Node) -> UseBeforeDefinition:
    what = f"Argument '{used}' of Node '{node}' was used before it has been defined!"
    path = _path(used, node)
    if path:
        circle = " -> ".join(step.name for step in [*path, used])
        return UseBeforeDefinition(what, where=_place(node), why=f"the nodes form a cycle: {circle}")
    return UseBeforeDefinition(
        what,
        where=_place(node),
        why="nodes run in the order in which they stand",
        fixes=[f"move {used} before {node}: {node}.prepend({used})"],
    )


def _path(start: Node, goal: Node) -> list[Node]:
    """The nodes from ``start`` to ``goal`` along arguments, or nothing; a walk without recursion."""
    came_from: dict[Node, Node | None] = {start: None}
    stack = [start]
    while stack:
        node = stack.pop()
        if node is goal:
            path = [node]
            while (before := came_from[path[-1]]) is not None:
                path.append(before)
            return path[::-1]
        for used in node._inputs:
            if used not in came_from:
                came_from[used] = node
                stack.append(used)
    return []


def _raise_for_false_user(graph: Graph) -> None:
    """All uses are known to the used nodes; if there are more users than uses, some are users in name only."""
    real = {node: set(node._inputs) for node in graph.nodes}
    for node in graph.nodes:
        for user in node.users:
            if node not in real.get(user, ()):
                raise GraphError(
                    f"Node '{node}' counts '{user}' among its users, which does not use it", where=_place(node)
                )


def _check_attributes(nodes: list[Node], root: Any) -> None:
    for node in nodes:
        if node.op in ("get_attr", "call_module"):
            _check_path(node, root)


def _is_module(value: Any) -> bool:
    """A framework's array or parameter is no module even if it could be called."""
    guest = guest_of(value)
    is_array = guest is not None and guest.array_class is not None and isinstance(value, guest.array_class)
    return callable(value) and not is_array


def _check_path(node: Node, root: Any) -> None:
    atoms = str(node.target).split(".")
    found = root
    for depth, atom in enumerate(atoms):
        if not hasattr(found, atom):
            holder = ".".join(atoms[:depth]) or "the root"
            raise MissingAttribute(
                f"Node {node} target {node.target} references nonexistent attribute {atom} of {holder}",
                where=_place(node),
                fixes=["add it to the root with add_submodule or setattr, or correct the target"],
            )
        found = getattr(found, atom)
    if node.op == "call_module" and not _is_module(found):
        raise MissingAttribute(
            f"Node {node} target {node.target} does not reference an nn.Module but a {type(found).__name__}",
            where=_place(node),
            fixes=["use get_attr for a parameter, buffer or constant"],
        )
