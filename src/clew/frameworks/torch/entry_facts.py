"""Where the dtype and the device of a torch result come from: rules by which guards on them are lifted to the entrance.

In comes a tensor of a finished graph; out goes the input or attribute that has the same dtype or device, the plain
dtype or device if it is always the same, or None where no rule knows. What a rule says holds for every input with which
the call does not raise, given the ranks of the example, and whether or not autocast is on: results of what autocast
changes (products, convolutions, losses) have no rule for their dtype. Devices are those of all operands of a call, or
it would raise; numbers in tensors of no dimension are the exception, so operands with dimensions are looked at.
"""

from __future__ import annotations

import functools
import operator
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from clew.capture.guards.lifting import Dependence, expression_of, is_reading, lasts
from clew.capture.guards.notes import read_variable, require
from clew.capture.guards.sizes import ARITHMETIC, Atom, Size, Symbol, atoms_of, product
from clew.capture.guards.sizes import Expression as SizeExpression
from clew.capture.guards.sizes import is_size as is_never_negative
from clew.capture.recording.nested_programs import Bodies
from clew.capture.recording.recorder import RootAttributes
from clew.errors import TextError
from clew.frameworks.torch.sizes.rules import Call as ShapeCall
from clew.frameworks.torch.sizes.rules import Unknown, elementwise_rule, view_rule
from clew.frameworks.torch.sizes.sizes import Sizes
from clew.frameworks.torch.sizes.table import FUNCTIONS, LAYERS, METHODS, rule_of
from clew.ir.arguments import all_with_bodies, bodies_of, leaves, map_aggregate
from clew.ir.control_flow import Branch, choose, closing_branch, cond, control_of, returned
from clew.ir.effects import effect_of, pure
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Expression
from clew.ir.guests import Effect
from clew.ir.interpreter import Interpreter
from clew.ir.node import Node
from clew.ir.text import parse, to_text
from clew.ir.types import ArrayType, ScalarType

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
        is_plain = is_plain and value.target is not read_variable  # which may hold something else at the next call
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


_SIGNS: dict[str, Any] = {"//": operator.floordiv, "%": operator.mod, "min": min, "max": max}
_CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
_MOST_STEPS = 64


