"""Surgery on captured programs: what a module returns goes through something else, a module is replaced or wrapped.

In comes a captured function or module and the path of a module in it; the graph is edited, and what it needs is put
where the root keeps its parts, so that ``state_dict``, ``.to()``, optimizers and pickles have it. Always holds: nothing
is changed if an error is raised; whoever used what the module returned uses the new value, and nobody else does. The
calls stay addressable: ``node_of`` gives what others see of a module, edits included.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable
from typing import Any

from clew.errors import GraphError, a_or_an
from clew.ir.arguments import all_nodes, nested_graphs
from clew.ir.control_flow import control_of, drop_unused_operands, inputs_of
from clew.ir.effects import resolve, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Guard, attribute_paths
from clew.ir.module_calls import MARKS, Mark, ModuleCall, Record, Unheld, calls_at, held_in, mapped, note_call, stack_of
from clew.ir.node import Node
from clew.ir.types import ArrayType

# ---- where the value of a call goes ----------------------------------------------------------------------------------


def calls_to_change(graph: Graph, path: str, call: int | None) -> list[ModuleCall]:
    """The calls that fit a path, each of which can be changed; else the error says which cannot, and what to do."""
    found = calls_at(graph, path, call)
    by_key: dict[str, list[ModuleCall]] = {}
    for one in found:
        by_key.setdefault(one.key, []).append(one)
        check_separable(one)
    for key, calls in by_key.items():
        graphs = [one.graph for one in calls]
        if any(inner is other for one in graphs for inner in nested_graphs(one) for other in graphs):
            raise GraphError(
                f"what the module {key!r} returns comes from a branch on one way, and from around it on another",
                why="there is no one place where its value could be changed",
                fixes=[f"keep the module as one call: clew.trace(..., leaves=[None, {calls[0].path!r}])"],
            )
    return found


def check_separable(call: ModuleCall) -> None:
    """Raise if uses of what a module returned cannot be told from uses of the same value by others."""
    if call.is_one_node or call.is_value:
        return
    for node, users in _users_behind(call)[1].items():
        keeping = [user for user in users if sets_state(user.target)]
        if keeping or (not _is_own(call, node) and sum(_count(user, node) for user in users) > 1):
            what = "is also kept in its state" if keeping else "was given to it, and others use that too"
            raise GraphError(
                f"what the module {call.path!r} returned {what}",
                why="in the graph both are one value, and only one of them is to be changed",
                fixes=[f"keep the module as one call: clew.trace(..., leaves=[None, {call.path!r}])"],
            )


def _is_own(call: ModuleCall, node: Node) -> bool:
    """Whether a value that a call returned was made in it."""
    return call.contains(node) or (node.target is operator.getitem and call.contains(node.args[0]))


def _count(user: Node, node: Node) -> int:
    """How often a node uses another one."""
    count = 0

    def look(leaf: Any) -> Any:
        nonlocal count
        count += leaf is node
        return leaf

    mapped((user.args, dict(user.kwargs)), look)
    return count


def redirect(call: ModuleCall, make: Callable[[list[Node]], list[Any]]) -> None:
    """Let all who use what a call returned use what ``make`` makes of its nodes instead, right behind the call."""
    graph, results = call.graph, call.results
    end, users = _users_behind(call)
    stack = _stack_inside(call)
    with graph.inserting_before(end):
        before = set(graph.nodes)
        made = make(results)
        for node in graph.nodes:
            if node not in before:
                node.meta["nn_module_stack"] = stack
                node.source = node.source or results[0].source
    for node, new in zip(results, made, strict=True):
        for user in users[node]:
            user.replace_input_with(node, new)
        if new is not node:
            new.value_type = new.value_type or node.value_type
            _move_marks(call, node, new)
    if call.is_value:
        return
    swapped = dict(zip(results, made, strict=True))
    _note_again(call, call.args, call.kwargs, mapped(call.result, lambda leaf: swapped.get(leaf, leaf)))


def _users_behind(call: ModuleCall) -> tuple[Node, dict[Node, list[Node]]]:
    """The node before which a call is over, and who uses its results from there on.

    That is behind all that was recorded inside, unless somebody uses a value that was made there before.
    """
    places = {node: place for place, node in enumerate(call.graph.nodes)}
    outside = {node: [user for user in node.users if not call.contains(user)] for node in call.results}
    made = 1 + max(places[node] for node in call.results)
    own = [node for node in outside if _is_own(call, node)]
    first = min((places[user] for node in own for user in outside[node]), default=len(places))
    last = 1 + max((place for node, place in places.items() if call.contains(node)), default=0)
    end = max(made, min(last, first))
    order = list(places)
    users = {node: [user for user in found if places[user] >= end] for node, found in outside.items()}
    return order[end], users


def _stack_inside(call: ModuleCall) -> dict[str, tuple[str, Any]]:
    """The modules that a node at the end of a call is inside of."""
    if call.is_value:
        return dict(stack_of(call.result))
    for node in call.graph.nodes:
        stack = stack_of(node)
        if call.key in stack:
            return dict(itertools.islice(stack.items(), list(stack).index(call.key) + 1))
    around = {
        key: entry
        for key, entry in stack_of(call.results[0]).items()
        if not entry[0] or call.path.startswith(f"{entry[0]}.")
    }
    return {**around, call.key: (call.path, "")}


def _move_marks(call: ModuleCall, node: Node, new: Node) -> None:
    """Calls around this one return the new value, and calls behind it are given that."""
    marks: dict[str, Mark] = dict((node._meta or {}).get(MARKS, {}))
    inside = {key for one in call.graph.nodes if call.contains(one) for key in _keys_behind(one, call.key)}
    moving = {
        key: mark
        for key, mark in marks.items()
        if key != call.key and key not in inside and not mark.path.startswith(f"{call.path}.")
    }
    if moving:
        node.meta[MARKS] = {key: mark for key, mark in marks.items() if key not in moving}
        new.meta[MARKS] = {**new.meta.get(MARKS, {}), **moving}


def _keys_behind(node: Node, key: str) -> Iterable[str]:
    return itertools.islice(stack_of(node), list(stack_of(node)).index(key) + 1, None)


def _note_again(call: ModuleCall, args: Any, kwargs: Any, result: Any) -> None:
    """Note on the nodes of a call what it is given and returns from now on."""
    for node in call.graph.nodes:
        marks = (node._meta or {}).get(MARKS, {})
        if call.key in marks:
            node.meta[MARKS] = {key: mark for key, mark in marks.items() if key != call.key}
    note_call(call.key, call.path, args, kwargs, result, lambda value: value if isinstance(value, Node) else None)


# ---- edits -----------------------------------------------------------------------------------------------------------


def insert_after(
    captured: Any, path: str, function: Any, call: int | None = None, name: str | None = None
) -> str | None:
    """Let what modules return go through a function, or through a module that becomes a part of the captured one.

    The name of that part comes out, None for a plain function.
    """
    calls = calls_to_change(captured.graph, path, call)
    for one in calls:
        if not isinstance(one.result, Node):
            raise GraphError(
                f"the module {one.path!r} returns {a_or_an(one.result)}, of which one value is to be changed",
                fixes=["put a function behind the nodes: captured.node_of(path), graph.inserting_after(node)"],
            )
    held = captured._add_part(name or f"after_{path}", function) if is_module(function) else None
    for one in calls:
        redirect(one, functools.partial(_called, one.graph, function, held))
    return held


def _called(graph: Graph, function: Any, held: str | None, nodes: list[Node]) -> list[Any]:
    args = tuple(nodes)
    return [graph.call_function(function, args) if held is None else graph.call_module(held, args)]


def is_module(value: Any) -> bool:
    """Whether something is a module of a framework, with parts of its own, and no mere function."""
    return hasattr(type(value), "named_parameters") and hasattr(type(value), "state_dict")


def replace_module(captured: Any, path: str, new: Any) -> None:
    """Let another module stand at a path, called with what the one before was called with."""
    calls = calls_to_change(captured.graph, path, None)
    if not is_module(new):
        raise GraphError(
            f"{path!r} is to be replaced by {a_or_an(new)}, which is no module",
            fixes=["give a torch.nn.Module", "captured.insert_after(path, function) changes what a module returns"],
        )
    if any(one.path != path for one in calls):
        raise GraphError(f"{path!r} is no path of a single module", fixes=["replace one module at a time"])
    for one in calls:
        _check_arguments(one)
    reads = _Reads(captured.graph, path, new, calls)
    place = captured._put_part(path, new)
    for one in calls:
        _call_at(one, place)
    dropped = reads.move_to(place)
    if dropped:
        vars(captured)["assumed"] = (*vars(captured).get("assumed", ()), *dropped)
    captured.graph.lint()


def _check_arguments(call: ModuleCall) -> None:
    """Raise unless the graph holds all that a call was given, and all that is used of what it returned."""
    if call.is_one_node:
        return
    unheld = [leaf for leaf in held_in((call.args, call.kwargs, call.result)) if isinstance(leaf, Unheld)]
    results = set(call.results)
    inner = [node for node in call.graph.nodes if call.contains(node) and node not in results and _is_array(node)]
    leaking = [node for node in inner if any(not call.contains(user) for user in node.users)]
    if not unheld and not leaking:
        return
    kept = ", ".join(f"a value of type {one.kind}" for one in unheld) or f"the value {leaking[0].name!r} of its inside"
    raise GraphError(
        f"the module {call.path!r} cannot be replaced in this graph",
        why=f"{kept} takes part in it, and the graph does not hold the call as such",
        fixes=[f"keep the module as one call: clew.trace(..., leaves=[None, {call.path!r}])"],
    )


def _is_array(node: Node) -> bool:
    return node.op != "get_attr" and (node.value_type is None or isinstance(node.value_type, ArrayType))


class _Reads:
    """What a program reads of a module that is replaced, besides calling it: ``self.wo.weight.dtype`` and the like.

    Where the new module has the old one inside, or a part of it, reads go there; else to what it has of that name. A
    read by the program that leads to nothing is an error before anything is changed; a guard on such is dropped.
    """

    def __init__(self, graph: Graph, path: str, new: Any, calls: list[ModuleCall]) -> None:
        self.graph, self.path, self.new, self.calls = graph, path, new, calls
        self.old = resolve(graph.owning_module, path)
        self.held = {part: name for name, part in new.named_modules()}
        for node in all_nodes(graph):
            if node.op == "get_attr" and self._is_meant(node.target) and self._found(node.target) is None:
                self._check_gone(node)

    def _is_meant(self, target: Any) -> bool:
        return str(target).startswith(f"{self.path}.")

    def _found(self, target: str) -> str | None:
        """Where the new module has what is read at a path, below the new module; None if it has not."""
        names = target[len(self.path) + 1 :].split(".")
        holder, rest = self.old, list(names)
        while len(rest) > 1 and is_module(getattr(holder, rest[0], None)):
            holder = getattr(holder, rest.pop(0))
        if holder in self.held:
            return ".".join(filter(None, [self.held[holder], *rest]))
        return ".".join(names) if resolve(self.new, ".".join(names)) is not None else None

    def _check_gone(self, node: Node) -> None:
        """Raise unless what is read goes with the calls of the module."""
        if self._is_needed(node):
            name = str(node.target)[len(self.path) + 1 :]
            raise GraphError(
                f"{self.path!r} is to be replaced by {a_or_an(self.new)}, which has no {name!r}",
                why="the program reads that besides calling the module",
                where="" if node.source is None else node.source.describe(),
                fixes=[f"give the new module an attribute {name!r}", "keep the old module inside of the new one"],
            )

    def _is_needed(self, node: Node) -> bool:
        """Whether somebody uses a value who is still there when the calls have gone."""
        waiting, seen = [node], {result for call in self.calls for result in call.results}
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            for user in one.users:
                inputs = _inputs_for(user, one)
                if inputs is None and not self._is_inside(user):
                    return True
                waiting += [user] if inputs is None else inputs
        return False

    def _is_inside(self, node: Node) -> bool:
        return any(call.contains(node) for call in self.calls)

    def move_to(self, place: str) -> list[Guard]:
        """Let reads go to the new module, which stands at ``place``; guards on what it has not come out."""
        for node in reversed(list(all_nodes(self.graph))):
            drop_unused_operands(node)
            is_read = node.op == "get_attr" and self._is_meant(node.target)
            found = self._found(node.target) if is_read else None
            if found is not None:
                node.target = f"{place}.{found}"
            elif not node.users and (is_read or (self._is_inside(node) and not node.is_impure())):
                node.graph.erase_node(node)
        guards = [(one, self._moved(one, place)) for one in self.graph.guards.entry]
        if any(one is not moved for one, moved in guards):
            self.graph.set_guards(tuple(moved for _, moved in guards if moved is not None))
        return [one for one, moved in guards if moved is None]

    def _moved(self, guard: Guard, place: str) -> Guard | None:
        """A guard that reads the new module where it read the old one; None if that has not what it reads."""
        found = {path: self._found(path) for path in attribute_paths([guard]) if self._is_meant(path)}
        if None in found.values():
            return None

        def moved(leaf: Any) -> Any:
            is_meant = isinstance(leaf, Attribute) and leaf.path in found
            return Attribute(f"{place}.{found[leaf.path]}") if is_meant else leaf

        return guard.mapped(moved) if found else guard


def _inputs_for(user: Node, node: Node) -> list[Node] | None:
    """The inputs of the bodies of a branch or loop that have a node's value; None where it is used otherwise."""
    control = control_of(user)
    if control is None or _count(user, node) != control.operands.count(node):
        return None
    count = len(control.operands)
    places = [place for place, one in enumerate(control.operands) if one is node]
    return [inputs_of(body)[-count:][place] for body in control.bodies for place in places]


