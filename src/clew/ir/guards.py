"""Guards: the assumptions of a capture, as data beside the graph.

A ``Guard`` names a *subject* (an expression over inputs, attributes of the root and variables), a *test* with the
value that it expects, a *kind*, the line of the user that relied on it, and a reason. ``graph.guards`` lists those of a
graph: they are checked before the program runs and are no part of it. A guard on a value that the program computes
stays a node, a call of ``guard``, and is listed too, as the kind ``computed``; it may be deferred where nothing may
wait for the device (see ``Waiting``).

Always holds: the inputs in a subject are placeholders of the graph that has the guard, so renaming one renames it here.
"""

from __future__ import annotations

import contextvars
import itertools
import math
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from clew.errors import GuardError
from clew.ir.arguments import all_nodes, bodies_of
from clew.ir.effects import effect_of, has_side_effect
from clew.ir.guests import Effect, guest_of, present
from clew.ir.names import is_same_object
from clew.ir.node import Node
from clew.ir.source import SourceLine
from clew.ir.types import ArrayType

if TYPE_CHECKING:
    from clew.ir.graph import Graph

KINDS = ("structure", "type", "size", "value", "mode", "variable", "code", "computed")


# ---- expressions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of the root, by its dotted path."""

    path: str


@dataclass(frozen=True, slots=True)
class Input:
    """An input by the name of its node, and its parameter, in guards that are kept apart from their graph."""

    name: str
    target: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function applied to expressions and plain values; a string is the name of a method of the first of them."""

    function: Any
    args: tuple[Any, ...]


Expression = Any
"""A placeholder's ``Node``, an ``Attribute``, a ``Call``, or a plain value or object."""


def mapped(expression: Expression, change: Callable[[Any], Any]) -> Expression:
    """The expression with ``change`` applied to its nodes and attributes."""
    if isinstance(expression, (Node, Attribute, Input)):
        return change(expression)
    if isinstance(expression, Call):
        return Call(expression.function, tuple(mapped(argument, change) for argument in expression.args))
    return expression


def translated(expression: Expression, change: Callable[[Any], Any]) -> Expression:
    """The expression with ``change`` applied to everything in it, functions and plain values too."""
    if isinstance(expression, Call):
        args = tuple(translated(argument, change) for argument in expression.args)
        return Call(change(expression.function), args)
    return change(expression)


def leaves_of(expression: Expression) -> Iterator[Any]:
    """The nodes, attributes and plain values of an expression."""
    if isinstance(expression, Call):
        for argument in expression.args:
            yield from leaves_of(argument)
    else:
        yield expression


def evaluate(expression: Expression, inputs: Mapping[Node, Any], root: Any) -> Any:
    """The value of an expression for the values of the inputs."""
    if isinstance(expression, Node):
        return inputs[expression]
    if isinstance(expression, Attribute):
        return operator.attrgetter(expression.path)(root)
    if not isinstance(expression, Call):
        return expression
    args = [evaluate(argument, inputs, root) for argument in expression.args]
    if isinstance(expression.function, str):
        return getattr(args[0], expression.function)(*args[1:])
    return expression.function(*args)


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**",
          "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and_": "&", "or_": "|",
          "is_": "is", "is_not": "is not", "contains": "in"}  # fmt: skip


_DEEPEST, _LONGEST_ARRAY = 8, 40
"""What a node computes is spelled out so deep; an array whose expression is longer is better known by its name."""


def spelled(expression: Expression, depth: int = 0, in_array: bool = False) -> str:
    """An expression in Python's notation, in terms of inputs; what a node computes as far as that is short."""
    if isinstance(expression, Node):
        return _spelled_node(expression, depth, in_array)
    if isinstance(expression, Attribute):
        return _spelled_path(expression.path)
    if isinstance(expression, Input):
        return expression.target
    if not isinstance(expression, Call):
        return _spelled_value(expression)
    return _spelled_call(expression.function, expression.args, depth, in_array)


