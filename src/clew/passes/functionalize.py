"""Functionalisation: writes into arrays become calls that give new arrays, as compilers and other frameworks want it.

A graph or a captured torch program comes in, is changed in place and returned. ``y.add_(z)`` becomes ``y + z`` in the
dtype of ``y``, ``y[i] = z`` becomes ``clew.with_item(y, i, z)``, and later uses of ``y`` and of its views use that;
what a view is written with reaches the array behind it. Branches and loops return what they wrote into. Inputs and
attributes are written once, by ``copy_`` right before the program sets other state and returns, under a guard that they
share no memory. ``remaining_writes`` lists what is left: those, and writes that nothing new can stand for
(``storages.py`` says why), which stay as they were.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clew.capture.recording.unused_calls import may_raise
from clew.frameworks.torch.functional_writes import apart, same_or_apart
from clew.ir.arguments import all_nodes, map_arg
from clew.ir.control_flow import Branch, Loop, control_of, give_values, inputs_of, output_of, returned
from clew.ir.effects import FIRST_WRITE, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Guard
from clew.ir.guests import package_of
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.passes.inline_modules import inline_layers
from clew.passes.program import ProgramT, add_guards, graph_in, opened
from clew.passes.storages import Inner, Storage, Storages
from clew.passes.views import gives_parts, inverted
from clew.passes.writes import Write, fit, is_write, require_no_gradients

_REASON = "functionalize writes into inputs and attributes at the end"


def functionalize(program: ProgramT) -> ProgramT:
    """The program with new arrays in the place of writes; it is changed in place and returned.

    A program that works on arrays of other frameworks than torch is left as it is.
    """
    graph = graph_in(program)
    if _other_framework(graph):
        return program
    with opened(program) as graphs:
        inline_layers(graph, graphs, lambda module: getattr(module, "inplace", False) is True)
        storages = Storages(graph)
        if storages.turns_outside:
            return program
        _freeze_attributes_of_bodies(storages)
        guards = list(_guards(graph, storages))
        _Rewriting(storages).run()
    add_guards(graph, guards)
    return program


@dataclass(frozen=True)
class Remaining:
    """A write that is left in a functionalised program, and why."""

    node: Node
    reason: str

    def __str__(self) -> str:
        place = "" if self.node.source is None else f" ({self.node.source.describe()})"
        return f"{self.node.name}: {self.reason}{place}"


def remaining_writes(program: Any) -> list[Remaining]:
    """The writes that a program still has, in branches and loops too, but for the last ones into inputs and attributes.

    An empty list is the promise that every other node only computes: ``copy_`` into an input or attribute stands right
    before other state is set and the output, and what is written is never read again. Calls of layers that keep
    statistics, of functions that nobody vouched for and assignments of attributes are no writes into arrays: they are
    not listed.
    """
    graph = graph_in(program)
    with opened(program) as graphs:
        storages = Storages(graph)
        whys = _reasons(storages)
        last = set(_last_writes(graph))
        nodes = [node for each in graphs for node in each.nodes if is_write(node) and node not in last]
    other = _other_framework(graph)
    if other:
        return [Remaining(node, f"the program works on arrays of {other}") for node in nodes]
    if storages.turns_outside:
        return [Remaining(node, "the program gives what it is given another shape") for node in nodes]
    return [Remaining(node, whys.get(node, "there is no call that gives a new array instead")) for node in nodes]


def _other_framework(graph: Graph) -> str:
    """Another framework than torch whose arrays a program works on; empty if there is none."""
    classes = [one.expected for one in graph.guards.entry if one.test in ("type", "array")]
    called = [node.target for node in all_nodes(graph) if node.op == "call_function"]
    found = {package_of(one) for one in (*classes, *called)} & {"numpy", "jax", "jaxlib", "tensorflow"}
    return min(found, default="")


def _reasons(storages: Storages) -> dict[Node, str]:
    found = {node: storages.alias[write.array].storage.frozen for node, write in storages.writes.items()}
    for inner in storages.inner.values():
        for body in inner.bodies:
            found |= _reasons(body)
    return {node: reason or "the program was not functionalised" for node, reason in found.items()}


def _begin_of_state(output: Node, values: list[Node]) -> Node:
    """Where a graph begins to write state other than arrays, which a call that raises before must leave as it is; the
    end of the graph if it writes none, or computes these values only then."""
    waiting, node = set(values), output
    while node.prev.op != "root":
        node = node.prev
        if node in waiting:
            return output
        if node.meta.get(FIRST_WRITE):
            return node
    return output


def _last_writes(graph: Graph) -> Iterator[Node]:
    """The calls of ``copy_`` into inputs and attributes right before the output."""
    output = output_of(graph)
    node = output.prev if output is not None else None
    while node is not None and node.op != "root":
        is_write_back = node.op == "call_method" and node.target == "copy_"
        if is_write_back and node.args[0].op in ("placeholder", "get_attr"):
            yield node
        elif node.op not in ("get_attr", "placeholder") and not node.users.keys() <= {output}:
            return
        node = node.prev


def _mark_writes(output: Node) -> None:
    """Let the program refuse to go on from an error of its own: what it wrote before, the original had written by then.
    All but the last write are undone."""
    if not any(node.meta.get(FIRST_WRITE) for node in output.graph.nodes):
        *_, last = reversed(list(_last_writes(output.graph)))
        last.meta[FIRST_WRITE] = True


def _freeze_attributes_of_bodies(storages: Storages) -> None:
    inside = {path for inner in storages.inner.values() for body in inner.bodies for path in body.attributes()}
    for node, alias in storages.alias.items():
        if node.op == "get_attr" and node.target in inside:
            alias.storage.frozen = alias.storage.frozen or "a branch or loop reads it as an attribute"
    storages.settle()


def _guards(graph: Graph, storages: Storages) -> Iterator[Guard]:
    """That arrays from outside share no memory, where one is written into and another is used after that; and that
    inputs have the ranks of the example, where an index decides whether something is a view."""
    written = [one for one in storages.storages() if one.outside and one.writes and not one.frozen]
    if written:
        same, apart_from = _given_with(storages, written)
        read = list(dict.fromkeys([*_read_after(storages, written), *apart_from]))
        others: dict[Any, int] = {_subject(one.base): 0 for one in read}
        first = min(min(one.writes) for one in written)
        calls = graph.find_nodes(op="call_module")
        others |= {Attribute(str(one.target)): 0 for one in calls if storages.place(one) > first}
        if len(written) + len(others) > 1:
            subject = Call(apart, (len(written), *(_subject(one.base) for one in written), *others))
            yield Guard(subject, "equals", True, "value", written[0].base.source, _REASON)
        for storage, operands in same.items():
            asked = [_subject(one.base) for one in operands if one not in read]
            if asked:
                subject = Call(same_or_apart, (_subject(storage.base), *asked))
                yield Guard(subject, "equals", True, "value", storage.base.source, _REASON)
    if storages.relies_on_ranks:
        for node in graph.find_nodes(op="placeholder"):
            if isinstance(node.value_type, ArrayType):
                rank, reason = len(node.value_type.shape), "functionalize took what an index selects for a copy"
                yield Guard(Call(getattr, (node, "ndim")), "equals", rank, "size", node.source, reason)


def _read_after(storages: Storages, written: list[Storage]) -> Iterator[Storage]:
    """The arrays from outside that are used after the first write, or in the branch or loop that it is in."""
    first = min(min(one.writes) for one in written)
    is_inside = any(storages.place(node) == first for node in storages.inner)
    for one in storages.storages():
        if one.outside and one not in written and storages.last_use_of_any(one) >= first + (not is_inside):
            yield one


def _given_with(storages: Storages, written: list[Storage]) -> tuple[dict[Storage, list[Storage]], list[Storage]]:
    """Arrays from outside that writes are given: those that may be the very array that is written, and the others."""
    same: dict[Storage, list[Storage]] = {}
    others: list[Storage] = []
    for node, operands in storages.operands.items():
        array = storages.writes[node].array
        storage = storages.alias[array].storage
        for one in operands if storage in written else ():
            own = storages.alias[one].storage
            found = [each for each in storages.storages() if each.outside and storages.may_be_one(each, own)]
            found = [each for each in found if each not in written]
            is_whole = own.outside and storages.is_base(array) and storages.is_base(one)
            if is_whole and node.target is not operator.setitem:
                same.setdefault(storage, []).extend(found)
            else:
                others += found
    return same, others


def _subject(node: Node) -> Any:
    return Attribute(str(node.target)) if node.op == "get_attr" else node


class _Rewriting:
    """One graph, and the node that holds the present value of each storage."""

    def __init__(self, storages: Storages) -> None:
        self.storages, self.graph = storages, storages.graph
        self.current: dict[Storage, Node] = {}
        self.version: dict[Storage, int] = {}
        self.seen: dict[Node, tuple[int, Node]] = {}
        """For views: of which version of the storage which node shows the elements."""
        self.views: dict[Node, Node] = {}
        last = [one for node in self.graph.nodes if _lets_go(node) for one in node.all_input_nodes]
        self.returned = Counter(storages.alias[one].storage for one in last if one in storages.alias)
        """How many of the values that are returned or kept lie in a storage."""

    def run(self, wanted: list[Node] | None = None) -> list[Node]:
        """Rewrite all nodes; the last values of the ``wanted`` inputs of a body come out."""
        before = [node for node in self.graph.nodes if node.users]
        for node in list(self.graph.nodes):
            if node.op == "output":
                self._output(node)
            else:
                self._node(node)
        with self.graph.inserting_before(output_of(self.graph)):
            found = [self._value(node) for node in wanted or ()]
        for node in reversed(before):
            if not node.users and node not in found and node in self.seen and not may_raise(node):
                self.graph.erase_node(node)  # a view that others stand for now
        return found

    def _node(self, node: Node) -> None:
        change = self._object if sets_state(node.target) else self._value
        with self.graph.inserting_before(node):
            node.args, node.kwargs = map_arg((node.args, node.kwargs), change)
        inner, write = self.storages.inner.get(node), self.storages.writes.get(node)
        alias = self.storages.alias.get(node)
        if inner is not None:
            self._control(node, inner)
        elif write is not None and self.storages.is_expressed(write.array):
            self._write(node, write)
        elif alias is not None and alias.of is not None and not alias.is_same:
            self._show(node, node)

    # ---- values ------------------------------------------------------------------------------------------------------

    def _value(self, node: Node) -> Node:
        """The node that has what is in an array now."""
        alias = self.storages.alias.get(node)
        version = 0 if alias is None or alias.storage.frozen else self.version.get(alias.storage, 0)
        if alias is None or not version:
            return node
        if alias.of is None:
            return self.current[alias.storage]
        if alias.is_same:
            return self._value(alias.of)
        known = self.seen.get(node)
        if known is None or known[0] != version:
            self._show(node, self._again(node, self._value(alias.of)))
        return self.seen[node][1]

    def _again(self, view: Node, behind: Node) -> Node:
        """The same view of another array."""
        made = self.graph.create_node(view.op, view.target, (behind, *view.args[1:]), dict(view.kwargs))
        return _like(made, view)

    def _put(self, node: Node, value: Node) -> None:
        """Let ``value`` be what is in an array, and so in all that lies in its memory."""
        chain: list[tuple[Node, Node]] = []
        alias = self.storages.alias[node]
        while alias.of is not None:
            behind = alias.of
            if not alias.is_same:
                behind = self._whole(behind)
                chain.append((node, value))
                value = _like(inverted(self.graph, node, self._value(behind), value), node)
                value.value_type = behind.value_type
            node, alias = behind, self.storages.alias[behind]
        self.current[alias.storage] = value
        self.version[alias.storage] = self.version.get(alias.storage, 0) + 1
        for view, shown in chain:
            self._show(view, shown)

    def _whole(self, node: Node) -> Node:
        """The array that was split, for the parts of one; any other array itself."""
        split = self.storages.alias[node].of if gives_parts(node) else None
        return node if split is None else split

    def _show(self, view: Node, shown: Node) -> None:
        self.seen[view] = (self.version.get(self.storages.alias[view].storage, 0), shown)
        self.views[shown] = view

    # ---- writes ------------------------------------------------------------------------------------------------------

    def _write(self, node: Node, write: Write) -> None:
        array = write.array
        if node.target is operator.setitem and self._is_there(node, array):
            self.graph.erase_node(node)
            return
        with self.graph.inserting_before(node):
            present = self._value(array)
        node.meta.pop(FIRST_WRITE, None)  # which was the end of the program: it is another now
        value = write.make(self.graph, node, present)
        if not (write.is_fitted or (write.is_fitted_without_gaps and self._fills_memory(array))):
            value = fit(self.graph, node, present)
        for one in (node, value):
            one.value_type = one.value_type or array.value_type
        self._check_parts(array, value)
        with self.graph.inserting_before(value.next):
            self._put(array, value)

    def _check_parts(self, array: Node, value: Node) -> None:
        if self.storages.alias[array].storage.has_parts:
            require_no_gradients(self.graph, value)

    def _fills_memory(self, array: Node) -> bool:
        """Whether an array has no gaps: what the program computed has none, a view or what it is given may."""
        return not self.storages.alias[array].storage.outside and self.storages.alias[self._root(array)].of is None

    def _is_there(self, node: Node, array: Node) -> bool:
        """Whether ``y[i] = v`` writes the elements that ``y[i]`` has, as Python does after ``y[i] += z``."""
        view = self.views.get(node.args[2])
        if view is None or view.target is not operator.getitem or view.args[1] != node.args[1]:
            return False
        alias = self.storages.alias[view]
        is_same = alias.of is not None and self._root(alias.of) is self._root(array)
        is_same = is_same and self.version.get(alias.storage, 0) > 0  # else nothing was written that this repeats
        return is_same and self.seen[view] == (self.version.get(alias.storage, 0), node.args[2])

    def _root(self, node: Node) -> Node:
        while (alias := self.storages.alias[node]).is_same and alias.of is not None:
            node = alias.of
        return node

    def _output(self, node: Node) -> None:
        """Write into what is outside, which is then returned itself; bodies return new values instead."""
        last = [pair for pair in self.current.items() if pair[0].outside and pair[1] is not pair[0].base]
        with self.graph.inserting_before(_begin_of_state(node, [value for _, value in last])):
            for storage, value in last if not self.storages.is_body else ():
                made = self.graph.call_method("copy_", (storage.base, value))
                made.source, made.value_type = value.source, storage.base.value_type
        if last and not self.storages.is_body:
            _mark_writes(node)
        with self.graph.inserting_before(node):
            node.args = map_arg(node.args, self._object)

    def _object(self, node: Node) -> Node:
        """The value that a program returns or keeps: arrays from outside themselves, and of several that share memory
        views of one."""
        alias = self.storages.alias.get(node)
        if alias is None or alias.storage.frozen or not self.version.get(alias.storage, 0):
            return node
        is_given = alias.storage.outside and not self.storages.is_body
        if alias.of is None:
            return node if is_given else self.current[alias.storage]
        if alias.is_same:
            return self._object(alias.of)
        if is_given or self.returned[alias.storage] > 1:
            return self._again(node, self._object(alias.of))
        return self._value(node)

    # ---- branches and loops ------------------------------------------------------------------------------------------

    def _control(self, node: Node, inner: Inner) -> None:
        written = sorted({place for body in inner.bodies for place in body.inputs_written()})
        if isinstance(inner.control, Branch):
            written = [place for place in written if self._is_seen_after(node, inner.operands[place])]
        finals = [_Rewriting(body).run([inputs_of(body.graph)[at] for at in written]) for body in inner.bodies]
        if not written:
            return
        if isinstance(inner.control, Branch):
            first = _return_more(node, inner, finals)
            places = dict(zip(written, range(first, first + len(written)), strict=True))
        else:
            places = _carry_more(node, inner, inner.control, finals[-1], written)
        with self.graph.inserting_before(node.next):
            for place, at in places.items():
                made = self.graph.call_function(operator.getitem, (node, at))
                made.source, made.value_type = node.source, inner.operands[place].value_type
                self._check_parts(inner.operands[place], made)
                self._put(inner.operands[place], made)

    def _is_seen_after(self, node: Node, operand: Node) -> bool:
        """Whether somebody looks at an array behind a node."""
        storage = self.storages.alias[operand].storage
        return storage.outside or storage.last_use > self.storages.place(node)


def _lets_go(node: Node) -> bool:
    return node.op == "output" or (node.op == "call_function" and sets_state(node.target))


def _like(made: Node, other: Node) -> Node:
    made.source, made.value_type, made.meta = other.source, other.value_type, dict(other.meta)
    return made


def _return_more(node: Node, inner: Inner, finals: list[list[Node]]) -> int:
    """Let the sides of a branch return these too; the place of the first of them comes out."""
    assert isinstance(inner.control, Branch)
    ends = [returned(body.graph) for body in inner.bodies]
    items = [user for user in node.users if user.target is operator.getitem and type(user.args[1]) is int]
    is_tuple = all(type(end) is tuple for end in ends) and len(items) == len(node.users)
    is_tuple = is_tuple and all(user.args[1] >= 0 for user in items)
    for body, end, values in zip(inner.bodies, ends, finals, strict=True):
        output_of(body.graph).args = ((*end, *values) if is_tuple else (end, *values),)
    if is_tuple:
        return len(ends[0])
    with node.graph.inserting_after(node):
        whole = node.graph.call_function(operator.getitem, (node, 0))
    whole.source, whole.value_type, node.value_type = node.source, node.value_type, None
    node.replace_all_uses_with(whole, delete_user_cb=lambda user: user is not whole)
    return 1


def _carry_more(node: Node, inner: Inner, loop: Loop, finals: list[Node], written: list[int]) -> dict[int, int]:
    """Let a loop carry the operands that its body writes into; out comes where in its result they stand."""
    count, offset = len(loop.carried), len(loop.carried) + loop.is_for
    new = [place for place in written if place >= count]
    for body in inner.bodies:
        _move_inputs(inputs_of(body.graph), count, new)
    _return_carried(inner.bodies[-1].graph, loop, [finals[written.index(place)] for place in new])
    for user in list(node.users):
        if user.args[1] >= count:
            user.args = (node, user.args[1] + len(new))
    now = control_of(node)
    assert isinstance(now, Loop)
    added = tuple(now.operands[place - offset] for place in new)
    kept = tuple(one for at, one in enumerate(now.operands) if at + offset not in new)
    give_values(node, (*now.carried, *added), kept)
    return {place: place if place < count else count + new.index(place) for place in written}


def _move_inputs(inputs: list[Node], count: int, new: list[int]) -> None:
    """Put the inputs at these places right behind the first ``count``."""
    behind = next((one for place, one in enumerate(inputs) if place >= count and place not in new), None)
    if behind is not None:
        for place in new:
            behind.prepend(inputs[place])


def _return_carried(body: Graph, loop: Loop, finals: list[Node]) -> None:
    output, values = output_of(body), returned(body)
    if isinstance(values, Node):
        with body.inserting_before(output):
            values = tuple(body.call_function(operator.getitem, (values, at)) for at in range(loop.returns))
    count = len(loop.carried)
    values = values or ()
    output.args = ((*values[:count], *finals, *values[count:]),)
