"""Sizes inside a finished graph as expressions that a guard at the entrance can compute.

In comes a tensor of a finished graph and one of its dimensions; out goes an expression over the sizes of inputs and
attributes. The shape rules say what they say during a capture; where they leave a size open because it hangs on
settings of a layer, or on which of two sizes is one, the guard computes it from the settings, or from the two sizes,
that it finds. Nothing is added to the graph.
"""

from __future__ import annotations

import operator
from types import SimpleNamespace
from typing import Any

import torch

from clew.capture.guards.sizes import ARITHMETIC, Atom, Size, Symbol, atoms_of, product
from clew.capture.guards.sizes import Expression as SizeExpression
from clew.capture.guards.sizes import is_size as is_never_negative
from clew.capture.recording.nested_programs import Bodies
from clew.capture.recording.recorder import RootAttributes
from clew.frameworks.torch.sizes.rules import Call as ShapeCall
from clew.frameworks.torch.sizes.rules import Unknown, elementwise_rule, view_rule
from clew.frameworks.torch.sizes.sizes import Sizes
from clew.frameworks.torch.sizes.table import rule_of
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Expression
from clew.ir.node import Node
from clew.ir.types import ArrayType

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