def _spelled_node(node: Node, depth: int, in_array: bool) -> str:
    if node.op == "get_attr":
        return _spelled_path(str(node.target))
    if node.op == "placeholder":
        return str(node.target).lstrip("*")
    is_array = depth > 0 and isinstance(node.value_type, ArrayType)
    if depth > _DEEPEST or node.op not in ("call_function", "call_method"):
        return node.name
    if node.kwargs or len(node.args) > 3:
        if node.op == "call_function":
            return node.name
        text = f"{spelled(node.args[0], depth + 1, in_array or is_array)}.{node.target}(...)"
    else:
        text = _spelled_call(node.target, node.args, depth, in_array or is_array)
    return node.name if is_array and not in_array and len(text) > _LONGEST_ARRAY else text


def _spelled_path(path: str) -> str:
    """An attribute of the root by its path, the way Python reads it: ``self.layers[0].weight``."""
    return "self" + "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in path.split("."))


def _spelled_call(function: Any, args: tuple[Any, ...], depth: int, in_array: bool) -> str:
    """A call as Python would write it, in terms of the expressions of its arguments."""
    parts = [spelled(argument, depth + 1, in_array) for argument in args]
    if isinstance(function, str):
        return f"{_in_parentheses(parts[0])}.{function}({', '.join(parts[1:])})"
    name = getattr(function, "__name__", str(function))
    if name == "getattr" and len(parts) == 2:
        return f"{_in_parentheses(parts[0])}.{args[1]}"
    if name == "getitem" and len(parts) == 2:
        return f"{_in_parentheses(parts[0])}[{parts[1]}]"
    if name in ("contains", "has", "lacks") and len(parts) == 2:
        word = "not in" if name == "lacks" else "in"
        return f"{_in_parentheses(parts[1])} {word} {_in_parentheses(parts[0])}"
    if name in _SIGNS and len(parts) == 2:
        return f"{_in_parentheses(parts[0])} {_SIGNS[name]} {_in_parentheses(parts[1])}"
    if name == "bool" and len(parts) == 1:
        return parts[0]
    if name == "not_" and len(parts) == 1:
        return f"not {_in_parentheses(parts[0])}"
    if name == "choose" and len(parts) == 3:
        return " ".join((_in_parentheses(parts[1]), "if", _in_parentheses(parts[0]), "else", _in_parentheses(parts[2])))
    return str(args[0]) if name in ("read_variable", "current_number") else f"{name}({', '.join(parts)})"


def _spelled_value(value: Any) -> str:
    """A plain value as it is written, an object with a name by that."""
    if isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        return value.__qualname__
    if type(value) in (set, frozenset) and value:  # in an order that is the same in each process
        items = ", ".join(sorted(map(_spelled_value, value)))
        return f"{{{items}}}" if type(value) is set else f"frozenset({{{items}}})"
    return repr(value) if type(value).__module__ == "builtins" else str(value)


def _in_parentheses(text: str) -> str:
    """The text as an operand: in parentheses if it has an operator that no bracket encloses."""
    depths = itertools.accumulate((character in "([{") - (character in ")]}") for character in text)
    is_open = any(one == " " and not depth for one, depth in zip(text, depths, strict=True))
    return f"({text})" if is_open else text


# ---- tests -----------------------------------------------------------------------------------------------------------


def same_answer(value: Any, expected: Any) -> bool:
    """Equality of kinds as well as values, in which nan equals nan."""
    if type(value) is not type(expected):
        return False
    if isinstance(value, float):
        if math.isnan(value):
            return math.isnan(expected)
        return value == expected and math.copysign(1.0, value) == math.copysign(1.0, expected)
    if type(value) is tuple:
        return len(value) == len(expected) and all(map(same_answer, value, expected))
    return bool(value == expected)


def plain_number(value: Any) -> Any:
    """A number in the place of what a framework's own tracer has put there, or a capture of generated code, which then
    relies on it; all else as it is."""
    relied_on = getattr(type(value), "relied_on", None)
    if relied_on is not None:
        return relied_on(value)
    found = guest_of(value)
    return value if found is None else found.plain_number(value)


def _value_told(value: Any) -> str:
    return f"the value is {value!r}"


@dataclass(frozen=True)
class Test:
    """How a guard compares its value with the one it expects: whether it holds, and both as text."""

    name: str
    holds: Callable[[Any, Any], bool]
    text: Callable[[str, Any], str]
    """The assumption, of the text of the subject and the expected value."""
    told: Callable[[Any], str] = _value_told
    """What the value is instead."""
    advice: tuple[str, ...] = ()
    """What a user can do about it, where the kind of guard does not tell."""
    is_shown: bool = True
    """Whether code for people has a line for it."""


