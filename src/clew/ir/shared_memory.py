"""Which values of a graph may share memory, and which nodes write into it.

In comes a graph; out come classes of values that may be views of each other or one object. Values share memory along
every operation that is not known to give new memory. All inputs and attributes count as one memory, ``OUTSIDE``; asked
for ``inputs_apart``, each is a memory of its own. Bodies of control flow are taken as calls that may do all to what
they are given. Always holds: what may share memory is in one class; values of one class need not share any.
"""

from __future__ import annotations

import operator
from collections.abc import Container, Iterable, Iterator
from functools import cached_property
from typing import Any

from clew.ir.arguments import references
from clew.ir.effects import KnownEffects, resolve
from clew.ir.graph import Graph
from clew.ir.guests import Effect, guest_of, present
from clew.ir.node import Node
from clew.ir.spellings import is_surely_array
from clew.ir.types import ArrayType, ScalarType

READS = ("placeholder", "get_attr")
OUTSIDE = "outside"

# Functions and methods whose result is always new memory, in every framework that has one of that name.
_NEW_MEMORY = frozenset(
    "sub rsub truediv true_divide div matmul mm bmm addmm baddbmm linear bilinear conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d neg pow exp log sqrt rsqrt sigmoid tanh erf sin cos relu "
    "gelu silu softmax log_softmax softplus layer_norm rms_norm group_norm batch_norm clone eq ne lt le gt ge "
    "logical_and logical_or logical_not cat concat stack embedding where masked_fill floordiv zeros ones full empty "
    "arange tril triu zeros_like ones_like full_like empty_like rand randn rand_like randn_like abs argmax argmin "
    "cumsum mean prod std sum var outer max_pool2d avg_pool2d adaptive_avg_pool2d scaled_dot_product_attention "
    "cross_entropy with_item".split()
)
_WITHOUT_MEMORY = tuple(map(ScalarType, ("bool", "int", "float", "complex", "str")))
"""Types of values that share no memory with others; what was None in the example may be an array in another call."""
_OWN = ("_operator", "clew")
_SEQUENCES_TOO = frozenset({"add", "mul"})
_NEW_MEMORY_MODULES = ("Linear", "Conv", "BatchNorm", "LayerNorm", "GroupNorm", "Embedding", "Sigmoid", "Tanh", "GELU")


