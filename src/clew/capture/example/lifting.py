"""Guards leave the graph: what a finished capture checks becomes data beside the program.

While a program runs, the recorder writes each guard as a node where it was asked. A finished graph comes in and is
changed in place: a guard that reads nothing but inputs, attributes of the root and variables is lifted into
``graph.guards``, because it says the same before the program as at its place; a guard on a value that the program
computes, or on something that it has changed by then, stays a node, ``guard(value)``, with its reason in ``meta``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

from clew.capture.example import guards
from clew.capture.example.unused import may_raise
from clew.ir.control import is_control
from clew.ir.effects import effect_of, is_impure, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Expression, Guard, guard
from clew.ir.guests import Effect
from clew.ir.nested import bodies_of, nested_graphs
from clew.ir.node import Node
from clew.ir.types import ArrayType

_COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_ARITHMETIC = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.pow,
    operator.neg, operator.and_, operator.or_, operator.not_, min, max, abs, int, float, bool,
)  # fmt: skip
_OF_ARRAYS = (getattr, len, type, isinstance, operator.is_, operator.is_not)
"""Functions that tell facts about an array, and do not compute with what it holds."""
_READINGS = frozenset({*_COMPARISONS, *_ARITHMETIC, *_OF_ARRAYS, operator.getitem, operator.contains, tuple, hasattr})
_SIZES = frozenset({"dim", "numel", "nelement", "ndimension", "size", "stride", "is_contiguous", "is_floating_point",
                    "is_complex", "element_size", "storage_offset", "data_ptr"})  # fmt: skip
_LASTING = frozenset({"shape", "ndim", "dtype", "device"})
"""Facts about an array that no write changes, but for those that give it another shape or memory."""
_RESHAPING = frozenset(
    "t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ resize_ resize_as_ set_ as_strided_ set_data".split()
)
_TESTS = {
    guards.require: "equals",
    guards.require_way: "equals",
    guards.require_same: "is",
    guards.require_type: "type",
    guards.require_array: "array",
    guards.require_length: "length",
    guards.require_keys: "keys",
    guards.require_attributes: "attributes",
    guards.require_other_attributes: "other_attributes",
    guards.require_alike: "alike",
    guards.require_variable: "variable",
    guards.require_untouched: "untouched",
    guards.require_either: "either",
}
_WORDED = frozenset({"variable", "either", "alike", "untouched", "other_attributes"})
"""Tests whose guards are told in the words that the recorder chose."""
_STRUCTURAL = frozenset({"length", "keys", "attributes", "other_attributes", "alike", "is"})


def expression_of(value: Any) -> Expression | None:
    """What a value of a graph is in terms of inputs, attributes and variables; None if the program computes it."""
    if not isinstance(value, Node):
        return value
    if value.op == "placeholder":
        return value
    if value.op == "get_attr":
        return Attribute(str(value.target))
    if value.kwargs or value.op not in ("call_function", "call_method") or not _is_reading(value):
        return None
    args = []
    for argument in value.args:
        found = expression_of(argument)
        if found is None and argument is not None:
            return None
        args.append(found)
    return Call(value.target, tuple(args))


def lift_guards(graph: Graph, root: Any = None, computed: Callable[[Any], Expression | None] = expression_of) -> None:
    """Turn the recorded guards of a finished graph into data, and those that must stay into nodes of one kind.

    ``root`` has the modules that the graph calls; ``computed`` may know another expression for a value that the program
    computes.
    """
    lifter = _Lifter(graph, root, computed)
    nodes = list(graph.nodes)
    recorded = [place for place, node in enumerate(nodes) if type(node.target) is FunctionType and _is_recorded(node)]
    seen = 0
    for place in recorded:  # what comes after the last guard matters to none
        lifter.lift(nodes[place], nodes[seen:place])
        seen = place + 1
    lifter.drop_unread()
    if lifter.found:
        graph.set_guards((*graph._guards, *lifter.found))
    for body in nested_graphs(graph):
        for node in [node for node in body.nodes if _is_recorded(node)]:
            _settle(node)


def _is_recorded(node: Node) -> bool:
    return node.op == "call_function" and type(node.target) is FunctionType and node.target in _TESTS


class _Lifter:
    """Looks at the nodes of a graph in order, and lifts the guards among them."""

    def __init__(self, graph: Graph, root: Any, computed: Callable[[Any], Expression | None]) -> None:
        self.graph = graph
        self.root = root
        self._computed = computed
        self.found: list[Guard] = []
        self._has_acted = False
        self._has_reshaped = False
        self._has_set = False
        self._served: list[Node] = []
        self._recomputed: set[Node] = set()

    def lift(self, node: Node, passed: list[Node]) -> None:
        """Lift a guard; ``passed`` are the nodes since the one before, which may have changed something."""
        for one in passed:
            self._note(one)
        subject = expression_of(node.args[0])
        if subject is None:
            subject = self._computed(node.args[0])
            self._recomputed.update(node.all_input_nodes if subject is not None else ())
        if subject is None or not self._still_says_the_same(subject):
            _settle(node)
            return
        self.found.append(_lifted(node, subject))
        self._served += node.all_input_nodes
        self.graph.erase_node(node)

    def _note(self, node: Node) -> None:
        if self._has_reshaped or node.op in ("placeholder", "get_attr", "output") or _is_recorded(node):
            return
        if is_control(node):
            for inner in (inner for body in bodies_of(node) for inner in body.nodes):
                self._note(inner)
            return
        effect = effect_of(node, self.root)
        if effect in (Effect.WRITE, Effect.UNKNOWN):
            self._has_acted = True
            name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
            is_known = effect is Effect.WRITE or _is_context(node) or sets_state(node.target)
            self._has_reshaped = name in _RESHAPING or not is_known
            self._has_set = self._has_set or sets_state(node.target)

    def _still_says_the_same(self, subject: Expression) -> bool:
        """Whether the subject has the same value before the program as at the place of the guard."""
        return not self._has_acted or (not self._has_reshaped and lasts(subject, not self._has_set))

    def drop_unread(self) -> None:
        """Erase what was computed for lifted guards alone; what guards compute themselves need not stay."""
        waiting = self._served
        while waiting:
            node = waiting.pop()
            is_recomputed = node in self._recomputed
            if node.users or node._erased or is_impure(node) or (may_raise(node) and not is_recomputed):
                continue
            self._recomputed.update(node.all_input_nodes if is_recomputed else ())
            waiting += node.all_input_nodes
            self.graph.erase_node(node)


def _is_context(node: Node) -> bool:
    """Whether a call makes, enters or leaves a context manager of a framework, which changes no array."""
    if node.op == "call_method":
        return node.target in ("__enter__", "__exit__")
    return any(user.op == "call_method" and user.target == "__enter__" for user in node.users)


def lasts(subject: Expression, with_attributes: bool = False) -> bool:
    """Whether nothing that a program writes changes a value: numbers among the inputs, and lasting facts of arrays;
    modes and facts of attributes ``with_attributes``, if none was set."""
    if isinstance(subject, Node):
        return not isinstance(subject.value_type, ArrayType)
    if isinstance(subject, Attribute):
        return with_attributes and subject.path.rpartition(".")[2] == "training"
    if not isinstance(subject, Call):
        return not isinstance(subject, guards.Variable)
    if subject.function is getattr and subject.args[1] in _LASTING:
        owner = subject.args[0]
        is_array = isinstance(owner, Node) and isinstance(owner.value_type, ArrayType)
        return is_array or (with_attributes and isinstance(owner, Attribute))
    is_item = subject.function is operator.getitem
    is_arithmetic = subject.function in _COMPARISONS or subject.function in _ARITHMETIC
    return (is_item or is_arithmetic) and all(lasts(argument, with_attributes) for argument in subject.args)


def _is_reading(node: Node) -> bool:
    """Whether a call tells a fact about what it is given, or computes with plain numbers."""
    if isinstance(node.value_type, ArrayType) or any(_holds_nodes(argument) for argument in node.args):
        return False
    if bodies_of(node):
        return False
    if node.op == "call_method":
        return node.target in _SIZES
    if _is_own(node.target):
        return effect_of(node) is Effect.NONE
    if _is_one_of(node.target, _READINGS):
        of_array = any(isinstance(used.value_type, ArrayType) for used in node.all_input_nodes)
        return not of_array or node.target in _OF_ARRAYS
    are_attributes = all(used.op == "get_attr" for used in node.all_input_nodes)
    return are_attributes and effect_of(node) is Effect.NONE


def _is_own(function: Any) -> bool:
    """Whether a function is one of Clew's own, which tell facts about the surroundings of a program."""
    return str(getattr(function, "__module__", "")).startswith("clew.")