TESTS: dict[str, Test] = {}
"""All tests by their names; ``register`` adds one."""


def register(test: Test) -> Test:
    """Let guards be of this test."""
    TESTS[test.name] = test
    return test


def _equals_text(subject: str, expected: Any) -> str:
    if expected is True:
        return subject
    if expected is False:
        return f"not {_in_parentheses(subject)}"
    return f"{subject} is None" if expected is None else f"{_in_parentheses(subject)} == {_spelled_value(expected)}"


def _of_type(value: Any) -> str:
    return f"it is of type {type(value).__name__}"


EQUALS = register(Test("equals", same_answer, _equals_text))
IS = register(
    Test(
        "is",
        is_same_object,
        lambda subject, expected: f"{subject} is {_spelled_value(expected)}",
        lambda value: f"it is another object of type {type(value).__name__}",
    )
)
TYPE = register(
    Test(
        "type",
        lambda value, expected: type(value) is expected,
        lambda subject, expected: f"type({subject}) is {expected.__name__}",
        _of_type,
    )
)
LENGTH = register(
    Test(
        "length",
        lambda value, expected: len(value) == expected,
        lambda subject, expected: f"len({subject}) == {expected}",
        lambda value: f"it has {len(value)} items",
    )
)
KEYS = register(
    Test(
        "keys",
        lambda value, expected: same_answer(tuple(value), expected),
        lambda subject, expected: f"tuple({subject}) == {expected!r}" if expected else f"not {subject}",
        lambda value: f"its keys are {tuple(value)!r}",
    )
)
EITHER = register(
    Test(
        "either",
        lambda value, expected: any(same_answer(value, one) for one in expected),
        lambda subject, expected: f"{subject} in {expected!r}",
    )
)


# ---- guards ----------------------------------------------------------------------------------------------------------

_AGAIN = "capture again with this input"
_LAZY = "clew.trace(fn) without an example captures again by itself"
_ADVICE = {
    "size": ("let sizes be data: clew.trace(..., dynamic=True)", _AGAIN, _LAZY),
    "type": ("pass a value of the same type, dtype and device", _AGAIN),
    "structure": ("pass as many and the same parts", _AGAIN, _LAZY),
    "value": ("pass the same value; one that the example gives as a number stays an input", _AGAIN, _LAZY),
    "mode": ("put the module into the mode that it was captured in", "capture again in this mode"),
    "variable": ("make it an argument of the program", "capture again after the change"),
    "code": ("put the function or class back that was captured", "capture again after the change"),
    "computed": (_AGAIN, _LAZY),
}
_LEFT_OUT = ("leave it out, or give it in the example: the program asks whether it is None", _AGAIN, _LAZY)
_COMPARING = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_BATCH_OF_ONE = "capture with an example whose batch and lengths are larger than one"


