"""Storages: in which memory the arrays of a graph lie, which are views of which, and who writes into it when.

In comes a graph whose root is known; out comes, for each node with an array, its ``Alias``: the storage, and the node
that it is a view of or the same object as. A storage is *frozen*, with a reason, where what is written into it cannot
be expressed by new arrays. Storages that may be one, because a call gives a view or a copy, are a group: a write into
one is expressed only if no other that was there is seen afterwards, else all are frozen. Bodies of control flow have
storages of their own; their inputs are outside, and what they write into an input is a write of the branch or loop.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from clew.frameworks.torch.effects import WRITES_STATISTICS_WHEN, Result, result_memory
from clew.ir.arguments import leaves
from clew.ir.control_flow import Branch, Loop, control_of, inputs_of, is_control, returned, sides_differ
from clew.ir.effects import may_reshape, resolve, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import is_guard
from clew.ir.guests import Effect, guest_of
from clew.ir.node import Node
from clew.ir.shared_memory import SharedMemory
from clew.ir.types import ArrayType, ScalarType
from clew.passes.views import are_apart, can_invert, gives_parts, is_basic, operation, selected, spread
from clew.passes.writes import Write, write_of

_PLAIN = frozenset(
    "size stride dim ndimension numel nelement item tolist is_floating_point is_complex is_contiguous element_size "
    "get_device shape dtype device ndim requires_grad is_cuda layout itemsize nbytes is_leaf "
    "len int float bool range isinstance type str repr slice finfo iinfo promote_types result_type is_tensor "
    "is_grad_enabled __len__".split()
)
"""What gives numbers, sizes and other facts about arrays, which hold no memory of theirs."""
_OF_MEMORY = frozenset("storage_offset data_ptr is_pinned is_shared _version _base grad_fn".split())
"""What tells of the memory itself, or of the writes into it, which a new array has not."""
_NEW_LAYERS = (
    "Linear", "Conv", "BatchNorm", "LayerNorm", "GroupNorm", "RMSNorm", "InstanceNorm", "Embedding", "Sigmoid", "Tanh",
    "GELU", "Softmax", "MaxPool", "AvgPool", "AdaptiveAvgPool", "Bilinear", "LSTM", "GRU",
)  # fmt: skip
_LAYERS_WITH_FLAG = ("ReLU", "SiLU", "Hardswish", "LeakyReLU", "ELU", "Mish", "Hardtanh", "Hardsigmoid", "SELU", "CELU")


@dataclass(eq=False)
class Storage:
    """The memory of an array: the node that has all of it, and at which places of the graph it is touched."""

    base: Node
    outside: bool
    made: int
    region: tuple[int, ...]
    writes: list[int] = field(default_factory=list)
    escapes: list[int] = field(default_factory=list)
    last_use: int = -1
    frozen: str = ""
    has_parts: bool = False
    """Whether a call has made several views of it, or it may be one of them."""


@dataclass(frozen=True)
class Alias:
    """Where an array lies: ``of`` is the node that it is a view of, or, if ``is_same``, the same object as."""

    storage: Storage
    of: Node | None = None
    is_same: bool = False


@dataclass(frozen=True)
class Inner:
    """A branch or loop, and the storages of its bodies."""

    control: Branch | Loop
    bodies: tuple[Storages, ...]
    operands: tuple[Any, ...]
    """What each body is given; None for the item of a loop."""


class Storages:
    """The storages of one graph."""

    def __init__(self, graph: Graph, is_body: bool = False) -> None:
        self.graph, self.is_body = graph, is_body
        self.root = graph.owning_module
        self.alias: dict[Node, Alias] = {}
        self.writes: dict[Node, Write] = {}
        self.inner: dict[Node, Inner] = {}
        self.operands: dict[Node, list[Node]] = {}
        """What writes are given besides the array that they write into."""
        self.relies_on_ranks = False
        self.turns_outside = False
        """Whether what is given gets another shape, which a guard that fails later could not undo."""
        self._memory = SharedMemory(graph)
        self._parent: dict[Storage, Storage] = {}
        self._regions: list[int] = []
        self._settings = 0
        self._calls_unknown = False
        self._known_items: dict[Any, Node] = {}
        self._held = self._held_by_layers()
        self._places = {node: place for place, node in enumerate(graph.nodes)}
        for node in graph.nodes:
            self._visit(node)
        self.settle()

    # ---- asking ------------------------------------------------------------------------------------------------------

    def storages(self) -> list[Storage]:
        """All of them, in the order in which they were made."""
        return list(self._parent)

    def place(self, node: Node) -> int:
        """Where a node stood when the graph was looked at."""
        return self._places[node]

    def is_expressed(self, node: Node) -> bool:
        """Whether a node lies in memory whose writes are expressed by new arrays."""
        return node in self.alias and not self.alias[node].storage.frozen

    def inputs_written(self) -> list[int]:
        """Which inputs of a body it writes into, by calls that can be expressed."""
        found = [self.alias.get(node) for node in inputs_of(self.graph)]
        return [place for place, one in enumerate(found) if one and one.storage.writes and not one.storage.frozen]

    def inputs_frozen(self) -> list[int]:
        """Which inputs of a body it may write into in ways that cannot be expressed."""
        found = [self.alias.get(node) for node in inputs_of(self.graph)]
        return [place for place, one in enumerate(found) if one and one.storage.frozen]

    def freeze_input(self, place: int, reason: str) -> None:
        """Leave what a body writes into an input as it is."""
        found = self.alias.get(inputs_of(self.graph)[place])
        if found is not None and not found.storage.frozen:
            self._freeze(found.storage, reason)
            self.settle()

    def attributes(self) -> set[str]:
        """The paths of the arrays that this graph and those inside of it read."""
        own = {str(node.target) for node in self.alias if node.op == "get_attr"}
        return own.union(*(body.attributes() for inner in self.inner.values() for body in inner.bodies))

    def may_be_one(self, one: Storage, other: Storage) -> bool:
        """Whether two storages may be the same memory."""
        return self._top(one) is self._top(other)

    # ---- going over the graph ----------------------------------------------------------------------------------------

    def _visit(self, node: Node) -> None:
        place = self._places[node]
        for used in node.all_input_nodes:
            if used in self.alias:
                self.alias[used].storage.last_use = place
        if node.op == "placeholder":
            if not isinstance(node.value_type, ScalarType):
                self._new(node, outside=True)
        elif node.op == "get_attr":
            self._attribute(node)
        elif node.op != "output" and not is_guard(node):
            self._call(node, place)

    def _call(self, node: Node, place: int) -> None:
        effect = self._memory.effect[node]
        write = write_of(node, _Arrays(self))
        if write is not None:
            self._write(write.array, place)
            self.writes[node] = write
            self._written_with(node, write.array)
            if node.target is not operator.setitem:
                self.alias[node] = Alias(self.alias[write.array].storage, write.array, is_same=True)
        elif is_control(node):
            self._control(node, place)
        elif node.op == "call_method" and node.target in ("__enter__", "__exit__"):
            self._regions = [*self._regions, place] if node.target == "__enter__" else self._regions[:-1]
        elif sets_state(node.target):
            for used in self._inputs(node):
                used.escapes.append(place)
        elif self._layer_gives_new(node):
            self._new(node)
        elif operation(node) in WRITES_STATISTICS_WHEN and node.op == "call_function":
            self._freeze_all(self._of(node.args[1:3]), "a norm keeps its statistics there")
            self._new(node)
        elif effect in (Effect.NONE, Effect.RANDOM):
            self._result(node)
        else:
            self._opaque(node, effect)

    def _region(self) -> tuple[int, ...]:
        """The modes (gradients, autocast) that are on: what is made under one is not written into under another."""
        return (self._settings, *self._regions)

    def _attribute(self, node: Node) -> None:
        value = resolve(self.root, str(node.target))
        if not isinstance(value, torch.Tensor):
            return
        for other, alias in list(self.alias.items()):
            if other.op != "get_attr":
                continue
            held = resolve(self.root, str(other.target))
            if held is value:
                self.alias[node] = Alias(alias.storage, other, is_same=True)
                return
            if isinstance(held, torch.Tensor) and _share(held, value):
                self._new(node, outside=True)
                self._join(self.alias[node].storage, alias.storage)
                return
        self._new(node, outside=True)
        if id(value) in self._held:
            self._freeze(self.alias[node].storage, "a layer that the graph calls holds it")
        if self.is_body:
            self._freeze(self.alias[node].storage, "a branch or loop reads it as an attribute")

    def _held_by_layers(self) -> set[int]:
        layers = [resolve(self.root, str(node.target)) for node in self.graph.nodes if node.op == "call_module"]
        modules = [layer for layer in layers if isinstance(layer, torch.nn.Module)]
        return {id(one) for layer in modules for one in (*layer.parameters(), *layer.buffers())}

    def _write(self, array: Node, place: int) -> None:
        if array not in self.alias:
            self._new(array)
        storage = self.alias[array].storage
        storage.writes.append(place)
        storage.last_use = place
        if storage.region != self._region():
            self._freeze(storage, "it is written into under another mode than it was made in")
        if not all(can_invert(one) for one in self._chain(array)):
            self._freeze(storage, "it is written into through a view of a kind that has no inverse")

    def _written_with(self, node: Node, array: Node) -> None:
        """Leave a write whose other arguments overlap what it writes: torch refuses some of these by the sizes, and
        reads in others what it has just written."""
        storage = self.alias[array].storage
        others = [one for one in node.all_input_nodes if one is not array and one in self.alias]
        self.operands[node] = others
        for one in others:
            if self.alias[one].storage is storage and not self._is_same_or_apart(node, array, one):
                self._freeze(storage, "it is written with a part of itself")

    def _is_same_or_apart(self, node: Node, array: Node, other: Node) -> bool:
        """Whether two views of one storage, what a node writes and what it reads, are alike or wholly different."""
        written, read = (list(self._chain(one))[::-1] for one in (array, other))
        if node.target is operator.setitem:
            if not is_basic(node.args[1]):
                return False
            written.append(node)
        for one, another in zip(written, read, strict=False):
            indices = [view.args[1] if view.target is operator.setitem else selected(view) for view in (one, another)]
            alike = indices[0] == indices[1] if indices[0] is not None else _called(one) == _called(another)
            if not alike:
                return None not in indices and self._are_apart(one.args[0], indices)
        return len(written) == len(read)

    def _are_apart(self, array: Any, indices: list[Any]) -> bool:
        if are_apart(*indices):
            return True
        kind = array.value_type if isinstance(array, Node) else None
        found = isinstance(kind, ArrayType) and are_apart(*(spread(one, len(kind.shape)) for one in indices))
        self.relies_on_ranks |= found
        return found

    def _chain(self, node: Node) -> Iterator[Node]:
        """The views between a node and the base of its storage."""
        alias = self.alias[node]
        while alias.of is not None:
            if not alias.is_same and not gives_parts(node):
                yield node
            node, alias = alias.of, self.alias[alias.of]

    def _result(self, node: Node) -> None:
        """A call that only computes: what its result is made of."""
        name = operation(node)
        if name in _OF_MEMORY:
            self._freeze_all(self._inputs(node), f"the program asks for its {name}")
            return
        if name in ("requires_grad", "is_leaf"):
            self._freeze_all([one for one in self._inputs(node) if one.outside], f"the program asks for its {name}")
            return
        is_array = isinstance(node.value_type, ArrayType)  # x.float() is one
        if isinstance(node.value_type, ScalarType) or (name in _PLAIN and not is_array):
            return
        if node.target is operator.getitem:
            self._item(node)
            return
        kind = result_memory(name) if self._is_torchs(node) else Result.EITHER
        kind = Result.NEW if node in self._memory.arrays else kind
        first = node.args[0] if node.args else None
        if kind is Result.NEW:
            self._new(node)
        elif kind in (Result.VIEW, Result.PARTS) and isinstance(first, Node):
            if first in self.alias:
                self._view(node, first)
        else:
            self._either(node)

    def _view(self, node: Node, source: Node) -> None:
        storage = self.alias[source].storage
        self.alias[node] = Alias(storage, source)
        if storage.region != self._region():
            self._freeze(storage, "a view of it is made under another mode than it was made in")

    def _is_torchs(self, node: Node) -> bool:
        if node.op == "call_method" or node.target is getattr:
            return True
        if getattr(node.target, "__module__", "") == "_operator":
            return any(isinstance(one, Node) and self._is_array(one) for one in node.args)
        return guest_of(node.target) is not None or getattr(node.target, "__module__", "") == "clew"

    def _is_array(self, node: Node) -> bool:
        return isinstance(node.value_type, ArrayType) or node in self._memory.arrays

    def _item(self, node: Node) -> None:
        source, index = node.args
        alias = self.alias.get(source) if isinstance(source, Node) else None
        if alias is None:
            return
        if is_control(source):
            self._item_of_control(node, source, index)
        elif gives_parts(source):
            self._view(node, source)
            alias.storage.has_parts = True
        elif not self._is_array(source):
            self._item_of_several(node, source, index)
        elif (basic := is_basic(index)) is None:
            self._either(node, [alias.storage])
        elif basic:
            self._view(node, source)
        else:
            self.relies_on_ranks = True
            self._new(node)

    def _item_of_several(self, node: Node, source: Node, index: Any) -> None:
        """An item of what is no array: of several new arrays, each its own, or of anything else."""
        is_new = self._memory.effect[source] in (Effect.NONE, Effect.RANDOM) and self._is_torchs(source)
        if not is_new or result_memory(operation(source)) is not Result.NEW or type(index) is not int:
            self._either(node, [self.alias[source].storage])
            self.alias[node].storage.has_parts = result_memory(operation(source)) is Result.PARTS
            return
        known = self._known_items.setdefault((source, index), node)
        if known is node:
            self._new(node)
        else:
            self.alias[node] = Alias(self.alias[known].storage, known, is_same=True)

    def _layer_gives_new(self, node: Node) -> bool:
        """Whether a node calls a layer of torch that writes into nothing but its own statistics."""
        if node.op != "call_module":
            return False
        module = resolve(self.root, str(node.target))
        if guest_of(type(module)) is None:
            return False
        name = type(module).__name__
        return name.startswith(_NEW_LAYERS) or (name in _LAYERS_WITH_FLAG and getattr(module, "inplace", 0) is False)

    def _opaque(self, node: Node, effect: Effect) -> None:
        self._calls_unknown |= effect is Effect.UNKNOWN
        found = self._inputs(node)
        self.turns_outside |= may_reshape(node) and any(self._may_be_outside(one) for one in found)
        self._settings += not found
        self._freeze_all(found, f"it goes into {node.name}, which may write into it")
        self._either(node)
        if node in self.alias:
            self._freeze(self.alias[node].storage, f"it comes from {node.name}, which may keep it")

    # ---- branches and loops ------------------------------------------------------------------------------------------

    def _control(self, node: Node, place: int) -> None:
        control = control_of(node)
        if control is None:
            self._opaque(node, Effect.UNKNOWN)
            return
        bodies = tuple(Storages(body, is_body=True) for body in control.bodies)
        self.relies_on_ranks |= any(body.relies_on_ranks for body in bodies)
        self.turns_outside |= any(body.turns_outside for body in bodies)
        self._calls_unknown |= any(body._calls_unknown for body in bodies)
        item: tuple[Any, ...] = (None,) if isinstance(control, Loop) and control.is_for else ()
        given = control.operands if isinstance(control, Branch) else (*control.carried, *item, *control.operands)
        inner = self.inner[node] = Inner(control, bodies, given)
        if isinstance(control, Loop) and control.is_for and isinstance(control.iterable, Node):
            self._freeze_all(self._of([control.iterable]), "a loop goes over it")
        for at, operand in enumerate(given):
            if isinstance(operand, Node) and any(at in body.inputs_written() for body in bodies):
                reason = self._why_not(node, inner, at)
                self._write(operand, place)
                if reason:
                    self._freeze(self.alias[operand].storage, reason)
        linked = [given[at] for body in bodies for one in body.returned_arrays() for at in body.sources_of(one)]
        self._either(node, self._of(linked))

    def _why_not(self, node: Node, inner: Inner, at: int) -> str:
        """Why what the bodies write into an operand cannot be returned by them instead; empty if it can."""
        operand, control = inner.operands[at], inner.control
        if operand not in self.alias:
            self._new(operand)
        own = self.alias[operand].storage
        if own.has_parts:
            return "a branch or loop writes into an array that was split"
        others = [one for place, one in enumerate(inner.operands) if place != at and isinstance(one, Node)]
        if any(one in self.alias and self.may_be_one(self.alias[one].storage, own) for one in others):
            return "a branch or loop gets it twice"
        if isinstance(control, Branch):
            return "" if not sides_differ(control) else "a branch returns different things on its sides"
        if at in inner.bodies[0].inputs_written() and control.test is not None:
            return "the condition of a loop writes into it"
        return self._why_not_in_loop(node, inner, at)

    def _why_not_in_loop(self, node: Node, inner: Inner, at: int) -> str:
        control, body = inner.control, inner.bodies[-1]
        assert isinstance(control, Loop)
        items = [user for user in node.users if user.target is operator.getitem and type(user.args[1]) is int]
        if len(items) != len(node.users) or any(user.args[1] < 0 for user in items):
            return "the result of a loop is used as a whole"
        source = inputs_of(body.graph)[at]
        for place in range(control.returns):
            found = body.returned_item(place)
            if found is None:
                continue
            is_own = place == at < len(control.carried) and body.is_object(found, source)
            if not is_own and body.may_be_one(body.alias[found].storage, body.alias[source].storage):
                return "a loop returns it in several ways"
            if place == at < len(control.carried) and not is_own:
                return "a loop writes into what it carries and goes on with something else"
        return ""

    def returned_arrays(self) -> list[Node]:
        """All arrays that a body returns."""
        return [one for one in leaves([returned(self.graph)]) if isinstance(one, Node) and one in self.alias]

    def returned_item(self, place: int) -> Node | None:
        """The array that a body returns at a place; None for what is none."""
        value = returned(self.graph)
        if isinstance(value, tuple):
            found = value[place] if place < len(value) else None
            return found if isinstance(found, Node) and found in self.alias else None
        return value if isinstance(value, Node) and value in self.alias else None

    def is_object(self, node: Node, source: Node) -> bool:
        """Whether a node is the very object that another is."""
        while node is not source:
            alias = self.alias[node]
            if not alias.is_same or alias.of is None:
                return False
            node = alias.of
        return True

    def _item_of_control(self, node: Node, source: Node, index: Any) -> None:
        """An item of what a branch or loop returns: an operand, something new, or either."""
        inner = self.inner[source]
        bodies = inner.bodies if isinstance(inner.control, Branch) else inner.bodies[-1:]
        linked: list[Storage] = []
        same: set[Any] = set()
        for body in bodies:
            found = body.returned_item(index) if type(index) is int else None
            places = range(len(inner.operands)) if found is None else body.sources_of(found)
            linked += [one for place in places for one in self._of([inner.operands[place]])]
            same |= {self._operand_returned(inner, body, found)}
        (only,) = same if len(same) == 1 else (None,)
        if only is not None and only in self.alias:
            self.alias[node] = Alias(self.alias[only].storage, only, is_same=True)
        else:
            self._either(node, linked)
            self._link_items(node, source, index)

    def _link_items(self, node: Node, source: Node, index: Any) -> None:
        """Items of one branch or loop that may lie in the same memory are one group."""
        for other in source.users:
            alias = self.alias.get(other) if other is not node and other.target is operator.getitem else None
            if alias is not None and any(body.may_share(index, other.args[1]) for body in self.inner[source].bodies):
                self._join(self.alias[node].storage, alias.storage)

    def may_share(self, one: Any, other: Any) -> bool:
        """Whether what a body returns at two places may lie in the same memory."""
        if type(one) is not int or type(other) is not int:
            return True
        found = [self.returned_item(place) for place in (one, other)]
        if None in found:
            return False
        first, second = (self.alias[item].storage for item in found if item is not None)
        return self.may_be_one(first, second)

    def _operand_returned(self, inner: Inner, body: Storages, found: Node | None) -> Node | None:
        for place, source in enumerate(inputs_of(body.graph)):
            if found is not None and body.is_object(found, source) and isinstance(inner.operands[place], Node):
                is_carried = isinstance(inner.control, Loop) and place < len(inner.control.carried)
                return inner.operands[place] if isinstance(inner.control, Branch) or is_carried else None
        return None

    def sources_of(self, node: Node) -> list[int]:
        """Which inputs of a body the memory of a node may be."""
        storage = self.alias[node].storage
        found = [self.alias.get(source) for source in inputs_of(self.graph)]
        return [place for place, one in enumerate(found) if one and self.may_be_one(one.storage, storage)]

    # ---- groups and freezing -----------------------------------------------------------------------------------------

    def _new(self, node: Node, outside: bool = False) -> None:
        region = (0,) if outside else self._region()
        storage = Storage(node, outside, self._places[node], region)
        self._parent[storage] = storage
        self.alias[node] = Alias(storage)

    def _either(self, node: Node, linked: Iterable[Storage] | None = None) -> None:
        found = list(self._inputs(node) if linked is None else linked)
        self._new(node)
        if node.target is operator.getitem:  # an item is there as soon as what has it
            self.alias[node].storage.made = self._places[node.args[0]]
        for one in found:
            self._join(self.alias[node].storage, one)

    def _inputs(self, node: Node) -> list[Storage]:
        return self._of(node.all_input_nodes)

    def _of(self, nodes: Iterable[Any]) -> list[Storage]:
        return [self.alias[one].storage for one in nodes if isinstance(one, Node) and one in self.alias]

    def _top(self, storage: Storage) -> Storage:
        while (above := self._parent[storage]) is not storage:
            storage = above
        return storage

    def _join(self, one: Storage, other: Storage) -> None:
        self._parent[self._top(one)] = self._top(other)

    def _freeze_all(self, storages: Iterable[Storage], reason: str) -> None:
        for storage in storages:
            self._freeze(storage, reason)

    def _freeze(self, storage: Storage, reason: str) -> None:
        storage.frozen = storage.frozen or reason

    def settle(self) -> None:
        """Freeze what follows from what is frozen and known, until nothing does any more."""
        before = -1
        while before != (count := sum(bool(one.frozen) for one in self._parent)):
            before = count
            frozen = {self._top(one) for one in self._parent if one.frozen}
            written = [one for one in self._parent if one.writes and not one.frozen]
            for storage in written:
                reason = "it may be the memory of another that is" if self._top(storage) in frozen else ""
                self._freeze(storage, reason or self._why_frozen(storage))
            for inner in self.inner.values():
                self._settle_bodies(inner)

    def _why_frozen(self, storage: Storage) -> str:
        if storage.outside and self._calls_unknown:
            return "a call that may do anything could see it"
        if storage.escapes and (storage.outside or max(storage.writes) > min(storage.escapes)):
            return "the program keeps it"
        if any(one is not storage and self.may_be_one(one, storage) for one in self._operands_of(storage)):
            return "it is written with what may be a part of it"
        for other in self._parent:
            if other is not storage and self.may_be_one(other, storage):
                for place in storage.writes:
                    if other.made < place and (other.outside or other.last_use > place):
                        return "a view or copy of it is used after a write"
                if storage.outside and (other.escapes or other.last_use == len(self._places) - 1):
                    return "a view or copy of it is returned or kept"
        return ""

    def _operands_of(self, storage: Storage) -> Iterator[Storage]:
        for node, others in self.operands.items():
            if self.alias[self.writes[node].array].storage is storage:
                yield from self._of(others)

    def last_use_of_any(self, storage: Storage) -> int:
        """Where something is last touched that may be this memory."""
        return max(one.last_use for one in self._parent if self.may_be_one(one, storage))

    def _may_be_outside(self, storage: Storage) -> bool:
        return any(one.outside and self.may_be_one(one, storage) for one in self._parent)

    def is_base(self, node: Node) -> bool:
        """Whether a node is all of an array, and no view of it."""
        return not list(self._chain(node))

    def _settle_bodies(self, inner: Inner) -> None:
        for at, operand in enumerate(inner.operands):
            storage = self.alias[operand].storage if isinstance(operand, Node) and operand in self.alias else None
            for body in inner.bodies:
                if storage is None or storage.frozen:
                    body.freeze_input(at, "what it is given cannot be returned instead")
                elif at in body.inputs_frozen():
                    self._freeze(storage, "a branch or loop writes into it")


class _Arrays:
    """The nodes of a graph that are known to be arrays, besides those whose types say so."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages

    def __contains__(self, node: object) -> bool:
        found = self._storages.alias.get(node)  # type: ignore[call-overload]
        return node in self._storages._memory.arrays or (found is not None and found.is_same)


def _called(view: Node) -> Any:
    return view.op, view.target, view.args[1:], view.kwargs


def _share(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
