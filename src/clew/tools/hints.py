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
_CHANGES = {
    "is set on one way only": "set the variable on both ways, or before the branch",
    "holds different things": "leave the same structure in the variable on both ways",
    "is of another type": "leave the same type, dtype and rank in the variable on both ways",
    "is set in the loop and read after it": "set the variable before the loop",
    "holds an iterator": "make a list of the iterator before",
    "not simply appended to": "append as many items in each round, or keep a tensor with a mask",
    "adds to a container": "set the key or attribute before the loop",
    "relies on a value": "do without the plain number in the loop: index with tensors, or use the framework's where",
    "no item to record": "capture with an example that has an item",
    "that another one holds too": "give each variable a list or dict of its own",
    "hold the same list": "give each variable a list or dict of its own",
    "a later round changes": "let each round change the same variables",
    "could not be run": "capture with an example on which this way can be run",
    "cannot be recorded": "take that part out of the branch or loop",
    "more than": "ask once for all: with any, all, or the framework's where",
    "a library asks": "ask before the library is called",
}
"""What to change, by a part of the reason why a branch or loop was not captured."""
_DEFAULT_ADVICE = "pass it in the example: numbers stay inputs of the graph"
_SIZES = frozenset({"shape", "size", "numel", "nelement", "ndimension", "dim"})
_FACTS = frozenset({"dtype", "device", "layout", "ndim", "requires_grad", "is_leaf"})
_STRUCTURAL = (guards.require_type, guards.require_length, guards.require_keys, guards.require_array)


def kind_of(guard: Guard) -> str:
    """What the guard is about."""
    target = guard.node.target
    if target is guards.require_way:
        return VALUE
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


def reason_of(guard: Guard) -> str:
    """Why no branch or loop was captured in the place of the guard; empty where that is not known."""
    args = guard.node.args
    return str(args[4]) if len(args) > 4 else ""


def advice_for(guard: Guard) -> str:
    """What would make the capture hold without this guard; empty where nothing need be done."""
    kind, why = kind_of(guard), reason_of(guard)
    change = next((change for phrase, change in _CHANGES.items() if phrase in why), "")
    if change:
        return f"{change}, {_OTHERWISE}"
    if kind == SIZE and guard.node.args[0] is not None and not is_entry(guard):
        return f"leave sizes free with dynamic=True, {_ADVICE[SIZE]}"
    if kind == ARGUMENT and is_entry(guard):
        return _DEFAULT_ADVICE if type(guard.node.args[1]) in (int, float, bool) else ""
    if kind == VARIABLE and callable(guard.node.args[0].expected):
        return ""
    return _ADVICE.get(kind, "")
