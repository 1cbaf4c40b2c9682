"""Where the dtype and the device of a torch result come from: rules by which guards on them are lifted to the entrance.

In comes a tensor of a finished graph; out goes the input or attribute that has the same dtype or device, the plain
dtype or device if it is always the same, or None where no rule knows. What a rule says holds for every input with which
the call does not raise, given the ranks of the example, and whether or not autocast is on: results of what autocast
changes (products, convolutions, losses) have no rule for their dtype. Devices are those of all operands of a call, or
it would raise; numbers in tensors of no dimension are the exception, so operands with dimensions are looked at.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from clew.capture.guards.lifting import Dependence, is_reading
from clew.capture.guards.notes import require
from clew.frameworks.torch.sizes.at_entrance import EntrySizes, is_size
from clew.frameworks.torch.sizes.table import FUNCTIONS, LAYERS, METHODS
from clew.ir.arguments import all_with_bodies, leaves
from clew.ir.control_flow import Branch, choose, closing_branch, control_of, returned
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Expression
from clew.ir.node import Node
from clew.ir.types import ArrayType

FACTS = ("dtype", "device")
_COMPARING = frozenset(
    "lt le gt ge eq ne less less_equal greater greater_equal not_equal isnan isinf isfinite isposinf isneginf isin "
    "logical_and logical_or logical_xor logical_not __lt__ __le__ __gt__ __ge__ __eq__ __ne__".split()
)
_CASTS = {
    "bool": torch.bool, "byte": torch.uint8, "char": torch.int8, "short": torch.int16, "int": torch.int32,
    "long": torch.int64, "half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32,
    "double": torch.float64,
}  # fmt: skip
_KEEPING = frozenset(
    "view reshape view_as reshape_as expand_as transpose swapaxes swapdims movedim moveaxis t permute unsqueeze "
    "squeeze expand broadcast_to repeat tile flatten unflatten roll flip fliplr flipud tril triu contiguous clone "
    "detach cpu cuda getitem __getitem__ select narrow index_select gather chunk split split_with_sizes unbind "
    "masked_fill dropout relu".split()
)
_AGREEING = frozenset("and_ or_ xor __and__ __or__ __xor__ bitwise_and bitwise_or bitwise_xor".split())
_LIKE = frozenset("zeros_like ones_like empty_like full_like rand_like randn_like randint_like".split())
_NEW = frozenset("new_zeros new_ones new_empty new_full".split())
_MADE = frozenset("zeros ones empty rand randn full arange tensor linspace eye randint".split())
_SAME_DTYPE_LAYERS = (torch.nn.Dropout, torch.nn.Identity, torch.nn.ReLU)

Source = Node | Attribute | torch.dtype | torch.device
"""An input or attribute that has the fact, or the fact itself."""


class Facts:
    """The dtypes and devices of one graph; ``root`` has the modules that it calls, and ``has_ranks`` says whether the
    ranks of all inputs are guarded."""

    def __init__(self, graph: Graph, root: Any, has_ranks: bool) -> None:
        self._graph, self._root = graph, root
        self._has_ranks = has_ranks
        self._sizes = EntrySizes(graph, root)
        self._dependence = Dependence()
        for node, _ in all_with_bodies(graph):
            if isinstance(branch := control_of(node), Branch):
                self._dependence.enter(branch)
        self._sources: dict[tuple[Node, str], Source | None] = {}

    # ---- expressions ---------------------------------------------------------------------------------------------

    def expression(self, value: Any) -> Expression | None:
        """What a value is in terms of inputs and attributes, or the plain value if it is always the same; None if the
        program computes it."""
        try:
            return self._expression(value)
        except LookupError:
            return None

    def _expression(self, value: Any) -> Expression:
        if not isinstance(value, Node):
            return value
        outer = self._dependence.outer(value)
        if outer is not None:
            return self._expression(outer)
        if value.op == "placeholder" and value.graph is self._graph:
            return value
        if value.op == "get_attr":
            return Attribute(str(value.target))
        if _is_fact(value):
            return self._fact(*value.args)
        if is_size(value) and value.args[0].args[0].op != "placeholder":
            return self._size(*value.args)
        branch = self._dependence.branch_of(value)
        if branch is not None:
            return self._chosen(branch, value.args[1])
        if value.kwargs or value.op not in ("call_function", "call_method") or not is_reading(value):
            raise LookupError(value.name)
        args = tuple(map(self._expression, value.args))
        is_plain = callable(value.target) and not any(isinstance(one, (Node, Attribute, Call)) for one in args)
        return value.target(*args) if is_plain else Call(value.target, args)

    def _chosen(self, branch: Branch, place: Any) -> Expression:
        """What a branch gives that only chooses among truths and numbers."""
        sides = [self._given_back(body, place) for body in branch.bodies]
        if type(sides[0]) is type(sides[1]) and sides[0] == sides[1]:
            return sides[0]
        asked = self._expression(branch.predicate)
        if all(type(side) is bool for side in sides):
            return asked if sides[0] else Call(operator.not_, (asked,))
        return Call(choose, (asked, *sides))

    def _given_back(self, body: Graph, place: Any) -> Expression:
        closing = control_of(closing_branch(body)) if closing_branch(body) is not None else None
        if isinstance(closing, Branch):
            return self._chosen(closing, place)
        given = returned(body)
        is_array = isinstance(given, tuple) and isinstance(getattr(given[place], "value_type", None), ArrayType)
        if not isinstance(given, tuple) or is_array:
            raise LookupError(place)
        return self._expression(given[place])

    def _size(self, shape: Node, axis: int) -> Expression:
        tensor = shape.args[0]
        if not isinstance(tensor, Node) or not isinstance(tensor.value_type, ArrayType) or not _stays(tensor):
            raise LookupError(shape.name)
        return self._sizes.expression(tensor, axis)

    def _fact(self, tensor: Node, fact: str) -> Expression:
        source = self.source(tensor, fact) if _stays(tensor) else None
        if source is None:
            raise LookupError(tensor.name)
        return Call(getattr, (source, fact)) if isinstance(source, (Node, Attribute)) else source

    # ---- where facts come from -----------------------------------------------------------------------------------

    def source(self, node: Node, fact: str) -> Source | None:
        """What has the dtype or device of a tensor."""
        waiting = [node]
        while waiting:
            one = waiting[-1]
            given = self._given(one, fact)
            missing = [used for used in given if isinstance(used, Node) and used is not one]
            missing = [used for used in missing if (used, fact) not in self._sources]
            if missing and (one, fact) not in self._sources:
                waiting += missing
                continue
            waiting.pop()
            self._sources.setdefault((one, fact), self._agreed(one, given, fact))
        return self._sources[node, fact]

    def _agreed(self, node: Node, given: list[Any], fact: str) -> Source | None:
        """The one source of all that a fact comes from."""
        found = [self._sources[one, fact] if isinstance(one, Node) and one is not node else one for one in given]
        return found[0] if found and all(one is not None and _is_same(one, found[0]) for one in found) else None

    def _given(self, node: Node, fact: str) -> list[Any]:
        """The nodes whose fact a node has, itself for an input, a plain fact; nothing where no rule knows."""
        outer = self._dependence.outer(node)
        if outer is not None:
            return [outer]
        if node.op == "placeholder":
            return [node] if isinstance(node.value_type, ArrayType) and node.graph is self._graph else []
        if node.op == "get_attr":
            return [Attribute(str(node.target))] if isinstance(node.value_type, ArrayType) else []
        sides = self._dependence.sides(node)
        if sides:
            return sides if all(isinstance(side, Node) for side in sides) else []
        if "out" in node.kwargs:
            return []
        if node.op == "call_module":
            return self._of_layer(node, fact)
        is_known = _is_in(node.target, FUNCTIONS) if node.op == "call_function" else node.target in METHODS
        if not is_known:
            return []
        return _dtype_of(_name(node), node) if fact == "dtype" else self._operand(_device_of(_name(node), node))

    def _operand(self, found: list[Any]) -> list[Any]:
        """One of several operands that must be on one device: with dimensions, since a number may lie elsewhere."""
        if len(found) < 2 or not self._has_ranks:
            return found
        ranked = [one for one in found if one.value_type.shape]
        return ([one for one in ranked if one.op != "get_attr"] or ranked or found)[:1]

    def _of_layer(self, node: Node, fact: str) -> list[Any]:
        layer = None if self._root is None else self._root.get_submodule(str(node.target))
        if type(layer) is torch.nn.Embedding:
            return [Attribute(f"{node.target}.weight")]
        is_known = type(layer) in (LAYERS if fact == "device" else _SAME_DTYPE_LAYERS)
        return [one for one in node.args[:1] if is_known and isinstance(one, Node)]


def _stays(tensor: Node) -> bool:
    """Whether a tensor is used for more than what guards read of it: a call that might raise must not go with them."""
    return tensor.op in ("placeholder", "get_attr") or not all(map(_is_read, tensor.users))


def _is_read(node: Node) -> bool:
    return node.target is getattr and not isinstance(node.value_type, ArrayType)


def has_guarded_ranks(graph: Graph) -> bool:
    """Whether a graph, no guard of which was lifted yet, guards the ranks of all arrays that come in."""
    arrays = {node for node in graph.nodes if node.op == "placeholder" and isinstance(node.value_type, ArrayType)}
    return arrays <= {node.args[0] for node in graph.nodes if _is_guarded_rank(node)}


def _is_guarded_rank(node: Node) -> bool:
    return node.target is getattr and node.args[1] == "ndim" and any(user.target is require for user in node.users)


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and not isinstance(one, Node) and bool(one == other))


def _is_fact(node: Node) -> bool:
    """Whether a node reads the dtype or device of a tensor, or of one that may be None elsewhere."""
    if node.target is not getattr or node.args[1] not in FACTS or not isinstance(node.args[0], Node):
        return False
    return node.args[0].value_type is None or isinstance(node.args[0].value_type, ArrayType)


def _is_in(target: Any, table: Any) -> bool:
    try:
        return target in table
    except TypeError:  # a callable without a hash
        return False


def _name(node: Node) -> str:
    return str(node.target if node.op == "call_method" else getattr(node.target, "__name__", ""))


def _tensors(values: Any) -> list[Node]:
    return [one for one in leaves(values) if isinstance(one, Node) and isinstance(one.value_type, ArrayType)]


# ---- rules -----------------------------------------------------------------------------------------------------------


def _dtype_of(name: str, node: Node) -> list[Any]:
    """What the dtype of a call's result is that of."""
    args = node.args
    if name in _COMPARING:
        return [torch.bool]
    if name in _CASTS:
        return [_CASTS[name]]
    if name in _MADE or name in _LIKE or name in _NEW:
        is_copied = name in _LIKE or name in ("new_zeros", "new_ones", "new_empty", "new_full")
        return _told(node, "dtype", [args[0]] if is_copied and args else [])
    if name in _AGREEING:
        return list(args) if len(_tensors(args)) == len(args) == 2 else []
    if name == "where":
        is_choice = node.op == "call_function" and len(args) == 3 and len(_tensors(args[1:])) == 2
        return list(args[1:]) if is_choice else []
    if name == "view" and any(isinstance(one, torch.dtype) or _is_fact_node(one) for one in args[1:]):
        return []
    return _moved(name, node, "dtype") or ([args[0]] if name in _KEEPING and args else [])


