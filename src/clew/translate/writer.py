"""The writer of a target graph: each call that a row makes is a node, of which it is known what it gives.

In come functions of the target with values as arguments; out come values. Nodes carry the source line, the module path
and, the last one of a row, the name of the node that they stand for. The target framework tells dtype and shape of each
result (``Namespace.infer``), which is remembered by the kinds of the arguments: layers repeat.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew.ir.arguments import map_aggregate
from clew.ir.graph import Graph
from clew.ir.guards import guard
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.translate.refusals import Untranslatable
from clew.translate.values import Array, Items, Number, Opaque, Spec, Value, Zipped

if TYPE_CHECKING:
    from clew.translate.targets.namespace import Namespace


class Writer:
    """Writes one graph; those of bodies have writers of their own."""

    def __init__(
        self, graph: Graph, make_namespace: Callable[[Writer], Namespace], notes: dict[str, None] | None = None
    ) -> None:
        self.graph = graph
        self._notes = {} if notes is None else notes
        self.origin: Node | None = None
        """The node of the source that is being translated."""
        self.outermost = False
        """Whether the graph is that of the program, and no body."""
        self.namespace = make_namespace(self)
        self.rebind: Callable[[Any, Any], None] = _cannot_rebind
        """Lets an attribute of the program be another array from here on."""
        self.observed: Callable[[Node | None], Any] = _not_observed
        """The plain number that a node of the source gives for the example; None if that is not known."""
        self.guessed = False
        """Whether the example does not tell a number that sizes may depend on."""
        self.drawn: dict[int, list[Any]] = {}
        """What was drawn from the keys of the source."""
        self.next_key: Callable[[], Any] = _cannot_draw
        """The key of the next draw of random numbers."""

    def note(self, what: str) -> None:
        """Tell whoever translates the program of a difference that is no reason to refuse it, and where it is."""
        source = None if self.origin is None else self.origin.source
        self._notes[what if source is None else f"{what} ({source.describe()})"] = None

    # ---- nodes -------------------------------------------------------------------------------------------------------

    def node(self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Node:
        """A node with these arguments, in which nodes stand for values."""
        made = self.graph.create_node(op, target, nodes_of(args), nodes_of(kwargs or {}))
        origin = self.origin
        if origin is not None:
            made.source = origin.source
            stack = origin.meta.get("nn_module_stack")
            if stack is not None:
                made.meta["nn_module_stack"] = stack
        return made

    def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of a function of the target; arrays, or nests of arrays, come out."""
        node = self.node("call_function", function, args, kwargs)
        return self._result(node, function, args, kwargs)

    def method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A call of a method of the first argument, an array."""
        node = self.node("call_method", name, args, kwargs)
        return self._result(node, _method(name), args, kwargs)

    def _result(self, node: Node, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = self.namespace.inferred(function, args, kwargs)
        return self.wrap(node, found, any_differentiable((args, kwargs)))

    def wrap(self, node: Node, found: Any, differentiable: bool) -> Any:
        """The values of a node of which this is known; nests are taken apart by further nodes."""
        if isinstance(found, Spec):
            node.value_type = ArrayType(found.dtype, found.shape)
            floating = found.dtype.startswith(("float", "bfloat", "complex"))
            return Array(self, node, found, differentiable and floating)
        if isinstance(found, (tuple, list)):
            items = [
                self.wrap(self.node("call_function", operator.getitem, (node, place)), one, differentiable)
                for place, one in enumerate(found)
            ]
            return tuple(items) if isinstance(found, tuple) else items
        if isinstance(found, (bool, int, float, complex)):
            return Number(self, node, found)
        return Opaque(self, node)

    def operate(self, function: Any, *args: Any) -> Any:
        """One of Python's operators, on arrays or on numbers."""
        if any(isinstance(one, Array) for one in args):
            return self.namespace.operate(function, *args)
        if not any(isinstance(one, Value) for one in args):
            return function(*args)
        if function is operator.or_ and any(one is False for one in args):
            return next(one for one in args if one is not False)  # False | x
        return self.plain(function, *args)

    def plain(self, function: Any, *args: Any) -> Any:
        """A call of a function of Python's on numbers."""
        if any(isinstance(one, Opaque) for one in args):
            raise Untranslatable("nothing is known of a value that it is given")
        if any(isinstance(leaf, (Items, Zipped)) for leaf in leaves_of(args)):
            raise Untranslatable(f"{getattr(function, '__name__', function)} of a list of arrays")
        node = self.node("call_function", function, args)
        found = function(*examples_of(args))
        if isinstance(found, (range, list, tuple)):
            return Number(self, node, found)
        return self.wrap(node, found, False)

    def attribute(self, value: Any, name: str, found: Any) -> Any:
        """The attribute of an object, which is ``found`` for the example."""
        return self.wrap(self.node("call_function", getattr, (value, name)), found, False)

    def part(self, value: Opaque, function: Any, *args: Any) -> Any:
        """A part of an object of which only the source's types are known."""
        wanted = self.namespace.wanted
        if wanted is None:
            raise Untranslatable(value.reason or "nothing is known of the object that it looks into")
        return self.wrap(self.node("call_function", function, (value, *args)), wanted, True)

    def require(self, condition: Any, expected: bool, reason: str) -> None:
        """A guard: this condition on sizes is what it is for the example."""
        if isinstance(condition, Number):
            made = self.node("call_function", guard, (condition, expected))
            made.meta["guard"] = {"reason": reason}
        elif bool(condition) is not expected:
            raise Untranslatable(reason)

    def forget_guards(self, last: Node) -> None:
        """Take back the guards that were written after this node."""
        node = self.graph._root._prev
        while node is not last:
            before = node._prev
            if node.op == "call_function" and node.target is guard:
                self.graph.erase_node(node)
            node = before

    def fixed(self, value: Any, reason: str) -> Any:
        """The plain value of a number, on which the program relies from here on: a guard says so."""
        if not isinstance(value, Number):
            return value
        self.require(value == value.value, True, reason)
        return value.value


