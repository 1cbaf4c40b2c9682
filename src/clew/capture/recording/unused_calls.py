"""Dead calls of a recorded program: which may go.

A call without effect whose result nobody uses still raises where its arguments do not fit: an unused ``x.mean()``
refuses whole numbers, ``x.view(-1)`` some strides, ``math.sqrt(n)`` negative ones. A graph without it would go on
silently. Only what cannot raise is dropped: reads of facts, sums and comparisons of numbers, what takes any array.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from clew.capture.captured import CONSTANT
from clew.capture.python.message_calls import is_message
from clew.ir.arguments import bodies_of, nested_graphs
from clew.ir.control_flow import Branch, control_of, inputs_of
from clew.ir.effects import effect_of, is_impure
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType

_TOTAL = frozenset(
    "alias clone contiguous detach dim element_size empty_like get_device getattr is_ is_complex is_contiguous "
    "is_floating_point is_not is_signed isinstance ndimension nelement numel ones_like size storage_offset stride type "
    "zeros_like".split()
)
"""Names of functions and methods that raise for no array."""
_DIVIDING = frozenset({operator.floordiv, operator.mod, operator.truediv, divmod})
"""Arithmetic that raises where a number is divided by zero."""
_METHODS = frozenset(
    "bit_length count endswith find get is_integer items keys lower replace startswith strip upper values".split()
)
_OF_NUMBERS = _METHODS.union(
    "abs add and_ bool choose eq float ge gt invert isfinite isinf isnan le len list lt max min mul ne neg not_ or_ "
    "pos slice sub sum truth tuple xor".split()
)
"""Names of functions and methods that raise for no number or text of the kind that they were recorded with."""
_ORDERING = frozenset("ge gt le lt max min".split())
"""Of these, those that raise for complex numbers."""
_OF_WHOLE_NUMBERS = frozenset("ceil floor index int round trunc".split())
"""Those that raise for some floats."""


def drop_unused(graph: Graph, keeps_raising: bool = True, is_flat: bool = False) -> None:
    """Erase what nobody uses and has no effect; what may raise, and messages, stay if ``keeps_raising``. A graph that
    ``is_flat``, without others inside it, was just recorded and needs no verification."""
    must_stay = _keeper(graph) if keeps_raising else _is_needed
    if not is_flat:
        graph.eliminate_dead_code(must_stay)
        return
    for node in reversed(graph.nodes):
        if not node.users and node.op != "output" and not must_stay(node):
            graph.erase_node(node)


def _is_needed(node: Node) -> bool:
    return not is_message(node.target) and is_impure(node)


def _keeper(graph: Graph) -> Callable[[Node], bool]:
    """Tells whether running a call may be noticed even if nobody uses its result."""
    settled = functools.cache(lambda: set(_all_settled(graph)))
    return lambda node: is_impure(node) or (may_raise(node) and node not in settled())


def may_raise(node: Node) -> bool:
    """Whether a call refuses some of the values that its arguments may have in another run."""
    if node.op == "call_module":
        return True
    if node.op not in ("call_function", "call_method"):
        return False
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if name in _TOTAL or is_own(node.target):
        return False
    used, bodies = node.all_input_nodes, list(bodies_of(node))
    if any(isinstance(one.value_type, ArrayType) for one in used):
        return True
    if bodies:
        return any(may_raise(inner) for body in bodies for inner in body.nodes)
    return not _is_total_of_numbers(node, name, used)


def _is_total_of_numbers(node: Node, name: str, used: list[Node]) -> bool:
    """Whether a call that takes no array raises for no number: all sizes are ones that an array has."""
    if node.op == "call_method" and name not in _METHODS | _OF_WHOLE_NUMBERS:  # no number has it: an array of no type
        return False
    if name in _OF_NUMBERS:
        return name not in _ORDERING or not any(map(_may_be_complex, used))
    if node.target is operator.getitem:
        return not isinstance(node.args[1], Node)
    if node.target in _DIVIDING:
        return type(node.args[1]) in (int, float) and node.args[1] != 0
    if name in _OF_WHOLE_NUMBERS:
        return all(one.value_type in _WHOLE for one in used)
    return all(_is_size(one) or is_constant(one) for one in used)


def _may_be_complex(node: Node) -> bool:
    """Whether a number comes out of an array, which may hold complex numbers in another call."""
    waiting, seen = [node], set[Node]()
    while waiting:
        one = waiting.pop()
        if one in seen or one.target in _REAL or _is_size(one):
            continue
        if any(isinstance(used.value_type, ArrayType) for used in one.all_input_nodes):
            return True
        seen.add(one)
        waiting += one.all_input_nodes
    return False


_REAL = frozenset({int, float, len, bool, round, abs})
_WHOLE = (ScalarType("int"), ScalarType("bool"))


def _is_size(node: Node) -> bool:
    """Whether a number is a size of an array, or all of them: what is made with these alone can be made."""
    if node.target is operator.getitem and isinstance(node.args[0], Node):
        node = node.args[0]
    return node.target == "size" or (node.target is getattr and node.args[1] in ("shape", "size"))


def _all_settled(graph: Graph) -> Iterator[Node]:
    """Those of a graph and of all bodies in it."""
    devices: dict[Node, Node] = {}
    for one in (graph, *nested_graphs(graph)):  # a body comes after what is handed to it
        for node in one.nodes:
            branch = control_of(node)
            if isinstance(branch, Branch):
                for body in branch.bodies:
                    handed = zip(inputs_of(body), branch.operands, strict=True)
                    devices.update((inner, outer) for inner, outer in handed if _is_device(outer, devices))
        yield from _settled(one, devices)


def _settled(graph: Graph, devices: dict[Node, Node]) -> Iterator[Node]:
    """The calls that depend on no input, only on constants of the capture and what was just made, so that they will
    not raise either; those on what was made on the device of an array, and nothing else; and those that were made
    before."""
    fixed: set[Node] = set()
    placed: dict[Node, Node] = {}
    before: set[tuple[Any, ...]] = set()
    for node in graph.nodes:
        if is_constant(node):
            fixed.add(node)
        elif node.op == "call_method" or (node.op == "call_function" and not is_own(node.target)):
            effect = effect_of(node)
            is_fixed = effect in (Effect.NONE, Effect.RANDOM) and fixed.issuperset(node.all_input_nodes)
            call = (node.target, repr(node.args), repr(node.kwargs))
            if is_fixed:
                fixed.add(node)
            device = _device_of(node, placed, devices) if effect is Effect.NONE else None
            if device is not None:
                placed[node] = device
            if is_fixed or device is not None or call in before:
                yield node
            if effect is Effect.NONE:
                before.add(call)
            else:
                before.clear()


def _device_of(node: Node, placed: dict[Node, Node], devices: dict[Node, Node]) -> Node | None:
    """The device of an array that all operands of a call were made on, if they were made of plain values; else None."""
    found = {placed.get(used, used) for used in node.all_input_nodes}
    device = found.pop() if len(found) == 1 else None
    return device if _is_device(device, devices) else None


def _is_device(value: Any, devices: dict[Node, Node]) -> bool:
    """Whether a value is the device of an array, read here or handed to a body, as ``devices`` know."""
    if not isinstance(value, Node):
        return False
    return value in devices or (value.target is getattr and value.args[1] == "device")


def is_constant(node: Node) -> bool:
    """Whether a node gives an array that the capture has made a constant."""
    return node.op == "get_attr" and str(node.target).startswith(CONSTANT)


def is_own(function: Any) -> bool:
    """Whether a function is one of Clew's own, which tell facts about the surroundings of a program."""
    return str(getattr(function, "__module__", "")).startswith("clew.")