@dataclass(frozen=True)
class Guard:
    """One assumption. ``str(guard)`` is a Python expression that is true where it holds."""

    subject: Expression
    test: str
    expected: Any
    kind: str
    source: SourceLine | None = None
    reason: str = ""
    label: str = ""
    """The assumption in words, where the subject is no expression that a user would write."""
    node: Node | None = field(default=None, compare=False)
    """The node of a guard on a computed value."""

    @property
    def expression(self) -> str:
        """The assumption as text."""
        return self.label or TESTS[self.test].text(spelled(self.subject), self.expected)

    def __str__(self) -> str:
        return self.expression

    def holds(self, value: Any) -> bool:
        """Whether the subject may have this value."""
        return TESTS[self.test].holds(value, self.expected)

    def require_itself(self) -> None:
        """Raise unless the guard holds, whose subject is no expression but an object, a variable for one."""
        self.require(self.subject)

    def require(self, value: Any) -> None:
        """Raise unless the subject may have this value."""
        holds = TESTS[self.test].holds
        if not holds(value, self.expected) and not holds(plain_number(value), self.expected):
            raise self.error(value)

    def error(self, value: Any) -> GuardError:
        """What a call is told whose subject has this value."""
        is_leaf = isinstance(self.subject, (Node, Attribute))
        is_truth = self.test == "equals" and type(self.expected) is bool is type(value) and not is_leaf
        instead = ", which does not hold" if is_truth else f", but {TESTS[self.test].told(value)}"
        return GuardError(
            f"the graph assumed {self.expression}{instead}",
            where="" if self.source is None else self.source.describe(),
            why=self.reason or "the captured program took a path that depends on it",
            fixes=self.advice,
        )

    @property
    def advice(self) -> tuple[str, ...]:
        """What a user can do about it."""
        compared = self.subject.args if isinstance(self.subject, Call) and self.subject.function in _COMPARING else ()
        is_one = self.kind == "size" and any(type(one) is int and one == 1 for one in (*compared, self.expected))
        first = (_BATCH_OF_ONE,) if is_one else ()
        if self.kind == "value" and self.expected is None:
            return (*first, *_LEFT_OUT)
        return first + (TESTS[self.test].advice or _ADVICE[self.kind])

    @property
    def inputs(self) -> list[Node]:
        """The placeholders that the subject reads."""
        return [leaf for leaf in leaves_of(self.subject) if isinstance(leaf, Node)] if self.node is None else []

    def mapped(self, change: Callable[[Any], Any]) -> Guard:
        """The same guard over other inputs and attributes."""
        return replace(self, subject=mapped(self.subject, change))

    def translated(self, change: Callable[[Any], Any]) -> Guard:
        """The guard with everything in it, functions and expected values too, changed."""
        return replace(self, subject=translated(self.subject, change), expected=change(self.expected))


@has_side_effect
def guard(value: Any, expected: Any = True, test: str = "equals") -> None:
    """Raise unless a computed value is what it was in the capture; in a graph, the node says where and why."""
    Guard("the value", test, expected, "computed").require(value)


guard.__module__ = "clew"  # the name under which users and generated code find it


def is_guard(node: Node) -> bool:
    """True for a node that guards a computed value."""
    return node.op == "call_function" and node.target is guard


def _plain(value: Any) -> Any:
    """An expected value as it was before a node held it, which makes containers immutable."""
    kind = type(value)
    return kind.__mro__[1](value) if kind.__module__ == "clew.ir.arguments" else value


def guard_of(node: Node) -> Guard:
    """The guard that a node stands for."""
    value, *rest = node.args
    expected, test = _plain(rest[0]) if rest else True, str(node.kwargs.get("test", "equals"))
    told = node.meta.get("guard", {})
    return Guard(value, test, expected, "computed", node.source, told.get("reason", ""), told.get("text", ""), node)