def _cannot_rebind(value: Any, new: Any) -> None:
    raise Untranslatable("it writes state inside of a branch or a loop")


def _not_observed(node: Node | None) -> Any:
    return None


def _cannot_draw() -> Any:
    raise Untranslatable("it draws random numbers inside of a branch or a loop")


def _method(name: str) -> Callable[..., Any]:
    def call(first: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(first, name)(*args, **kwargs)

    call.__name__ = f"method {name}"
    return _METHODS.setdefault(name, call)


_METHODS: dict[str, Callable[..., Any]] = {}


def mapped(nest: Any, change: Callable[[Any], Any]) -> Any:
    """A nest with ``change`` applied to its leaves; slices are nests of three."""
    if isinstance(nest, slice):
        return slice(*(mapped(part, change) for part in (nest.start, nest.stop, nest.step)))
    if type(nest) in (tuple, list):
        return type(nest)(mapped(item, change) for item in nest)
    if isinstance(nest, (tuple, list, dict)):
        return map_aggregate(nest, change)
    return change(nest)


def leaves_of(nest: Any) -> list[Any]:
    """The leaves of a nest, in order."""
    found: list[Any] = []
    mapped(nest, found.append)
    return found


def nodes_of(nest: Any) -> Any:
    """A nest with nodes in the place of values."""
    return mapped(nest, lambda leaf: leaf.node if isinstance(leaf, Value) else leaf)


def examples_of(nest: Any) -> Any:
    """A nest with the example's numbers in the place of numbers."""
    return mapped(nest, lambda leaf: leaf.value if isinstance(leaf, Number) else leaf)


def any_differentiable(nest: Any) -> bool:
    """Whether a gradient may flow into something that is computed from these."""
    return any(isinstance(leaf, Value) and leaf.differentiable for leaf in leaves_of(nest))
