"""What a user can change so that a capture needs a guard no more.

A guard comes in as data of the graph; what it is about is read from its kind and subject, never from its text.
"""

from __future__ import annotations

from clew.ir.guards import Guard
from clew.ir.node import Node

_OTHERWISE = "or use clew.trace(fn), which captures each way"
_ADVICE = {
    "size": f"leave sizes free with dynamic=True, do without this size here, {_OTHERWISE}",
    "computed": f"choose with the framework's where, {_OTHERWISE}",
    "value": f"do without this number here, {_OTHERWISE}",
    "variable": "pass it as an argument",
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


def kind_of(guard: Guard) -> str:
    """What the guard is about; one on a size that the program computes is about a size."""
    if guard.kind == "computed" and isinstance(guard.subject, Node) and _follows_from_size(guard.subject):
        return "size"
    return guard.kind


def _follows_from_size(checked: Node) -> bool:
    """Whether a number comes from sizes, and not from what arrays hold; what is nearest to the guard decides."""
    waiting, seen = [checked], {checked}
    while waiting:
        node = waiting.pop(0)
        if _name(node) in _SIZES or node.target is len:
            return True
        if node.op in ("call_method", "call_module"):
            return False
        inputs = [used for used in node.all_input_nodes if used not in seen]
        seen.update(inputs)
        waiting += inputs
    return False


def _name(node: Node) -> str:
    """The attribute, method or path that a node asks for; empty for calls of functions."""
    if node.target is getattr and len(node.args) > 1:
        return str(node.args[1])
    return node.target if isinstance(node.target, str) and node.op != "placeholder" else ""


def advice_for(guard: Guard) -> str:
    """What would make the capture hold without this guard; empty where nothing need be done."""
    kind = kind_of(guard)
    change = next((change for phrase, change in _CHANGES.items() if phrase in guard.reason), "")
    if change:
        return f"{change}, {_OTHERWISE}"
    if kind == "value" and guard.source is None:
        return _DEFAULT_ADVICE if type(guard.expected) in (int, float, bool) else ""
    return _ADVICE.get(kind, "")