def _is_one_of(function: Any, functions: frozenset[Any]) -> bool:
    try:
        return function in functions
    except TypeError:  # a callable without a hash
        return False


def _holds_nodes(argument: Any) -> bool:
    """Whether nodes stand inside of a container among the arguments."""
    if isinstance(argument, dict):
        return any(isinstance(part, Node) or _holds_nodes(part) for part in argument.values())
    if isinstance(argument, (tuple, list)):
        return any(isinstance(part, Node) or _holds_nodes(part) for part in argument)
    return isinstance(argument, slice) and any(isinstance(one, Node) for one in (argument.start, argument.stop))


def _lifted(node: Node, subject: Expression) -> Guard:
    """The guard that a recorded node becomes."""
    test, expected = _TESTS[node.target], node.args[1]
    if test == "variable":
        expected = None
    reason = str(node.args[4]) if len(node.args) > 4 else ""
    is_worded = test in _WORDED or _has_own_function(subject)
    label = str(node.args[2]) if is_worded and len(node.args) > 2 else ""
    return Guard(subject, test, expected, kind_of(test, subject), node.source, reason, label)


def _settle(node: Node) -> None:
    """Let a guard on a computed value be a call of ``guard``; what it says of itself goes to the notes."""
    test, (value, expected, *told) = _TESTS[node.target], node.args
    notes = {"text": str(told[0]) if told else ""}
    if len(told) > 2:
        notes["reason"] = str(told[2])
    node.meta = {**(node._meta or {}), "guard": notes}
    node.target = guard
    node.name = node.graph._names.create_name("guard")
    node.args = (value,) if expected is True and test == "equals" else (value, expected)
    if test != "equals":
        node.kwargs = {"test": test}


