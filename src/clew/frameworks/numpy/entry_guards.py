"""The guards at the entrance of a captured NumPy program: checked before the graph does anything.

Every array among the inputs must be of the class that it was, and of the dtype and rank if the program may have seen
them; what the program took from around itself, variables and attributes of classes, must still be so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy

from clew.capture.guards import notes
from clew.capture.guards.notes import expression_of
from clew.capture.guards.variables import GuardsOfRun
from clew.capture.recording.alternatives import Choice, Kind
from clew.capture.recording.inputs import ExampleInputs
from clew.capture.state.containers import SIMPLE
from clew.capture.state.reachable import attribute_names
from clew.frameworks.numpy.array_proxy import Reliance, relying, stand_in
from clew.frameworks.numpy.facts import (
    has_an_axis,
    has_axes,
    holds_numbers,
    is_number,
    is_number_or_array,
    may_be_another,
    whole_argument,
)
from clew.frameworks.numpy.recorder import STREAMS, NumpyRecorder
from clew.ir.arguments import all_nodes, leaves
from clew.ir.control_flow import Loop, control_of, ends_of, inputs_of
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.node import Node


def array_guards(
    graph: Graph, value: Any, node: Node, reliance: Reliance = Reliance.DTYPE, least_rank: int = 0
) -> None:
    """An array, number or generator of NumPy's that comes in must be of the class that it was; an array of the rank and
    dtype, too, if the program relies on them: else it must have an axis, and hold numbers, if that one did."""
    name = expression_of(node)

    def require(found: Node, expected: Any, text: str) -> None:
        graph.call_function(notes.require, (found, expected, text))

    if isinstance(value, numpy.number) and reliance < Reliance.DTYPE:
        number_guards(graph, value, node, reliance)
        return
    graph.call_function(notes.require_type, (node, type(value), f"type({name}) is {type(value).__name__}"))
    if type(value) is not numpy.ndarray:
        return
    is_free = may_be_another(value)
    if is_free and reliance < Reliance.DTYPE:
        require(graph.call_function(holds_numbers, (node,)), True, f"{name} holds numbers")
    else:
        require(graph.call_function(getattr, (node, "dtype")), value.dtype, f"{name}.dtype == {value.dtype}")
    if is_free and reliance < Reliance.RANK:
        least = max(least_rank, 1)
        given = (has_an_axis, (node,)) if least == 1 else (has_axes, (node, least))
        found = graph.call_function(*given)
        require(found, True, f"{name}.ndim > {least - 1}")
    else:
        require(graph.call_function(getattr, (node, "ndim")), value.ndim, f"{name}.ndim == {value.ndim}")


def number_guards(graph: Graph, value: Any, node: Node, reliance: Reliance) -> None:
    """A number that comes in may be one of another class, or an array, unless the program relies on that."""
    name = expression_of(node)
    if reliance is Reliance.DTYPE:
        graph.call_function(notes.require_type, (node, type(value), f"type({name}) is {type(value).__name__}"))
        return
    is_free = reliance is Reliance.NOTHING
    found = graph.call_function(is_number_or_array if is_free else is_number, (node,))
    text = f"{name} is a number or an array of numbers" if is_free else f"{name} is a number"
    graph.call_function(notes.require, (found, True, text))


def is_nest(value: Any) -> bool:
    """Whether a value is a plain one, or a list, tuple or slice of such."""
    if type(value) is slice:
        return is_nest((value.start, value.stop, value.step))
    return type(value) in SIMPLE or (type(value) in (list, tuple) and all(map(is_nest, value)))


@pure
def text_of(value: Any) -> str:
    """The text of a plain value, which tells all numbers and their classes."""
    return repr(value) if is_nest(value) else f"a {type(value).__name__}"


def item_kind(value: Any, reliance: int) -> Any:
    """Of which kind an item of a list is, as far as a program relies on it; None for what a list may not hold."""
    if type(value) is numpy.ndarray:
        if not may_be_another(value):
            return f"{value.dtype}[{value.ndim} axes] "
        if reliance < Reliance.RANK:
            return "array"
        return f"array of {value.ndim} axes" if reliance == Reliance.RANK else f"{value.dtype}[{value.ndim} axes]"
    if is_number(value):
        return "number" if reliance < Reliance.DTYPE else type(value).__name__
    if type(value) is tuple:
        kinds = tuple([item_kind(one, reliance) for one in value])
        return None if None in kinds else kinds
    return None


@pure
def items_are(values: Any, kind: str, reliance: int) -> bool:
    """Whether all items of a list are of a kind."""
    return all(repr(item_kind(value, reliance)) == kind for value in values)


def _told(kind: Any) -> str:
    return f"({', '.join(map(_told, kind))})" if isinstance(kind, tuple) else str(kind)


class NumpyInputs(ExampleInputs):
    """What enters a capture; of a number it is guarded at the end what the program relies on."""

    recorder: NumpyRecorder

    def __init__(self, recorder: NumpyRecorder, static: frozenset[str]) -> None:
        def number(value: Any, place: Any) -> Any:
            return relying(stand_in(value, place, recorder), Reliance.NUMBERS)

        super().__init__(recorder, number, static)
        recorder.alike_items = self.alike_items  # type: ignore[method-assign]
        self.numbers: list[tuple[Any, Any]] = []
        self.wholes: list[tuple[Any, Any]] = []
        """Arguments that are only handed on; what they are is guarded if the program relies on what calls give."""
        self.examples: list[Any] = []
        """The arrays among the arguments of the example, for guesses what others may be like."""

    def takes_whole(self, value: Any) -> bool:
        """Whether an argument that is only handed on is a shape, an axis, a text, a dtype, a list of numbers, a slice,
        and no number or array, which may be other ones anyway."""
        is_number = type(value) in (bool, int, float, complex)
        return not is_number and (is_nest(value) or isinstance(value, (type, numpy.dtype)))

    def whole(self, value: Any, place: Any) -> Any:
        """The proxy of such an argument."""
        self.wholes.append((value, place))
        return whole_argument(value, place, self.recorder)

    # ---- lists of any length -------------------------------------------------------------------------------------

    items_are: Callable[..., bool] = staticmethod(items_are)
    """Tells whether all items of a list are of a kind."""
    item_kind: Callable[..., Any] = staticmethod(item_kind)

    def kind_in_list(self, value: Any) -> Any:
        """Of which kind an item of a list is; None for what a list of any length may not hold."""
        kind = repr(self.item_kind(value, Reliance.DTYPE))
        return None if "None" in kind else kind

    def alike_items(self, items: list[Any], place: Any) -> Node | None:
        """A node that tells whether all items of a list of the state are of the kind of these; None where these are of
        several."""
        kinds = {self.kind_in_list(self.recorder.concrete(item)) for item in items}
        if len(kinds) != 1 or None in kinds:
            return None
        node = self.recorder.resolve(place)
        return self.recorder.create(self.items_are, (node, *kinds, int(Reliance.DTYPE)))

    def watch_items(self, values: list[Any]) -> None:
        """Let arrays that lists of any length hold be put back after the run."""
        for array in [leaf for leaf in leaves(values) if type(leaf) is numpy.ndarray]:
            self.recorder.rollback.watch(array)

    # ---- arguments that may be of several kinds ------------------------------------------------------------------

    def number_kind(self, value: Any = 1.0) -> Kind:
        """A number."""
        return Kind("number", is_number, (), value)

    def array_kind(self, name: str, tries: int) -> Kind | None:
        """An array that might do for an argument of this name: as large as another one, or of one item."""
        examples = [one for one in self.examples if type(one) is numpy.ndarray and may_be_another(one)]
        if not examples or tries >= len(_GUESSES):
            return None
        kind = bool if "mask" in name else float
        return Kind("array", is_plain_array, (), numpy.ones(_GUESSES[tries](examples), kind))

    def own_array_kind(self, value: Any) -> Kind | None:
        """The kind of an array that the example gives."""
        return Kind("array", is_plain_array, (), value) if type(value) is numpy.ndarray else None

    def kind_left(self, value: Any) -> Kind | None:
        """The kind of what a run has left where nothing was, with a value to run with; None if it is not followed."""
        plain = self.recorder.concrete(value)
        if type(plain) in (int, float):
            return None if self.is_plain(type(plain)) else self.number_kind(plain)
        return self.own_array_kind(plain.copy() if type(plain) is numpy.ndarray else plain)

    def entered(self, value: Any, place: Any) -> Any:
        """The proxy of a number or an array."""
        if not self.recorder.is_array(value):
            return self.wrap_number(value, place)
        self.watch_items([value])
        self.recorder.arguments += [value] if may_be_another(value) else []
        return self.recorder.enter(value, place)

    def chosen(self) -> list[Choice]:
        """What has guards of its own."""
        made = [] if self.choices is None else self.choices.made
        return [one for one in made if one.marker is not None and one.chosen.is_entered()]

    def check_number(self, value: Any, place: Any) -> None:
        """Guard what a traced number must be: a truth stays one."""
        if type(value) is bool:
            super().check_number(value, place)
        else:
            self.numbers.append((value, place))

    def takes_number(self, value: Any, name: str) -> bool:
        """Whether a value is a number that enters as a traced one."""
        return super().takes_number(value, name) or (type(value) is complex and name not in self.static)

    def resolve_arrays(self) -> None:
        """Make the nodes of all arrays and numbers now: what holds them may be changed before they are used."""
        super().resolve_arrays()
        self.recorder.arguments = [value for value, _ in self.arrays if may_be_another(value)]
        for _, place in self.numbers:
            self.recorder.resolve(place)


_GUESSES = (
    lambda arrays: arrays[0].shape,
    lambda arrays: (1,) * arrays[0].ndim,
    lambda arrays: arrays[-1].shape,
    lambda arrays: arrays[0].shape[-1:],
)
"""Shapes of an array that a program might take besides those that it is given."""


@pure
def is_plain_array(value: Any) -> bool:
    """Whether a value is an array of NumPy's own class."""
    return type(value) is numpy.ndarray


