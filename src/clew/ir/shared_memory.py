"""Which values of a graph may share memory, and which nodes write into it.

In comes a graph; out come groups of nodes whose values may be views of each other or one object, and for each group the
nodes that write into it. Always holds: what may share memory is in one group; nodes of one group need not share any.
Fresh is only what is known to be: results of arithmetic, of the functions listed here, of layers with weights.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from clew.ir.arguments import references
from clew.ir.effects import effect_of, resolve
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType

_FRESH = frozenset(
    "add sub mul div true_divide matmul mm bmm addmm baddbmm pow rsqrt sqrt exp log tanh sigmoid relu gelu silu "
    "softmax log_softmax softplus linear conv1d conv2d conv3d embedding layer_norm rms_norm group_norm batch_norm cat "
    "stack scaled_dot_product_attention where masked_fill mean sum var std max_pool2d avg_pool2d adaptive_avg_pool2d "
    "clone zeros ones full arange tril triu eq ne lt le gt ge logical_and logical_or logical_not cos sin neg abs "
    "cumsum argmax einsum outer zeros_like ones_like full_like empty_like rand randn rand_like randn_like "
    "cross_entropy".split()
)
_VIEWING = frozenset({operator.getitem, operator.attrgetter, operator.itemgetter})


def is_fresh(node: Node, root: Any) -> bool:
    """Whether the value of a node shares no memory with what it is made of."""
    if isinstance(node.value_type, ScalarType) or node.op == "placeholder":
        return True
    if node.op == "call_module":
        return _is_layer_with_weights(resolve(root, str(node.target)))
    if node.op == "call_method":
        return node.target in _FRESH
    if node.op != "call_function" or node.kwargs.get("inplace") or "out" in node.kwargs:
        return False
    name, home = getattr(node.target, "__name__", ""), getattr(node.target, "__module__", "") or ""
    if home == "_operator":
        return node.target not in _VIEWING and not name.startswith("i")
    return name in _FRESH and True not in node.args


def _is_layer_with_weights(module: Any) -> bool:
    is_layer = type(module).__module__.startswith("torch.nn.modules.")
    return is_layer and any(tensor is not None for tensor in module._parameters.values())


def written_arguments(node: Node, root: Any) -> list[Node]:
    """The nodes into whose values a node may write."""
    if effect_of(node, root) not in (Effect.WRITE, Effect.UNKNOWN):
        return []
    given = references((node.args, node.kwargs))
    if node.op == "call_module":
        module = resolve(root, str(node.target))
        is_own = effect_of(node, root) is Effect.WRITE and hasattr(module, "modules")
        return [] if is_own and not any(getattr(part, "inplace", False) for part in module.modules()) else given
    return references((node.args[:1], node.kwargs.get("out"))) if _is_in_place(node) else given


def _is_in_place(node: Node) -> bool:
    """Whether a call that writes does so into its first argument: ``x += y``, ``x.add_(y)``."""
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    home = "" if node.op == "call_method" else getattr(node.target, "__module__", "") or ""
    return home == "_operator" or (name.endswith("_") and not name.endswith("__"))


def _shared(node: Node, root: Any) -> list[Node]:
    """What the value of a node may share memory with: of an array that is written in place, that array alone."""
    first = node.args[0] if node.op in ("call_function", "call_method") and node.args else None
    is_array = isinstance(first, Node) and isinstance(first.value_type, ArrayType)
    if is_array and effect_of(node, root) is Effect.WRITE and _is_in_place(node):
        return references((node.args[:1], node.kwargs.get("out")))
    return references((node.args, node.kwargs))


class SharedMemory:
    """The groups of one graph, bodies of control flow taken as calls that may do all to what they are given."""

    def __init__(self, graph: Any, root: Any) -> None:
        self._parents: dict[Any, Any] = {}
        self.places = {node: place for place, node in enumerate(graph.nodes)}
        self.writes: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            if node.op == "get_attr":
                self._join(node, f"attribute {node.target}")
            elif node.op != "output" and not is_fresh(node, root):
                for used in _shared(node, root):
                    self._join(node, used)
            written = written_arguments(node, root)
            if written:
                self.writes[node] = written

    def group(self, node: Any) -> Any:
        """What stands for the group of a node."""
        while (parent := self._parents.get(node, node)) is not node:
            self._parents[node] = self._parents.get(parent, parent)
            node = parent
        return node

    def _join(self, one: Any, other: Any) -> None:
        first, second = self.group(one), self.group(other)
        if first is not second:
            self._parents[first] = second

    def writers_of(self, node: Node) -> Iterator[Node]:
        """The nodes that may write into the value of a node, in order."""
        group = self.group(node)
        for writer, written in self.writes.items():
            if any(self.group(one) is group for one in written):
                yield writer
