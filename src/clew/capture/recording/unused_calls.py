"""Dead calls of a recorded program: which may go.

A call without effect whose result nobody uses still raises where its arguments do not fit: an unused ``x.mean()``
refuses whole numbers, ``x.view(-1)`` some strides. A graph without it would go on silently. Only what cannot raise is
dropped: reads of facts, most arithmetic with plain numbers, and functions that take any array.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from clew.ir.arguments import nested_graphs
from clew.ir.effects import effect_of, is_impure
from clew.ir.graph import Graph
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ArrayType

_TOTAL = frozenset(
    "alias clone contiguous detach dim element_size empty_like get_device getattr is_ is_complex is_contiguous "
    "is_floating_point is_not is_signed isinstance ndimension nelement numel ones_like size storage_offset stride type "
    "zeros_like".split()
)
"""Names of functions and methods that raise for no array."""
CONSTANT = "_constant"
"""How the names of tensors begin that a capture has made constants."""
_PARTIAL = frozenset({operator.floordiv, operator.mod, operator.truediv, operator.pow, divmod, pow})
"""Arithmetic that raises for some numbers."""


def drop_unused(graph: Graph, keeps_raising: bool = True, is_flat: bool = False) -> None:
    """Erase what nobody uses and has no effect; what may raise stays, if ``keeps_raising``. A graph that ``is_flat``,
    without others inside it, was just recorded and needs no verification."""
    must_stay = _keeper(graph) if keeps_raising else is_impure
    if not is_flat:
        graph.eliminate_dead_code(must_stay)
        return
    for node in reversed(graph.nodes):
        if not node.users and node.op != "output" and not must_stay(node):
            graph.erase_node(node)


def _keeper(graph: Graph) -> Callable[[Node], bool]:
    """Tells whether running a call may be noticed even if nobody uses its result."""
    settled = functools.cache(lambda: {node for one in (graph, *nested_graphs(graph)) for node in _settled(one)})
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
    takes_array = any(isinstance(used.value_type, ArrayType) for used in node.all_input_nodes)
    is_by_number = len(node.args) > 1 and type(node.args[1]) in (int, float) and node.args[1] > 0
    return takes_array or (node.op == "call_function" and node.target in _PARTIAL and not is_by_number)


def _settled(graph: Graph) -> Iterator[Node]:
    """The calls that depend on no input, only on constants of the capture and what was just made, so that they will
    not raise either; and those that were made before."""
    fixed: set[Node] = set()
    before: set[tuple[Any, ...]] = set()
    for node in graph.nodes:
        if node.op == "get_attr" and str(node.target).startswith(CONSTANT):
            fixed.add(node)
        elif node.op == "call_method" or (node.op == "call_function" and not is_own(node.target)):
            effect = effect_of(node)
            is_fixed = effect in (Effect.NONE, Effect.RANDOM) and fixed.issuperset(node.all_input_nodes)
            call = (node.target, repr(node.args), repr(node.kwargs))
            if is_fixed:
                fixed.add(node)
            if is_fixed or call in before:
                yield node
            if effect is Effect.NONE:
                before.add(call)
            else:
                before.clear()


def is_own(function: Any) -> bool:
    """Whether a function is one of Clew's own, which tell facts about the surroundings of a program."""
    return str(getattr(function, "__module__", "")).startswith("clew.")
