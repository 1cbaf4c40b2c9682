"""A joint graph in Clew's terms, and its two halves.

What torch's tracer has written down comes in; out come a ``Joint``, one graph that is called with the tangents and the
arguments of the program and gives its result and the gradients by name, and the two halves that it is cut into. Nodes
have the names, lines and modules of the nodes that they come from, those of the backward pass too. Always holds: the
order of operators is that of the trace, so that writes and random numbers come as they came there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from clew.backends.joint import Primal, Result, Trace, kind_of_tensor
from clew.io.torch_fx import graph_from_fx
from clew.ir.arguments import map_aggregate, map_arg, references
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Guard, guard
from clew.ir.node import Node
from clew.runtime.function import free_name
from clew.runtime.torch_captured import Live

STACK = "nn_module_stack"
_SAME = (torch.ops.aten.detach.default, torch.ops.aten.alias.default)
_TRANSPOSED = torch.ops.aten.t.default
_IDLE = (operator.getitem, torch.ops.aten.empty.memory_format, _TRANSPOSED)


@dataclass
class Joint:
    """A joint graph."""

    graph: Graph
    constants: dict[str, Any]
    """Attributes that the trace has made."""
    root: Any = None
    """What has the attributes and constants."""
    results: list[Node] = field(default_factory=list)
    """The tensors in the result, each once for each place."""
    result: Any = None
    """The value that the program returns: a node, or a nest of nodes."""
    gradients: dict[str, Node | None] = field(default_factory=dict)
    tail: list[Node] = field(default_factory=list)
    """The nodes that build the result."""
    behind: set[Node] = field(default_factory=set)
    """The nodes of the backward pass."""
    values: dict[Node, Any] = field(default_factory=dict)
    """For each node a fake tensor like the one that it gives, or a nest of such."""
    lent: set[int] = field(default_factory=set)
    """The memory that arguments and attributes lie in, and constants."""
    differentiable: list[int] = field(default_factory=list)
    """The places among the results of those that need gradients."""
    tangents: list[Any] = field(default_factory=list)
    """Fake tensors like their tangents."""


def joint_of(found: Trace) -> Joint:
    """The joint graph of a trace."""
    return _Writer(found).written()


class _Writer:
    """Writes a joint graph node by node."""

    def __init__(self, found: Trace) -> None:
        self.found, self.program = found, found.program
        self.source = graph_from_fx(found.module.graph)
        self.theirs = [node for node in found.module.graph.nodes if node.op != "output"]
        self.graph = Graph()
        self.made = Joint(self.graph, {})
        self.known: dict[Node, Node] = {}
        self.inputs: dict[Any, Node] = {}
        self.handed: set[Node] = set()
        """What is in the result."""
        self.tangents: Node

    def written(self) -> Joint:
        ours = list(self.source.nodes)
        *nodes, output = ours
        self.handed.update(output.args[0][0])
        self._write_inputs()
        for node, their in zip(nodes, self.theirs, strict=True):
            self._write(node, their)
        tensors, flags, gradients = output.args[0]
        self._write_guards(flags)
        self.made.differentiable = self.found.tangents
        self.made.results = [self.known[one] for one in tensors]
        names = [self.program.primals[place].name for place in self.found.wrt]
        for name, one in zip(names, gradients, strict=True):
            self.made.gradients[name] = None if one is None else self.known[one]
        self._write_tail()
        self.graph.output((self.made.result, dict(self.made.gradients)))
        self._write_entrance()
        _drop_unused(self.made)
        self.made.root = self.graph.owning_module = _root(self.program.root, self.made.constants)
        return self.made

    # ---- inputs --------------------------------------------------------------------------------------------------

    def _write_inputs(self) -> None:
        given = self.program.graph.find_nodes(op="placeholder")
        names = {str(node.target) for node in given}
        self.tangents = self.graph.placeholder(free_name("tangents", names.__contains__))
        self.made.behind.add(self.tangents)
        for node in given:
            self.inputs[node] = self.graph.node_copy(node)
        self.graph.set_guards(())
        primals = iter(self.program.primals)
        count = len(self.program.primals)
        held = [node for node in self.source.nodes if node.op == "placeholder"]
        for node, their in zip(held, self.theirs, strict=False):
            value = their.meta["val"]
            if count:
                count -= 1
                made = self._read(next(primals))
                self.made.lent.add(memory_of(value))
            else:
                place = len(self.made.tangents)
                made = self.graph.create_node("call_function", operator.getitem, (self.tangents, place), name="tangent")
                self.made.tangents.append(value)
                self.made.behind.add(made)
            made.value_type = node.value_type
            self.known[node], self.made.values[made] = made, value

    def _read(self, primal: Primal) -> Node:
        """Where a tensor comes in."""
        if isinstance(primal.subject, Attribute):
            return self.graph.create_node("get_attr", primal.subject.path)
        return self._of_input(primal.subject)

    def _of_input(self, subject: Any) -> Node:
        if isinstance(subject, Node):
            return self.inputs[subject]
        holder, key = subject.args
        return self.graph.call_function(operator.getitem, (self._of_input(holder), key))

    # ---- operators -----------------------------------------------------------------------------------------------

    def _write(self, node: Node, their: torch.fx.Node) -> None:
        if node in self.known:
            return
        if node.op == "get_attr":
            self._write_constant(node)
        elif (node.target in _SAME and node not in self.handed) or _is_back_again(node):
            before = node.args[0].args[0] if node.target is _TRANSPOSED else node.args[0]  # type: ignore[union-attr]
            self.known[node] = self.known[before]  # type: ignore[index]
            return
        else:
            self._write_call(node, their)
        value = self.made.values[self.known[node]] = their.meta.get("val")
        if node.op == "get_attr" and isinstance(value, torch.Tensor):
            self.made.lent.add(memory_of(value))

    def _write_constant(self, node: Node) -> None:
        name = f"_of_backward_{len(self.made.constants)}"
        self.made.constants[name] = getattr(self.found.module, str(node.target))
        self.known[node] = self.graph.create_node("get_attr", name)

    def _write_call(self, node: Node, their: torch.fx.Node) -> None:
        owner, is_behind = self.found.owners.get(their.name, (None, False))
        args, kwargs = map_arg(node.args, self.known.__getitem__), map_arg(node.kwargs, self.known.__getitem__)
        name = self.found.names.get(their.name, node.name)
        is_view = is_behind and node.target is torch.ops.aten.view.default
        target = torch.ops.aten.reshape.default if is_view else node.target  # kernels have strides that fakes have not
        made = self.known[node] = self.graph.create_node(node.op, target, args, kwargs, name)
        made.value_type = node.value_type
        _note_origin(made, owner)
        if is_behind:
            self.made.behind.add(made)

    def _write_guards(self, flags: Iterable[Node]) -> None:
        """The guards on values that the program computes, where these are computed."""
        for flag, one in zip(flags, self.found.assumed, strict=True):
            value = self.known[flag]
            before = value.next
            while before.op in ("placeholder", "get_attr"):
                before = before.next
            with self.graph.inserting_before(before):
                op = "call_method" if isinstance(one.how, str) else "call_function"
                answer = self.graph.create_node(op, one.how, (value,))
                check = self.graph.call_function(guard, (answer, one.answer))
            check.source = answer.source = one.node.source
            told = [user.meta["guard"] for user in one.node.users if "guard" in user.meta]
            check.meta["guard"] = dict(told[0]) if told else {}

    # ---- the end and the entrance --------------------------------------------------------------------------------

    def _write_tail(self) -> None:
        values: dict[Node, Any] = dict(self.found.results)

        def value_of(leaf: Any) -> Any:
            if not isinstance(leaf, Node):
                return leaf
            return self.inputs[leaf] if leaf in self.inputs else map_aggregate(values[leaf], self._result)

        for node in self.program.tail:
            args, kwargs = map_aggregate(node.args, value_of), map_aggregate(node.kwargs, value_of)
            if node.op == "output":
                self.made.result = args[0]
                break
            made = values[node] = self.graph.create_node(node.op, node.target, args, kwargs, node.name)
            _note_origin(made, node)
            self.made.tail.append(made)

    def _result(self, leaf: Any) -> Any:
        return self.made.results[leaf.number] if isinstance(leaf, Result) else leaf

    def _write_entrance(self) -> None:
        def moved(leaf: Any) -> Any:
            return self.inputs.get(leaf, leaf)

        guards = [one.mapped(moved) for one in (*self.program.graph.guards.entry, *self.program.guards)]
        for place, tangent in enumerate(self.made.tangents):
            subject = Call(kind_of_tensor, (Call(operator.getitem, (self.tangents, place)),))
            guards.append(Guard(subject, "equals", kind_of_tensor(tangent), "type"))
        self.graph.set_guards(tuple(guards))
        self.graph._code_guards = self.program.graph._code_guards


def _root(root: Any, constants: dict[str, Any]) -> Any:
    """The root of a program, with these constants besides."""
    if not constants:
        return root
    own = vars(root) if isinstance(root, Live) else {}
    known = {key: value for key, value in own.items() if key not in ("_self", "_state")}
    return Live(root._self if isinstance(root, Live) else root, {**known, **constants}, ())


def _is_back_again(node: Node) -> bool:
    before = node.args[0] if node.target is _TRANSPOSED else None
    return isinstance(before, Node) and before.target is _TRANSPOSED


def memory_of(value: torch.Tensor) -> int:
    """Which memory a fake tensor lies in."""
    return int(value.untyped_storage()._cdata)


def _note_origin(node: Node, owner: Node | None) -> None:
    if owner is not None:
        node.source = owner.source
        if owner.meta.get(STACK):
            node.meta[STACK] = owner.meta[STACK]


def _drop_unused(made: Joint) -> None:
    """Take away what is read or taken apart and then not used."""
    for node in reversed(list(made.graph.nodes)):
        is_idle = node.op == "get_attr" or node.target in _IDLE
        if is_idle and not node.users:
            made.graph.erase_node(node)
            made.behind.discard(node)
            made.values.pop(node, None)


# ---- the two halves --------------------------------------------------------------------------------------------------


@dataclass
class Halves:
    """The forward and the backward pass as two graphs."""

    forward: Graph
    """Called like the program; gives its result and a tuple of what the backward pass needs."""
    flat: Graph
    """The same, with a tuple of the tensors in the result instead of that."""
    finish: Graph
    """What makes the result of these tensors."""
    backward: Graph
    """Called with the tangents and what was saved; gives the gradients by name."""
    saved: list[Node]
    """The nodes of the joint graph that are saved."""
    rest: list[str] = field(default_factory=list)
    """The parameters of the program that ``finish`` is given behind the tensors."""


def is_given(node: Node) -> bool:
    """Whether a tensor is one that came in."""
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        return is_given(node.args[0])
    return node.op in ("placeholder", "get_attr")


def saved_of(joint: Joint) -> list[Node]:
    """What the backward pass needs of the forward pass, in order."""
    wanted = set(references(list(joint.gradients.values())))
    return [
        node for node in joint.graph.nodes
        if node not in joint.behind and (node in wanted or any(user in joint.behind for user in node.users))
    ]  # fmt: skip


def cut(joint: Joint, saved: list[Node], again: Callable[[Node], list[Node]] = lambda node: []) -> Halves:
    """Cut a joint graph. ``again`` tells which nodes of the forward pass to compute before one of the backward pass."""
    halves = Halves(Graph(), Graph(), Graph(), Graph(), saved)
    _write_forward(joint, halves)
    _write_backward(joint, halves, again)
    for graph in (halves.forward, halves.flat, halves.finish, halves.backward):
        graph.owning_module = joint.root
        graph.lint()
    return halves


def _copier(graph: Graph, known: dict[Node, Node]) -> Callable[[Node], Node]:
    def copied(node: Node) -> Node:
        known[node] = graph.node_copy(node, known.__getitem__)
        return known[node]

    return copied


def _write_forward(joint: Joint, halves: Halves) -> None:
    tail = set(joint.tail)
    known: dict[Node, Node]
    for graph in (halves.forward, halves.flat):
        known = {}
        copied = _copier(graph, known)
        for node in joint.graph.nodes:
            is_built = node in tail and graph is halves.flat
            if node.op != "output" and node not in joint.behind and not is_built:
                copied(node)
        result = joint.result if graph is halves.forward else tuple(joint.results)
        graph.output(map_arg((result, tuple(halves.saved)), known.__getitem__))
        graph.set_guards(_guards_for(joint, known))
        graph._code_guards = joint.graph._code_guards
    known = {}
    for number, node in enumerate(joint.results):
        known.setdefault(node, halves.finish.placeholder(f"result_{number}"))
    built = [(one.args, one.kwargs) for one in joint.tail]
    for node in references((built, joint.result)):
        if node not in known and node not in tail:
            known[node] = halves.finish.placeholder(node.name)
            halves.rest.append(str(node.target))
    copied = _copier(halves.finish, known)
    for node in joint.tail:
        copied(node)
    halves.finish.output(map_arg(joint.result, known.__getitem__))
    halves.finish.set_guards(())


def _guards_for(joint: Joint, known: dict[Node, Node]) -> tuple[Guard, ...]:
    """The guards of the joint graph over the inputs that a half has."""
    found = [one for one in joint.graph.guards.entry if all(node in known for node in one.inputs)]
    return tuple(one.mapped(lambda leaf: known.get(leaf, leaf)) for one in found)


def _write_backward(joint: Joint, halves: Halves, again: Callable[[Node], list[Node]]) -> None:
    graph = halves.backward
    known: dict[Node, Node] = {}
    copied = _copier(graph, known)
    first, *rest = [node for node in joint.graph.nodes if node in joint.behind]
    copied(first)
    for node in halves.saved:
        known[node] = graph.placeholder(node.name)
        known[node].value_type = node.value_type
    for node in rest:
        for one in again(node):
            copied(one)
        copied(node)
    graph.output(map_arg(dict(joint.gradients), known.__getitem__))
    about = [one for one in joint.graph.guards.entry if one.inputs and all(node is first for node in one.inputs)]
    graph.set_guards(tuple(one.mapped(lambda leaf: known.get(leaf, leaf)) for one in about))