class Guards(Sequence[Guard]):
    """The guards of a graph: first those that are checked before the program, then those on computed values."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def _all(self) -> list[Guard]:
        return [*self._graph._guards, *map(guard_of, filter(is_guard, all_nodes(self._graph)))]

    @property
    def entry(self) -> tuple[Guard, ...]:
        """Those that are checked before the program runs."""
        return self._graph._guards

    def add(self, *guards: Guard) -> None:
        """Let these be checked too, before the program runs."""
        self._graph.set_guards((*self._graph._guards, *guards))

    def drop(self, kind: str | None = None, subject: str | None = None) -> list[Guard]:
        """Take guards away, of a kind or whose subject mentions a name, or both; those that were taken come out.

        From then on the graph gives an answer where the guard would have refused, and that answer may be another than
        the original's.
        """
        if kind is not None and kind not in KINDS:
            raise ValueError(f"there is no kind of guard {kind!r}: the kinds are {', '.join(KINDS)}")
        gone = [one for one in self if kind in (None, one.kind) and (subject is None or subject in str(one))]
        taken = {id(one) for one in gone}
        self._graph.set_guards(tuple(one for one in self._graph._guards if id(one) not in taken))
        for one in gone:
            if one.node is not None:
                one.node.graph.erase_node(one.node)
        return gone

    @overload
    def __getitem__(self, place: int) -> Guard: ...
    @overload
    def __getitem__(self, place: slice) -> list[Guard]: ...
    def __getitem__(self, place: int | slice) -> Guard | list[Guard]:
        return self._all()[place]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Guard]:
        return iter(self._all())

    def __str__(self) -> str:
        found = self._all()
        by_kind = {kind: [one for one in found if one.kind == kind] for kind in KINDS}
        rows = [(kind, *row) for kind, guards in by_kind.items() for row in _rows(guards)]
        width = max((len(row[1]) for row in rows if len(row[1]) <= _WIDEST), default=0)
        return "\n".join(f"{kind:<10}{text:<{width}}  {place}".rstrip() for kind, text, place in rows)

    def __repr__(self) -> str:
        return f"<{len(self)} guards>\n{self}" if len(self) else "<no guards>"


_WIDEST = 72


def _rows(guards: list[Guard]) -> list[tuple[str, str]]:
    """The lines of a table for guards of one kind: what is assumed, and where. All code has one line."""
    if not guards or guards[0].kind != "code":
        return list(dict.fromkeys((str(one), _short(one.source)) for one in guards))  # variables may share a name
    names = ", ".join(spelled(one.subject) for one in guards)
    return [(f"{names} {'is' if len(guards) == 1 else 'are'} unchanged", "")]


def _short(source: SourceLine | None) -> str:
    """``modeling_bert.py:680``: the file without its folder, which differs from machine to machine."""
    if source is None:
        return ""
    name = source.filename.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{source.lineno}"


def attribute_paths(guards: Iterable[Guard]) -> list[str]:
    """The paths of the root's attributes that guards read."""
    found = (leaf.path for one in guards for leaf in leaves_of(one.subject) if isinstance(leaf, Attribute))
    return list(dict.fromkeys(found))


def referred_paths(graph: Graph) -> list[str]:
    """The paths that the nodes and guards of a graph read or call, each once."""
    called = [node.target for node in all_nodes(graph) if node.op in ("get_attr", "call_module")]
    return list(dict.fromkeys([*called, *attribute_paths(graph._guards)]))


def detached(guards: Iterable[Guard]) -> tuple[Guard, ...]:
    """Guards whose inputs are known by name, to be kept apart from their graph."""
    return tuple(one.mapped(lambda leaf: _input(leaf) if isinstance(leaf, Node) else leaf) for one in guards)


def _input(node: Node) -> Input:
    return Input(node.name, str(node.target).lstrip("*"))


def attached(guards: Iterable[Guard], inputs: Mapping[str, Any]) -> tuple[Guard, ...]:
    """The guards of ``detached`` over these inputs, without those whose inputs are not there."""
    found = []
    for one in guards:
        names = [leaf.name for leaf in leaves_of(one.subject) if isinstance(leaf, Input)]
        if all(name in inputs for name in names):
            found.append(one.mapped(lambda leaf: inputs[leaf.name] if isinstance(leaf, Input) else leaf))
    return tuple(found)


class Carried:
    """The assumptions of a graph on their way to another, into which nodes are copied one by one.

    A guard goes along once all inputs that it reads have a copy; one that reads none, with an input or the output, so
    that a piece of a program does not have to answer for what the whole relies on.
    """

    def __init__(self, node: Node, transform: Callable[[Node], Any]) -> None:
        self._node = node
        self._transform = transform
        self._found: dict[Node, Any] = {}

    def transform(self, used: Node) -> Any:
        """What stands for a node in the other graph."""
        found = self._found[used] = self._transform(used)
        return found

    def carry_to(self, twin: Node) -> None:
        """Let the graph of ``twin`` assume what is to be assumed now."""
        graph, source = twin.graph, self._node.graph
        known = graph._copied_inputs = graph._copied_inputs or {}
        pairs = [*self._found.items(), (self._node, twin)]
        new = {old: now for old, now in pairs if _is_input(old) and _is_input(now) and known.get(old) is not now}
        known.update(new)
        complete = [one for one in source._guards if not new.keys().isdisjoint(one.inputs)]
        complete = [one for one in complete if known.keys() >= set(one.inputs)]
        if self._node.op in ("placeholder", "output") and source._root not in known:
            known[source._root] = graph._root  # which stands for the whole program
            complete += [one for one in source._guards if not one.inputs]
        if complete:
            guards = (one.mapped(lambda leaf: known[leaf] if isinstance(leaf, Node) else leaf) for one in complete)
            graph.set_guards((*graph._guards, *guards))