def _has_own_function(subject: Expression) -> bool:
    if not isinstance(subject, Call):
        return False
    return _is_own(subject.function) or any(map(_has_own_function, subject.args))


# ---- kinds -----------------------------------------------------------------------------------------------------------

_KIND_OF_WORD = {
    **dict.fromkeys(("shape", "ndim", "size", "numel", "nelement", "dim", "ndimension", "len", "stride"), "size"),
    **dict.fromkeys(("dtype", "device", "layout", "requires_grad", "is_leaf", "is_nested", "names", "type"), "type"),
    **dict.fromkeys(("kind_of", "number_kind", "fits", "is_mask"), "type"),
    **dict.fromkeys(("training", "is_grad_enabled", "level_of", "defaults", "settings"), "mode"),
    **dict.fromkeys(("read_variable", "environment", "are_as_they_were", "settings_of"), "variable"),
    **dict.fromkeys(("is_", "are_distinct"), "structure"),
}


_CODE = (type, FunctionType, BuiltinFunctionType, staticmethod, classmethod, property)


def kind_of(test: str, subject: Expression) -> str:
    """What a lifted guard is about."""
    if test == "variable":
        is_code = type(subject) is guards.Variable and isinstance(subject.expected, _CODE)
        return "code" if is_code else "variable"
    if test in ("type", "array"):
        return "type"
    if test in _STRUCTURAL:
        return "structure"
    return next((_KIND_OF_WORD[word] for word in _words(subject) if word in _KIND_OF_WORD), "value")


def _words(subject: Expression) -> list[str]:
    """The names of functions and attributes in an expression, the outermost first."""
    if isinstance(subject, Attribute):
        return [subject.path.rpartition(".")[2]]
    if isinstance(subject, guards.Variable):
        return ["read_variable"]
    if not isinstance(subject, Call):
        return []
    name = subject.function if isinstance(subject.function, str) else getattr(subject.function, "__name__", "")
    own = [str(subject.args[1])] if subject.function is getattr else [name]
    return own + [word for argument in subject.args for word in _words(argument)]