@pure
def windows(size: int, weight: Any, stride: Any, padding: Any, dilation: Any, axis: int) -> int:
    """How many places the window of a convolution has along an axis; -1 where only the layer knows."""
    settings = [one[axis] if isinstance(one, tuple) else one for one in (stride, padding, dilation)]
    if not all(isinstance(one, int) for one in settings):
        return -1
    step, border, distance = settings
    return int((size + 2 * border - distance * (weight[axis + 2] - 1) - 1) // step + 1)


@pure
def common_size(left: int, right: int) -> int:
    """The size to which two sizes that fit together are stretched."""
    return right if left == 1 else left


@pure
def left_over(total: int, known: int) -> int:
    """What a view takes for the size that is left to it; -1 where it would raise."""
    return total // known if known and total % known == 0 else -1


for _function in (windows, common_size, left_over):
    _function.of_sizes = True  # type: ignore[union-attr]


class EntrySizes(Sizes):
    """The sizes of a finished graph; ``root`` has the modules that it calls."""

    def __init__(self, graph: Graph, root: Any) -> None:
        held = {} if root is None else dict(root.named_parameters()) | dict(root.named_buffers())
        attributes = RootAttributes()
        attributes.paths = {id(tensor): (path, tensor) for path, tensor in held.items()}
        stub = SimpleNamespace(
            bodies=Bodies(graph),
            layer_at=lambda path: None if root is None else root.get_submodule(path),
            attributes=attributes,
            paths=None,
            rollback=SimpleNamespace(no_return="the graph is complete"),
        )
        super().__init__(stub)  # type: ignore[arg-type]
        self._steps = 0

    def number(self, node: Node) -> Size | None:
        """The whole number that a node stands for, as the sizes that it was computed of."""
        known = self._sizes.get(node)
        if known is None and node.op == "call_function" and not node.kwargs:
            known = self._computed_number(node)
        return super().number(node) if known is None else known

    def _computed_number(self, node: Node) -> Size | None:
        if is_size(node):
            return self.shape_of(node.args[0].args[0])[node.args[1]]
        function: Any = ARITHMETIC.get(node.target)
        if function is None or len(node.args) != 2:
            return None
        values = [self.number(one) if isinstance(one, Node) else one for one in node.args]
        is_known = all(isinstance(one, int | SizeExpression) for one in values)
        return function(*values) if is_known else None

    # ---- expressions ---------------------------------------------------------------------------------------------

    def expression(self, tensor: Node, axis: int) -> Expression:
        """A size as an expression over what came in; ``LookupError`` if there is none."""
        self._steps = 0
        return self._of_size(self.shape_of(tensor)[axis])

    def _of_size(self, size: Size) -> Expression:
        if isinstance(size, int):
            return size
        total: Any = None
        for monomial, factor in sorted(size.terms.items(), key=lambda term: (term[1] < 0, not term[0])):
            product: Any = None
            for atom in atoms_of(monomial):
                part = self._of_any(atom)
                product = part if product is None else Call(operator.mul, (product, part))
            if product is None:
                product = abs(factor)
            elif abs(factor) != 1:
                product = Call(operator.mul, (product, abs(factor)))
            if total is None:
                total = product if factor > 0 else Call(operator.neg, (product,))
            else:
                total = Call(operator.add if factor > 0 else operator.sub, (total, product))
        return total

    def _of_any(self, atom: Atom) -> Expression:
        if isinstance(atom, Symbol):
            return self._of_symbol(*atom.place)
        return Call(_SIGNS[atom.kind], tuple(map(self._of_size, atom.args)))

    def _of_symbol(self, owner: Any, axis: int | None) -> Expression:
        """A dimension of an input or attribute, or one that a layer or a stretching call decides."""
        if isinstance(owner, str):
            owner = Attribute(owner)
        elif axis is None or (owner.op != "placeholder" and not self._is_followed(owner)):
            raise LookupError(str(owner))
        elif owner.op != "placeholder":
            return self._decided(owner, axis)
        elif owner.graph is not self._recorder.bodies.outermost:
            raise LookupError(owner.name)
        return Call(operator.getitem, (Call(getattr, (owner, "shape")), axis))

    def _is_followed(self, owner: Node) -> bool:
        self._steps += 1
        return self._steps < _MOST_STEPS

    def _decided(self, owner: Node, axis: int) -> Expression:
        rule = rule_of(owner)
        if rule is elementwise_rule:
            return self._stretched(owner, axis)
        if rule is view_rule:
            return self._left_over(owner, axis)
        layer = self._recorder.layer_at(str(owner.target)) if owner.op == "call_module" else None
        if type(layer) not in _CONVOLUTIONS or layer.padding_mode != "zeros":  # type: ignore[union-attr]
            raise LookupError(owner.name)
        count = layer.weight.ndim - 2  # type: ignore[union-attr]
        rank = len(owner.value_type.shape)  # type: ignore[union-attr]
        given, inner = owner.args[0], axis - (rank - count)
        weight = Call(getattr, (Attribute(f"{owner.target}.weight"), "shape"))
        settings = (Attribute(f"{owner.target}.{name}") for name in ("stride", "padding", "dilation"))
        return Call(windows, (self._of_size(self.shape_of(given)[axis]), weight, *settings, inner))  # type: ignore[arg-type]

    def _left_over(self, owner: Node, axis: int) -> Expression:
        """The size that a view computes from how many items there are, and from the other sizes that it is given."""
        call = ShapeCall(self, owner.args, owner.kwargs)
        try:
            wanted = call.list_of(1, "size" if "size" in owner.kwargs else "shape")
        except Unknown:
            raise LookupError(owner.name) from None
        others = [size for place, size in enumerate(wanted) if place != axis]
        if wanted[axis] != -1 or not all(map(is_never_negative, others)):
            raise LookupError(owner.name)
        return Call(left_over, (self._of_size(product(call.shape(owner.args[0]))), self._of_size(product(others))))

    def _stretched(self, owner: Node, axis: int) -> Expression:
        rank, found = len(owner.value_type.shape), list[Any]()  # type: ignore[union-attr]
        for one in owner.args:
            if isinstance(one, Node) and isinstance(one.value_type, ArrayType):
                place = axis - rank + len(one.value_type.shape)
                found += [self._of_size(self.shape_of(one)[place])] if place >= 0 else []
        if owner.kwargs or not found:
            raise LookupError(owner.name)
        total = found[0]
        for other in found[1:]:
            total = Call(common_size, (total, other))
        return total


def is_size(node: Node) -> bool:
    """Whether a node reads one of the sizes of a tensor."""
    shape = node.args[0] if node.target is operator.getitem and type(node.args[1]) is int else None
    return isinstance(shape, Node) and shape.target is getattr and shape.args[1] == "shape"


_MOST_NODES, _MOST_KEPT = 64, 1024
_EXACT = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64"})
"""Dtypes whose arithmetic gives the same on each device."""
_BY_SIZES = (torch.ones, torch.zeros)
"""Functions that give whole numbers whatever the dtype is."""
_COMPARISONS = frozenset({operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge})
"""What compares numbers, or arrays whose sizes differ from path to path, so that they have no type of their own."""
_INTEGER, _TRUTH = ScalarType("int"), ScalarType("bool")


def follows_from_sizes(text: str, *sizes: Any) -> Any:
    """What the graph of a text gives for these sizes: a bool or a number."""
    return _answer(text, *[range(size).stop for size in sizes])  # a compiler, too, makes plain numbers of them so


follows_from_sizes.recomputes = True  # type: ignore[attr-defined]


@functools.lru_cache(_MOST_KEPT)
def _kept_answer(text: str, *sizes: int) -> Any:
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        return Interpreter(None, graph=parse(text)).run(*sizes)


def _answer(text: str, *sizes: int) -> Any:
    return _kept_answer(text, *sizes)


_answer._dynamo_marked_constant = True  # type: ignore[attr-defined]


def by_sizes(value: Any) -> Call | None:
    """The value of a guard as an expression over sizes of inputs, if it follows from these alone."""
    if not isinstance(value, Node) or isinstance(value.value_type, ArrayType):
        return None
    found = _Slice()
    if not found.takes(value) or not found.sizes or not found.has_arrays:
        return None
    try:
        return Call(follows_from_sizes, (to_text(found.graph(value)), *found.sizes.values()))
    except TextError:  # it holds something without a name
        return None


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
        if not all(self.takes(given) for given in node.all_input_nodes if given is not _device_asked(node)):
            return False
        self.nodes[node] = None
        self.has_arrays = self.has_arrays or isinstance(node.value_type, ArrayType)
        return True

    def graph(self, value: Node) -> Graph:
        """A value as a function of the sizes."""
        graph = Graph()
        twins: dict[Node, Any] = {node: graph.placeholder(f"size_{place}") for place, node in enumerate(self.sizes)}
        for node in self.nodes:
            twins[_device_asked(node) or node] = torch.device("cpu")
            args, kwargs = map_aggregate((node.args, node.kwargs), lambda leaf: _twin(leaf, twins))
            twins[node] = graph.create_node(node.op, node.target, args, kwargs)
        graph.output(twins[value])
        return graph


def _twin(leaf: Any, twins: dict[Node, Any]) -> Any:
    return twins[leaf] if isinstance(leaf, Node) else leaf


def _device_asked(node: Node) -> Node | None:
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
    is_exact = isinstance(kind, ArrayType) and (kind.dtype.rpartition(".")[2] in _EXACT or node.target in _BY_SIZES)
    is_truth = kind == _TRUTH or node.target is bool or node.target in _COMPARISONS
    is_item = kind is None and node.target is operator.getitem  # of whole numbers, or it would not be asked
    return (is_exact or kind == _INTEGER or is_truth or is_item) and effect_of(node) is Effect.NONE


def _is_size(node: Node) -> bool:
    """Whether a node reads one of the sizes of an array."""
    shape = node.args[0] if node.target is operator.getitem and type(node.args[1]) is int else None
    return isinstance(shape, Node) and shape.target is getattr and shape.args[1] == "shape"