def _device_of(name: str, node: Node) -> list[Any]:
    """What the device of a call's result is that of; several operands must agree unless the ranks are known."""
    args = node.args
    if name in ("cpu", "cuda"):
        return [torch.device("cpu")] if name == "cpu" else []
    if name in _MADE or name in _LIKE or name in _NEW:
        return _told(node, "device", [args[0]] if name not in _MADE and args else [])
    moved = _moved(name, node, "device")
    if moved or name == "to" or name in _KEEPING:
        return moved or (list(args[:1]) if name in _KEEPING else [])
    return _tensors((args, node.kwargs))


def _moved(name: str, node: Node, fact: str) -> list[Any]:
    """The rules that are the same for both facts."""
    args = node.args
    if name == "to":
        return _told(node, fact, [args[0]])
    if name == "type_as":
        return list(args[1:2])
    if name == "embedding":
        return list(args[:1] if node.target is torch.embedding else args[1:2])
    return []


def _told(node: Node, fact: str, otherwise: list[Any]) -> list[Any]:
    """What a call is told to give: a plain dtype or device, or that of a tensor; else what it gives ``otherwise``."""
    given = [*(node.args[1:] if _name(node) == "to" else ()), *(node.kwargs.get(one) for one in (*FACTS, "other"))]
    for one in given:
        if type(one) in _IGNORED:
            continue
        if isinstance(one, str):
            one = torch.device(one)
        if isinstance(one, torch.dtype):
            if fact == "dtype":
                return [one]
        elif isinstance(one, torch.device):
            if fact == "device":
                return [one] if one.type == "cpu" or one.index is not None else []
        elif _is_fact_node(one):
            if one.args[1] == fact:
                return [one.args[0]]
        else:
            return _tensors([one])
    return otherwise


_IGNORED = (type(None), bool, torch.memory_format, torch.layout)


def _is_fact_node(value: Any) -> bool:
    return isinstance(value, Node) and _is_fact(value)
