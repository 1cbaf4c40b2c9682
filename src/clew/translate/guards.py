"""The guards of a translated program: what the capture assumed of its inputs, in terms of the target's arrays.

Guards on sizes, structure and plain values go along; those on variables, classes and modes of the original do not: the
translated program no longer looks at them. New ones say which dtype and rank each input has, since the rows rely on
those. A guard that cannot be told of the target's arrays is a refusal.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator
from typing import Any

from clew.ir.arguments import nested_graphs
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Guard, guard, is_guard, leaves_of, mapped, spelled
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.translate.refusals import Refusal
from clew.translate.translator import Translator
from clew.translate.values import Number

_CARRIED = ("structure", "size", "value")
_FUNCTIONS = {name for name in vars(operator) if not name.startswith("_")} | {
    "are_distinct",
    "getattr",
    "len",
    "common_size",
    "left_over",
    "windows",
    "choose",
    "isinstance",
    "tuple",
    "bool",
    "min",
    "max",
    "int",
    "has",
}
_FACTS = ("shape", "ndim")
_ONLY_ORIGINAL = ("carried", "is_mask", "apart", "same_or_apart")
"""Questions about attributes that users put on the source's arrays, and about their memory: the target's have none."""


def entry_constants(graph: Graph) -> dict[Node, Any]:
    """The inputs that a guard fixes to a plain value, and these values."""
    found: dict[Node, Any] = {}
    for one in graph.guards.entry:
        if (
            isinstance(one.subject, Node)
            and one.test == "equals"
            and isinstance(one.expected, (bool, int, float, str, type(None)))
        ):
            found[one.subject] = one.expected
        if isinstance(one.subject, Node) and one.test == "keys" and one.expected == ():
            found[one.subject] = {}
    return found


def entry_guards(graph: Graph, inputs: dict[Node, Node], written: Graph, translator: Translator) -> Iterator[Guard]:
    """The guards of the translated graph, each once."""
    seen: set[str] = set()
    for one in _all_guards(graph, inputs, written, translator):
        if str(one) not in seen:
            seen.add(str(one))
            yield one


def _all_guards(graph: Graph, inputs: dict[Node, Node], written: Graph, translator: Translator) -> Iterator[Guard]:
    for node, made in inputs.items():
        value = translator.env[node]
        if isinstance(value, Number) or (isinstance(node.value_type, ArrayType) and hasattr(value, "spec")):
            yield from _kind(translator, made, str(made.target), value)
    for place, value in translator.leaves:
        if place not in inputs:
            subject = mapped(place, lambda leaf: inputs.get(leaf, leaf) if isinstance(leaf, Node) else leaf)
            yield from _kind(translator, subject, spelled(subject), value)
    implied = translator.source.implied
    for one in graph.guards.entry:
        if one.kind in _CARRIED and not _is_about_original(one) and not set(_functions(one.subject)) & set(implied):
            yield from _carried(one, inputs, written, translator)


def drop_implied(graph: Graph, implied: tuple[str, ...]) -> None:
    """Erase guards inside of the program on what an input is: those of the translation say it at the entrance."""
    for each in (graph, *nested_graphs(graph)):
        for node in filter(is_guard, list(each.nodes)):
            asked = node.args[0]
            if isinstance(asked, Node) and getattr(asked.target, "__name__", "") in implied:
                each.erase_node(node)
                if not asked.users:
                    each.erase_node(asked)


def enter_guards(graph: Graph, implied: tuple[str, ...]) -> None:
    """Let guards that ask more of inputs than their sizes and values be nodes of the graph: rows translate them."""
    stay = []
    first = next(node for node in graph.nodes if node.op != "placeholder")
    with graph.inserting_before(first):
        for one in graph.guards.entry:
            is_told = one.kind not in _CARRIED or _is_about_original(one) or _can_be_told(one)
            is_told = is_told or bool(set(_functions(one.subject)) & set(implied))
            if is_told or any(_paths(one.subject)):
                stay.append(one)
            else:
                _node_of(graph, one)
    graph.set_guards(tuple(stay))


def _asks_kind(one: Guard) -> bool:
    facts = {*_FACTS, "dtype", "device", "layout", "requires_grad", "is_leaf", "is_sparse"}
    asked = {"is_floating_point", "is_complex", "dim", "size", "numel", "is_contiguous", "getattr", "stride"}
    return set(_functions(one.subject)) <= asked and set(_attributes(one.subject)) <= facts


def _can_be_told(one: Guard, fields: Collection[str] = ()) -> bool:
    can = all(name in _FUNCTIONS for name in _functions(one.subject))
    return can and all(name in _FACTS or name in fields for name in _attributes(one.subject))


def _node_of(graph: Graph, one: Guard) -> None:
    """A guard as a node, behind the nodes of its subject."""

    def written(expression: Any) -> Any:
        if not isinstance(expression, Call):
            return expression
        args = tuple(map(written, expression.args))
        method = isinstance(expression.function, str)
        made = graph.create_node("call_method" if method else "call_function", expression.function, args, {})
        made.source = one.source
        return made

    made = graph.create_node("call_function", guard, (written(one.subject), one.expected), {"test": one.test})
    made.source = one.source
    made.meta["guard"] = {"reason": one.reason, "text": one.label}


def _kind(translator: Translator, subject: Any, name: str, value: Any) -> Iterator[Guard]:
    """What the rows rely on of an input, or of a part of one."""
    if isinstance(value, Number):
        yield Guard(subject, "type", type(value.value), "type", None, "the translation is for this kind of number")
        return
    if not hasattr(value, "spec"):
        yield Guard(subject, "equals", value, "value", None, "the translation is for this value")
        return
    yield Guard(
        Call(getattr, (subject, "ndim")), "equals", value.ndim, "size", None, "the translation is for this rank"
    )
    dtype, text = Call(str, (Call(getattr, (subject, "dtype")),)), f"{name}.dtype is {value.dtype}"
    wanted, whose = translator.xp.dtype_text(value.dtype), translator.xp.framework
    yield Guard(dtype, "equals", wanted, "type", None, f"the translation takes arrays of {whose}, of this dtype", text)


def _is_about_original(one: Guard) -> bool:
    return any(name in _ONLY_ORIGINAL for name in _functions(one.subject))


def _functions(expression: Any) -> Iterator[str]:
    if isinstance(expression, Call):
        yield getattr(expression.function, "__name__", str(expression.function))
        for argument in expression.args:
            yield from _functions(argument)


def _attributes(expression: Any) -> Iterator[str]:
    if isinstance(expression, Call):
        if expression.function is getattr:
            yield expression.args[1]
        for argument in expression.args:
            yield from _attributes(argument)


def _paths(expression: Any) -> Iterator[str]:
    if isinstance(expression, Attribute):
        yield expression.path
    elif isinstance(expression, Call):
        for argument in expression.args:
            yield from _paths(argument)


def _carried(one: Guard, inputs: dict[Node, Node], written: Graph, translator: Translator) -> Iterator[Guard]:
    program = translator.program
    held = program.params | program.state
    if any(path not in held for path in _paths(one.subject)):
        return  # the translated program does not look at this attribute
    if not any(isinstance(leaf, Node) for leaf in leaves_of(one.subject)) and _asks_kind(one):
        return  # what kind of array a weight is: that of the translated program stays as it is
    fields = {name for leaf, _ in translator.leaves for name in _attributes(leaf)}
    if not _can_be_told(one, fields):
        where = "" if one.source is None else one.source.describe()
        program.refusals.append(Refusal("a guard", where, f"the capture assumed {one.expression}"))
        return
    subject = mapped(one.subject, lambda leaf: inputs.get(leaf, leaf) if isinstance(leaf, Node) else leaf)
    yield Guard(subject, one.test, one.expected, one.kind, one.source, one.reason, one.label)
