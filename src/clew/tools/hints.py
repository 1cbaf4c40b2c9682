"""What kind of assumption a guard is, and what a user can change so that the capture needs it no more.

A guard comes in as data of the graph; its kind is read from the nodes that it checks, never from its text.
"""

from __future__ import annotations

from clew.capture.example import guards
from clew.capture.example.guards import Guard
from clew.ir.node import Node

SIZE, VALUE, FACT, ARGUMENT, STRUCTURE, MODE, VARIABLE = (
    "size",
    "value",
    "fact",
    "argument",
    "structure",
    "mode",
    "variable",
)

_OTHERWISE = "or use clew.trace(fn), which captures each way"
_ADVICE = {
    SIZE: f"do without this size here, {_OTHERWISE}",
    VALUE: f"choose with the framework's where, {_OTHERWISE}",
    ARGUMENT: f"do without this number here, {_OTHERWISE}",
    VARIABLE: "pass it as an argument",
}
_DEFAULT_ADVICE = "pass it in the example: numbers stay inputs of the graph"
_SIZES = frozenset({"shape", "size", "numel", "nelement", "ndimension", "dim"})
_FACTS = frozenset({"dtype", "device", "layout", "ndim", "requires_grad", "is_leaf"})
_STRUCTURAL = (guards.require_type, guards.require_length, guards.require_keys, guards.require_array)


def kind_of(guard: Guard) -> str:
    """What the guard is about."""
    target = guard.node.target
    if target is guards.require_variable:
        return VARIABLE
    if target in _STRUCTURAL:
        return STRUCTURE
    checked = guard.node.args[0]
    if not isinstance(checked, Node):
        return FACT
    if checked.op == "placeholder":
        return ARGUMENT
    return _kind_of_value(checked)


def _kind_of_value(checked: Node) -> str:
    """A value that follows from data, a size, or a plain fact; what is nearest to the guard decides."""
    waiting, seen = [checked], {checked}
    while waiting:
        node = waiting.pop(0)
        name = _name(node)
        if name in ("training", "getEffectiveLevel"):
            return MODE
        if name in _FACTS:
            return FACT
        if name in _SIZES or node.target is len:
            return SIZE
        if node.op in ("call_method", "call_module"):
            return VALUE
        inputs = [used for used in node.all_input_nodes if used not in seen]
        seen.update(inputs)
        waiting += inputs
    return ARGUMENT if any(node.op == "placeholder" for node in seen) else FACT


def _name(node: Node) -> str:
    """The attribute, method or path that a node asks for; empty for calls of functions."""
    if node.target is getattr and len(node.args) > 1:
        return str(node.args[1])
    return node.target if isinstance(node.target, str) and node.op != "placeholder" else ""


def is_entry(guard: Guard) -> bool:
    """Whether the guard is about an argument as it came in, before any line of the program had run."""
    return len(guard.node.args) < 4


def advice_for(guard: Guard) -> str:
    """What would make the capture hold without this guard; empty where nothing need be done."""
    kind = kind_of(guard)
    if kind == ARGUMENT and is_entry(guard):
        return _DEFAULT_ADVICE if type(guard.node.args[1]) in (int, float, bool) else ""
    if kind == VARIABLE and callable(guard.node.args[0].expected):
        return ""
    return _ADVICE.get(kind, "")