class SharedMemory:
    """Which memory each node may touch: the values of a graph in classes that may overlap in memory.

    ``root`` has the modules that the nodes call, of which graphs inside of a graph do not know.
    """

    def __init__(self, graph: Graph, root: Any = None, inputs_apart: bool = False) -> None:
        self.root = graph.owning_module if root is None else root
        self.parent: dict[Any, Any] = {OUTSIDE: OUTSIDE}
        self.arrays: set[Node] = set()
        """The nodes whose values are surely arrays, or numbers."""
        self.effect: dict[Node, Effect] = {}
        self.places = {node: place for place, node in enumerate(graph.nodes)}
        self.attributes = {id(resolve(self.root, node.target)) for node in graph.nodes if node.op == "get_attr"}
        effects = KnownEffects()
        for node in graph.nodes:
            self.effect[node] = effects.of(node, self.root)
            self._place(node, inputs_apart)

    def _place(self, node: Node, inputs_apart: bool) -> None:
        self.parent[node] = node
        effect = self.effect[node]
        if inputs_apart:
            if node.op == "get_attr":
                attribute = f"self.{node.target}"
                self.parent.setdefault(attribute, attribute)
                self.join(node, attribute)
        elif node.op in READS or effect is Effect.UNKNOWN:
            self.join(node, OUTSIDE)
        if effect is Effect.NONE and self._makes_array(node):
            self.arrays.add(node)
        elif node.op != "output":
            for used in self._shared(node):
                self.join(node, used)

    def _shared(self, node: Node) -> Iterable[Node]:
        """The inputs whose memory the value may share: of an in-place call the one that it writes to."""
        if node.value_type in _WITHOUT_MEMORY:
            return ()
        written = written_array(node, self.arrays)
        if node.op == "call_function" and getattr(node.target, "__name__", "") == "fitted" and len(node.args) == 2:
            written = node.args[0]
        if written is None:
            return [used for used in node._inputs if used.value_type not in _WITHOUT_MEMORY]
        self.arrays.add(node)
        return [written]

    def _makes_array(self, node: Node) -> bool:
        """True when the value is a number or array of its own; adding and multiplying could also be of sequences."""
        if node.op == "call_module":
            module = type(resolve(self.root, node.target))
            return guest_of(module) is not None and module.__name__.startswith(_NEW_MEMORY_MODULES)
        name = node.target
        if node.op == "call_function":
            if getattr(node.target, "__module__", "") not in _OWN and guest_of(node.target) is None:
                return False
            name = getattr(node.target, "__name__", "").partition(".")[0]
        if isinstance(node.value_type, ArrayType) and name in _SEQUENCES_TOO:
            return True
        numeric = any(type(value) is float or (type(value) is Node and value in self.arrays) for value in node.args)
        return name in _NEW_MEMORY or (name in _SEQUENCES_TOO and numeric)

    def find(self, value: Any) -> Any:
        """The representative of the class of a value."""
        top = value
        while self.parent[top] is not top:
            top = self.parent[top]
        while self.parent[value] is not top:
            self.parent[value], value = top, self.parent[value]
        return top

    def join(self, one: Any, other: Any) -> None:
        self.parent[self.find(one)] = self.find(other)

    def touched(self, node: Node) -> set[Any]:
        """The classes of memory that running ``node`` may read or write."""
        classes = {self.find(value) for value in (node, *node.all_input_nodes)}
        if node.op == "call_module":
            module = resolve(self.root, node.target)
            state = [*_members(module, "parameters"), *_members(module, "buffers")]
            tokens = {id(value) for value in state or [module]}  # the root holds them all, so no id is used twice
            classes |= tokens
            if tokens & self.attributes:
                classes.add(self.find(OUTSIDE))
        return classes

    @cached_property
    def writes(self) -> dict[Node, list[Node]]:
        """The nodes that may write into values of others, each with these."""
        found = ((node, self._written(node)) for node in self.places)
        return {node: written for node, written in found if written}

    def writers_of(self, node: Node) -> Iterator[Node]:
        """The nodes that may write into the value of a node, in order."""
        own = self.find(node)
        for writer, written in self.writes.items():
            if any(self.find(one) is own for one in written):
                yield writer

    def _written(self, node: Node) -> list[Node]:
        """The nodes into whose values a node may write."""
        effect = self.effect[node]
        if effect not in (Effect.WRITE, Effect.UNKNOWN):
            return []
        given = references((node.args, node.kwargs))
        if node.op == "call_module":
            module = resolve(self.root, str(node.target))
            is_own = effect is Effect.WRITE and hasattr(module, "modules")
            return [] if is_own and not any(getattr(part, "inplace", False) for part in module.modules()) else given
        name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
        home = "" if node.op == "call_method" else getattr(node.target, "__module__", "") or ""
        is_first = home == "_operator" or (name.endswith("_") and not name.endswith("__"))
        return references((node.args[:1], node.kwargs.get("out"))) if is_first else given


_IN_PLACE_OPERATORS = frozenset(
    getattr(operator, name)
    for name in "iadd iand ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem".split()
)


def written_array(node: Node, arrays: Container[Node] = ()) -> Node | None:
    """The array that a call writes into, if that is all that it does; its value, if it has one, is that array.

    ``arrays`` are nodes that are known to be arrays, besides those whose types say so.
    """
    if node.op not in ("call_function", "call_method") or not node.args:
        return None
    first = node.args[0]
    if type(first) is not Node or not (first in arrays or is_surely_array(first)):
        return None
    if node.op == "call_function" and getattr(node.target, "__module__", "") == "_operator":
        return first if node.target in _IN_PLACE_OPERATORS else None
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    is_known = "out" not in node.kwargs and any(guest.only_writes_first(name) for guest in present())
    return first if is_known else None


def _members(module: Any, kind: str) -> Iterable[Any]:
    listed = getattr(module, kind, None)
    return listed() if callable(listed) else ()
