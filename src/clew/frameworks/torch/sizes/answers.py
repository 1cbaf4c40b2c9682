"""Answers that follow from sizes alone: whether positions made by ``arange`` are packed, say.

A program may compute with whole numbers that it has made from the sizes of its inputs, and ask for the result. A
recorded guard comes in; if that is so, out comes an expression over these sizes for its subject. What it computes is
kept as source text, so that a guard stays plain data, runs on the CPU, and is kept for each combination of sizes: a
GPU is not waited for, and a compiler finds a constant.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from clew.capture.guards.lifting import expression_of, lasts
from clew.ir.arguments import bodies_of, map_aggregate
from clew.ir.control_flow import cond
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guards import Call
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType

_MOST_NODES, _MOST_KEPT = 64, 1024
_EXACT = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64"})
"""Dtypes whose arithmetic gives the same on each device."""
_MADE = (torch.ones, torch.zeros)
"""Functions that give whole numbers whatever the dtype is."""
_COMPARISONS = frozenset({operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge})
"""What compares numbers, or arrays whose sizes differ from way to way, so that they have no type of their own."""
_INTEGER, _TRUTH = ScalarType("int"), ScalarType("bool")


def follows_from_sizes(source: str, *sizes: Any) -> Any:
    """What the function in ``source`` gives for these sizes: a bool or a number."""
    return _answer(source, *[range(size).stop for size in sizes])  # a compiler, too, makes plain numbers of them so


follows_from_sizes.recomputes = True  # type: ignore[attr-defined]


@functools.lru_cache(_MOST_KEPT)
def _kept_answer(source: str, *sizes: int) -> Any:
    names: dict[str, Any] = {}
    exec(compile(source, "<clew answer>", "exec", dont_inherit=True), names)
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        return names["forward"](None, *sizes)


def _answer(source: str, *sizes: int) -> Any:
    return _kept_answer(source, *sizes)


_answer._dynamo_marked_constant = True  # type: ignore[attr-defined]


def by_sizes(value: Any) -> Call | None:
    """The value of a guard as an expression over sizes of inputs, if it follows from these alone."""
    if not isinstance(value, Node) or isinstance(value.value_type, ArrayType):
        return None
    found = _Slice()
    if not found.takes(value) or not found.sizes or not found.has_arrays:
        return None
    return Call(follows_from_sizes, (found.source(value), *found.sizes.values()))


class _Slice:
    """The nodes that a value hangs on, back to sizes of inputs."""

    def __init__(self) -> None:
        self.sizes: dict[Node, Any] = {}
        self.nodes: dict[Node, None] = {}
        self.has_arrays = False

    def takes(self, node: Node) -> bool:
        """Whether a node is a size of an input, or computes with such; those are noted in order."""
        if node in self.sizes or node in self.nodes:
            return True
        if node.value_type == _INTEGER or _is_size(node):
            subject = expression_of(node)
            if subject is not None and lasts(subject):
                self.sizes[node] = subject
                return True
        if not _computes(node) or len(self.nodes) > _MOST_NODES:
            return False
        if not all(self.takes(given) for given in node.all_input_nodes if given is not _device_of(node)):
            return False
        self.nodes[node] = None
        self.has_arrays = self.has_arrays or isinstance(node.value_type, ArrayType)
        return True

    def source(self, value: Node) -> str:
        """A function of the sizes, as text."""
        graph = Graph()
        twins: dict[Node, Any] = {node: graph.placeholder(f"size_{place}") for place, node in enumerate(self.sizes)}
        for node in self.nodes:
            twins[_device_of(node) or node] = torch.device("cpu")
            args, kwargs = map_aggregate((node.args, node.kwargs), lambda leaf: _twin(leaf, twins))
            twins[node] = graph.create_node(node.op, node.target, args, kwargs)
        graph.output(twins[value])
        return str(graph.python_code("self", portable=True).src)


def _twin(leaf: Any, twins: dict[Node, Any]) -> Any:
    return twins[leaf] if isinstance(leaf, Node) else leaf


def _device_of(node: Node) -> Node | None:
    """The node that tells a call on which device to make its result."""
    device = node.kwargs.get("device")
    is_read = isinstance(device, Node) and device.target is getattr and device.args[1] == "device"
    return device if is_read else None


def _computes(node: Node) -> bool:
    """Whether a node does nothing but compute whole numbers, and with nothing that stands elsewhere."""
    if node.op not in ("call_function", "call_method"):
        return False
    bodies = bodies_of(node)
    if bodies:  # a branch on a size, whose sides do nothing but compute
        inner = [one for body in bodies for one in body.nodes if one.op not in ("placeholder", "output")]
        return node.target is cond and all(map(_computes, inner))
    kind = node.value_type
    is_exact = isinstance(kind, ArrayType) and (kind.dtype.rpartition(".")[2] in _EXACT or node.target in _MADE)
    is_truth = kind == _TRUTH or node.target is bool or node.target in _COMPARISONS
    is_item = kind is None and node.target is operator.getitem  # of whole numbers, or it would not be asked
    return (is_exact or kind == _INTEGER or is_truth or is_item) and effect_of(node) is Effect.NONE


def _is_size(node: Node) -> bool:
    """Whether a node reads one of the sizes of an array."""
    shape = node.args[0] if node.target is operator.getitem and type(node.args[1]) is int else None
    return isinstance(shape, Node) and shape.target is getattr and shape.args[1] == "shape"