class EntryGuards(GuardsOfRun[NumpyRecorder]):
    """Writes the guards of one capture."""

    inputs: NumpyInputs

    def write(self, after: Node, owners: list[Any], reliance: Reliance, least_ranks: dict[int, int]) -> None:
        """Put the guards behind the node ``after``; ``owners`` are the objects behind the program, ``reliance`` is what
        it has seen of ranks and dtypes, ``least_ranks`` how many axes arrays must have, by their identity."""
        ran = self.surroundings.ran(self.recorder.code.executed.values())
        with self.graph.inserting_before(after._next):
            for value, place in self.inputs.arrays:
                array_guards(self.graph, value, self.recorder.resolve(place), reliance, least_ranks.get(id(value), 0))
            for value, place in self.inputs.numbers:
                number_guards(self.graph, value, self.recorder.resolve(place), reliance)
            for value, place in self.inputs.wholes if reliance > Reliance.NUMBERS else ():
                self._whole(value, self.recorder.resolve(place))
            for values, place in self.inputs.lists:
                is_seen = any(id(leaf) in least_ranks for leaf in leaves(values))
                self._list(values, self.recorder.resolve(place), max(reliance, Reliance.RANK) if is_seen else reliance)
            self.recorder.code.outside_reads.write(self.graph)
            arrays = self.inputs.arrays
            self._same_objects(one for one in arrays if isinstance(one[0], (numpy.ndarray, *STREAMS)))
            if self.recorder.identity.of_objects:
                self._different_objects(one for one in arrays if isinstance(one[0], numpy.ndarray))
            if self.watches_variables:
                self.variables.write(self.recorder.code.executed.values())
                names = {name for function in ran for name in attribute_names(function.__code__)}
                self._classes(ran, names, self.recorder.is_array)
                self._owners(owners, names)

    def write_choices(self, choices: list[Choice], reliance: Reliance, least_ranks: dict[int, int]) -> None:
        """Put the guards of arguments that may be of several kinds where their kind is known."""
        for one in {choice.marker: choice for choice in choices}.values():
            assert one.marker is not None
            with one.marker.graph.inserting_before(one.marker._next):
                self._chosen(one.marker.graph, one.chosen.value, one.node, reliance, least_ranks)
            test: Any = one.marker.args[0]  # which these guards imply
            one.marker.graph.erase_node(one.marker)
            one.marker.graph.erase_node(test)

    def _chosen(self, graph: Graph, value: Any, node: Node, reliance: Reliance, least_ranks: dict[int, int]) -> None:
        """Guard what the program relies on of a number or array that may be of another kind."""
        if self.recorder.is_array(value):
            array_guards(graph, value, node, reliance, least_ranks.get(id(value), 0))
        else:
            number_guards(graph, value, node, reliance)

    def _list(self, values: list[Any], node: Node, reliance: Reliance) -> None:
        """All items of a list of any length must be of the kind that they were, as far as the program relies on it."""
        kind = self.inputs.item_kind(values[0], reliance)
        found = self.graph.call_function(self.inputs.items_are, (node, repr(kind), int(reliance)))
        self._require(found, True, f"each item of {expression_of(node)} is {_told(kind)}")

    def _whole(self, value: Any, node: Node) -> None:
        """An argument that is handed on must be what it was."""
        name = expression_of(node)
        if is_nest(value):
            self._require(self.graph.call_function(text_of, (node,)), text_of(value), f"{name} == {value!r}")
        else:
            self.graph.call_function(notes.require_same, (node, value, f"{name} is {value!r}"))

    def _owners(self, owners: list[Any], names: Collection[str]) -> None:
        """Attributes of the objects behind the program that its code names, and that it did not change."""
        lifted = {entry.slot.key for entry in self.state.entries}
        for owner in owners:
            for name in [name for name in vars(owner) if name in names or "getattr" in names or "__dict__" in names]:
                if (id(owner), name) not in lifted:
                    self._variable(owner, name, vars(owner)[name], f"{type(owner).__name__}.{name}")