def _is_input(value: Any) -> bool:
    return isinstance(value, Node) and value.op == "placeholder"


def rename_attributes(graph: Graph, change: Callable[[str], str]) -> None:
    """Give the attributes and modules that a graph refers to, in nodes and guards, other paths."""
    for node in list(all_nodes(graph)):
        if node.op in ("get_attr", "call_module") and change(node.target) != node.target:
            node.target = change(node.target)

    def moved(leaf: Any) -> Any:
        return Attribute(change(leaf.path)) if isinstance(leaf, Attribute) else leaf

    if graph._guards:
        graph.set_guards(tuple(one.mapped(moved) for one in graph._guards))


# ---- deferred guards on computed values ------------------------------------------------------------------------------


_asked_for: contextvars.ContextVar[bool] = contextvars.ContextVar("clew_deferring", default=False)


@contextmanager
def deferring() -> Iterator[None]:
    """Calls of captured programs inside of this block keep what their guards on arrays say for ``confirm``."""
    token = _asked_for.set(True)
    try:
        yield
    finally:
        _asked_for.reset(token)


def is_deferring() -> bool:
    """Whether a guard that can wait perhaps has to: ``Waiting`` knows for which array."""
    return _asked_for.get() or any(guest.must_not_wait() for guest in present())


is_deferring._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch's compiler asks while it reads


class _Kept(NamedTuple):
    """What a guard has kept: the array that tells whether it holds; each run of a CUDA graph writes that anew."""

    guard: Guard
    flag: Any
    is_written_again: bool


_kept: weakref.WeakKeyDictionary[Graph, list[_Kept]] = weakref.WeakKeyDictionary()


class Waiting:
    """A guard on the truth of an array, whose answer can wait for ``confirm``.

    While a user records a CUDA graph, and inside of ``deferring()``, such a guard keeps the array instead of looking at
    it. Only a guard behind which all can be computed whatever it says is one (``can_wait``): nothing writes, and
    nothing indexes, allocates or loops by a value. All others are checked at once.
    """

    def __init__(self, node: Node) -> None:
        self.guard = guard_of(node)
        self._graph = weakref.ref(node.graph)

    def require(self, array: Any) -> None:
        """Keep the array for ``confirm`` where nothing may wait for it; else raise unless the guard holds."""
        graph = self._graph()
        is_written_again = any(guest.must_not_wait(array) for guest in present())
        if graph is None or not (is_written_again or _asked_for.get()):
            self.guard.require(bool(array))
        else:
            _kept.setdefault(graph, []).append(_Kept(self.guard, array, is_written_again))


def confirm(graph: Graph) -> None:
    """Raise the error of the first guard of a graph that has waited and does not hold.

    Of a CUDA graph this is about its latest run, which must be over; what was kept elsewhere is looked at once.
    """
    kept = _kept.pop(graph, [])
    _kept[graph] = [one for one in kept if one.is_written_again]
    for one in kept:
        one.guard.require(bool(one.flag))


# ---- which guards can wait -------------------------------------------------------------------------------------------


def can_wait(check: Node, root: Any = None) -> bool:
    """Whether a guard of a whole program, and of no branch or loop in it, asks for the truth of one array, and all that
    follows can be computed whatever it says. ``root`` has the modules that the program calls."""
    truth = check.args[0]
    if not isinstance(truth, Node) or truth.target is not bool or len(truth.users) != 1 or check.kwargs:
        return False
    array = truth.args[0]
    return isinstance(array, Node) and isinstance(array.value_type, ArrayType) and _rest_is_total(check, root)


def _rest_is_total(check: Node, root: Any) -> bool:
    node = check._next
    while node.op not in ("root", "output"):
        if not (is_guard(node) or _is_total(node, root)):
            return False
        node = node._next
    return True


def _is_total(node: Node, root: Any) -> bool:
    if node.op in ("placeholder", "get_attr"):
        return True
    if bodies_of(node) or effect_of(node, root) not in (Effect.NONE, Effect.RANDOM):
        return False
    return any(guest.is_total(node, root) for guest in present())