def _call_at(call: ModuleCall, place: str) -> None:
    """Let a call be one of the module at a place; what the graph holds of the inside of the one before goes."""
    if call.is_one_node:
        call.result.target = place
        if place != call.path:
            _note_again(call, call.args, call.kwargs, call.result)
        return

    def make(results: list[Node]) -> list[Any]:
        whole = call.graph.call_module(place, call.args, call.kwargs)
        return [_taken(call.graph, whole, call.result, node) for node in results]

    inside = [node for node in call.graph.nodes if call.contains(node)]
    redirect(call, make)
    for node in reversed(inside):
        if not node.users:
            call.graph.erase_node(node)


def _taken(graph: Graph, value: Node, nest: Any, wanted: Node) -> Node:
    """What stands at the place of a node, taken out of the value of a call that returns such a nest."""
    if nest is wanted:
        return value
    nest = nest.items if isinstance(nest, Record) else nest
    items = nest.items() if isinstance(nest, dict) else enumerate(nest)
    key, item = next((key, item) for key, item in items if any(leaf is wanted for leaf in held_in((item,))))
    return _taken(graph, graph.call_function(operator.getitem, (value, key)), item, wanted)


def wrap_module(captured: Any, path: str, wrapper: Callable[[Any], Any]) -> Any:
    """Replace a module by ``wrapper(module)``, which has it inside; the wrapping module comes out."""
    module = resolve(captured if is_module(captured) else captured.root, path)
    calls = calls_to_change(captured.graph, path, None)
    if not all(one.is_one_node for one in calls):
        raise GraphError(
            f"the module {path!r} is no single call in this graph, so there is nothing to wrap",
            why="the graph holds what was inside of it",
            fixes=[f"keep the module as one call: clew.trace(..., leaves=[None, {path!r}])"],
        )
    made = wrapper(module)
    replace_module(captured, path, made)
    return made