# ---- values that a loop or branch updates ----------------------------------------------------------------------------
#
# What it depends on whether a value that a loop or branch updates in place is an array or a number. In comes the graph
# of a run, and for each of its calls what the class of the result depends on by itself; out comes what a node depends
# on, all that leads to it included. What a loop carries is what it begins with, or what a round leaves. Where a way
# cannot be followed, ranks are relied on.


Origins = list[Any] | Reliance
"""What a value comes from, or what it depends on if that is known."""
_COUNTS = frozenset({len, int, float, complex, bool, range})


class UpdatedValues:
    """Answers for the values of one graph; ``own`` is what each call adds, None if it gives a number in any case."""

    def __init__(self, graph: Graph, own: dict[Node, Reliance | None]) -> None:
        self.graph = graph
        self.own = own
        self._homes = {body: node for node in all_nodes(graph) for body in getattr(control_of(node), "bodies", ())}

    def kept(self, nodes: Iterable[Node]) -> list[Node]:
        """Those that are in the graph: a round may be recorded several times, and only the last one counts."""
        return [node for node in nodes if node.graph is self.graph or node.graph in self._homes]

    def reliance(self, nodes: Iterable[Node]) -> Reliance:
        """What the classes of all these values depend on."""
        waiting: list[Any] = list(nodes)
        seen: set[Node] = set()
        found = Reliance.NOTHING
        while waiting:
            node = waiting.pop()
            if not isinstance(node, Node) or node in seen:
                continue
            seen.add(node)
            origins = self._origins(node)
            if isinstance(origins, Reliance):
                found = max(found, origins)
            else:
                found = max(found, self.own.get(node) or Reliance.NOTHING)
                waiting += origins
        return found

    def _origins(self, node: Node) -> Origins:
        if node.op == "placeholder":
            return Reliance.NUMBERS if node.graph is self.graph else self._given_to(node)
        if node in self.own:
            return Reliance.NOTHING if self.own[node] is None else list(node.all_input_nodes)
        if node.target in _COUNTS:
            return Reliance.NOTHING
        if node.target is operator.getitem and type(node.args[1]) is int and isinstance(node.args[0], Node):
            return self._result_of(node.args[0], node.args[1])
        return Reliance.RANK if control_of(node) is None else self._ends(node, None)

    def _given_to(self, node: Node) -> Origins:
        """What a parameter of a body may be given."""
        home = self._homes.get(node.graph)
        control = None if home is None else control_of(home)
        if control is None:
            return Reliance.RANK
        inputs = inputs_of(node.graph)
        place, operands = inputs.index(node), len(inputs) - len(control.operands)
        if place >= operands:
            return [control.operands[place - operands]]
        if not isinstance(control, Loop):
            return Reliance.RANK
        return self._item(control) if place >= len(control.carried) else self._carried(control, place)

    def _item(self, loop: Loop) -> Origins:
        is_range = isinstance(loop.iterable, Node) and loop.iterable.target is range
        return Reliance.NOTHING if is_range else Reliance.RANK

    def _carried(self, loop: Loop, place: int) -> Origins:
        ends = ends_of(loop.body)
        is_known = all(isinstance(end, tuple) and place < len(end) for end in ends)
        return [loop.carried[place], *(end[place] for end in ends)] if is_known else Reliance.RANK

    def _result_of(self, node: Node, place: int) -> Origins:
        """What one of the results of a branch or loop may be."""
        control = control_of(node)
        if isinstance(control, Loop):
            return self._carried(control, place) if place < len(control.carried) else Reliance.RANK
        return Reliance.RANK if control is None else self._ends(node, place)

    def _ends(self, node: Node, place: int | None) -> Origins:
        control = control_of(node)
        if control is None or isinstance(control, Loop):
            return Reliance.RANK
        ends = [end for body in control.bodies for end in ends_of(body)]
        if place is None:
            return list(leaves(ends))
        is_known = all(isinstance(end, tuple) and place < len(end) for end in ends)
        return [end[place] for end in ends] if is_known else Reliance.RANK
