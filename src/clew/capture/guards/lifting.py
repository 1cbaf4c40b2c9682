"""Guards leave the graph: what a finished capture checks becomes data beside the program.

A finished graph comes in and is changed in place. A guard that reads nothing but inputs, attributes of the root and
variables is lifted into ``graph.guards``: it says the same before the program as at its place. A guard on a value that
the program computes, or on what it has changed by then, stays a node with its reason in ``meta``; so does one inside of
a branch or loop, unless it always holds, is checked anyway, or no data decides whether the body runs. ``Dependence``
follows values into branches and out of bodies.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType
from typing import Any

from clew.capture.guards import notes
from clew.capture.guards.redundant import OPPOSITE
from clew.capture.python.outside_reads import OUTSIDE
from clew.capture.recording.nested_programs import Bodies
from clew.capture.recording.unused_calls import is_own, may_raise
from clew.ir.arguments import all_with_bodies, bodies_of, nested_graphs
from clew.ir.control_flow import Branch, closing_branch, control_of, ends_of, is_control
from clew.ir.effects import effect_of, is_impure, sets_state
from clew.ir.graph import Graph
from clew.ir.guards import TESTS, Attribute, Call, Expression, Guard, guard, leaves_of
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.types import ArrayType, ScalarType

_COMPARISONS = frozenset(OPPOSITE)
_ARITHMETIC = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.pow,
    operator.neg, operator.and_, operator.or_, operator.not_, min, max, abs, int, float, bool,
)  # fmt: skip
_DIVISIONS = frozenset({operator.floordiv, operator.truediv, operator.mod})
_OF_WHOLE_NUMBERS = frozenset(
    {operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.neg, min, max, abs}
)
"""Functions that give a whole number for whole numbers."""
_OF_ARRAYS = (getattr, len, type, isinstance, operator.is_, operator.is_not)
"""Functions that tell facts about an array, and do not compute with what it holds."""
_READINGS = frozenset(
    {*_COMPARISONS, *_ARITHMETIC, *_OF_ARRAYS, operator.getitem, operator.contains, tuple, set, hasattr}
)
_SIZES = frozenset({"dim", "numel", "nelement", "ndimension", "size", "stride", "is_contiguous", "is_floating_point",
                    "is_complex", "element_size", "storage_offset", "data_ptr"})  # fmt: skip
_LASTING = frozenset({"shape", "ndim", "dtype", "device"})
"""Facts about an array that no write changes, but for those that give it another shape or memory."""
_RESHAPING = frozenset(
    "t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ resize_ resize_as_ set_ as_strided_ set_data".split()
)
_TESTS = {
    notes.require: "equals",
    notes.require_way: "equals",
    notes.require_same: "is",
    notes.require_type: "type",
    notes.require_array: "array",
    notes.require_length: "length",
    notes.require_keys: "keys",
    notes.require_attributes: "attributes",
    notes.require_other_attributes: "other_attributes",
    notes.require_alike: "alike",
    notes.require_variable: "variable",
    notes.require_untouched: "untouched",
    notes.require_either: "either",
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
    if value.kwargs or value.op not in ("call_function", "call_method") or not is_reading(value):
        return None
    args = []
    for argument in value.args:
        found = expression_of(argument)
        if found is None and argument is not None:
            return None
        args.append(found)
    return Call(value.target, tuple(args))


Computed = Callable[[Any], Expression | None]
"""Gives what a value, of the graph or of a body inside it, is in terms of what came in, or the plain value if it is
always the same; None if the program computes it."""


def lift_guards(graph: Graph, root: Any = None, computed: Computed = expression_of) -> bool:
    """Turn the recorded guards of a finished graph into data, and those that must stay into nodes of one kind; whether
    some have left bodies of branches and loops, which may need less now.

    ``root`` has the modules that the graph calls; ``computed`` may know more expressions.
    """
    lifter = _Lifter(graph, root, computed)
    nodes = list(graph.nodes)
    recorded = [place for place, node in enumerate(nodes) if type(node.target) is FunctionType and _is_recorded(node)]
    seen = 0
    for place in recorded:  # what comes after the last guard matters to none
        lifter.lift(nodes[place], nodes[seen:place])
        seen = place + 1
    inner = [node for body in nested_graphs(graph) for node in body.nodes if _is_recorded(node)]
    has_left = lifter.lift_inner(inner, nodes[seen:]) if inner else False
    lifter.drop_unread()
    if lifter.found:
        graph.set_guards(_in_order([*graph._guards, *condensed(lifter.found)]))
    return has_left


def _in_order(found: list[Guard]) -> tuple[Guard, ...]:
    """The guards in the order in which they are checked: first those that tell whether what others read of attributes
    is there at all, and what was asked of objects before them."""
    last = max((place for place, one in enumerate(found) if _tells_of_attributes(one.subject)), default=-1)
    first = [one for one in found[: last + 1] if not any(map(_is_read, leaves_of(one.subject)))]
    known = set(map(id, first))
    return (*first, *(one for one in found if id(one) not in known))


def _tells_of_attributes(subject: Expression) -> bool:
    return isinstance(subject, Call) and getattr(subject.function, "comes_first", False)


def _is_read(leaf: Any) -> bool:
    """Whether a part of an expression is an input or an attribute."""
    return isinstance(leaf, (Node, Attribute))


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
        self._dependence = Dependence()
        for node, _ in all_with_bodies(graph):
            if isinstance(branch := control_of(node), Branch):
                self._dependence.enter(branch)

    def lift(self, node: Node, passed: list[Node]) -> None:
        """Lift a guard; ``passed`` are the nodes since the one before, which may have changed something."""
        for one in passed:
            self._note(one)
        subject = expression_of(node.args[0])
        if subject is None:
            subject = self._computed(node.args[0])
            self._recomputed.update(node.all_input_nodes if _recomputes(subject) else ())
        if subject is None or not self._still_says_the_same(subject):
            _settle(node)
            return
        if not _always_holds(node, subject):
            self._add(_lifted(node, subject))
        self._take_out(node)

    def lift_inner(self, found: list[Node], passed: list[Node]) -> bool:
        """Lift guards in bodies, ``passed`` being all nodes after the last guard of the graph itself; whether some have
        left."""
        for one in passed:
            self._note(one)
        free, has_left = _bodies_without_data(self.graph), False
        for node in found:
            subject = self._computed(node.args[0])
            is_known = subject is not None and self._still_says_the_same(subject)
            lifted = _lifted(node, subject) if is_known else None
            may_leave = node.graph in free and type(node.args[1]) is not int  # rounds of a loop are asked there alone
            if lifted is None or not (_always_holds(node, subject) or self._is_checked(lifted) or may_leave):
                _settle(node)
                continue
            if not _always_holds(node, subject):
                self._add(lifted)
            self._take_out(node)
            has_left = True
        return has_left

    def _add(self, lifted: Guard) -> None:
        """A guard, after those that let it be asked: the error of a division by zero belongs to its place in the
        program."""
        for divisor in _divisors(lifted.subject):
            subject = Call(operator.ne, (divisor, 0))
            first = replace(lifted, subject=subject, test="equals", expected=True, label="")
            if not self._is_checked(first):
                self.found.append(first)
        self.found.append(lifted)

    def _is_checked(self, one: Guard) -> bool:
        return any(_key_of(one) == _key_of(other) for other in self.found)

    def _take_out(self, node: Node) -> None:
        self._served += node.all_input_nodes
        node.graph.erase_node(node)

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
            is_known = effect is Effect.WRITE or is_context(node) or _sets(node)
            self._has_reshaped = name in _RESHAPING or not is_known
            self._has_set = self._has_set or (_sets(node) and not self._marks(node))

    def _marks(self, node: Node) -> bool:
        """Whether a call sets an attribute of an array, or of what a call has just made: of nothing that the program
        keeps."""
        is_set = node.target is setattr and isinstance(node.args[0], Node)
        return is_set and self._dependence.comes_from(node.args[0], _is_made)

    def _still_says_the_same(self, subject: Expression) -> bool:
        """Whether the subject has the same value before the program as at the place of the guard."""
        return not self._has_acted or (not self._has_reshaped and lasts(subject, not self._has_set))

    def drop_unread(self) -> None:
        """Erase what was computed for lifted guards alone; what guards compute themselves need not stay."""
        waiting = self._served
        while waiting:
            node = waiting.pop()
            is_recomputed = node in self._recomputed
            is_kept = node.op == "placeholder" or is_impure(node) or (may_raise(node) and not is_recomputed)
            if node.users or node._erased or is_kept:
                continue
            self._recomputed.update(node.all_input_nodes if is_recomputed else ())
            waiting += node.all_input_nodes
            node.graph.erase_node(node)


def _divisors(subject: Expression) -> Iterator[Expression]:
    """What a value is divided by as it is computed, innermost first, but for plain numbers."""
    if isinstance(subject, Call):
        for argument in subject.args:
            yield from _divisors(argument)
        if _is_one_of(subject.function, _DIVISIONS) and isinstance(subject.args[1], (Node, Attribute, Call)):
            yield subject.args[1]


def is_context(node: Node) -> bool:
    """Whether a call makes, enters or leaves a context manager of a framework, which changes no array."""
    if node.op == "call_method":
        return node.target in ("__enter__", "__exit__")
    return any(user.op == "call_method" and user.target == "__enter__" for user in node.users)


def _recomputes(subject: Expression | None) -> bool:
    """Whether a guard makes the very calls again that its subject depends on."""
    return isinstance(subject, Call) and getattr(subject.function, "recomputes", False)


def _is_made(node: Node) -> bool:
    """Whether a node is an array, or made by a call that only computes."""
    is_call = node.op == "call_function" and node.target not in (getattr, operator.getitem)
    return isinstance(node.value_type, ArrayType) or (is_call and effect_of(node) is Effect.NONE)


def _sets(node: Node) -> bool:
    """Whether a call sets an attribute, item or variable of the program's state."""
    return (node.target is setattr and node.args[1] != "data") or sets_state(node.target)


def lasts(subject: Expression, with_attributes: bool = False) -> bool:
    """Whether nothing that a program writes changes a value: numbers among the inputs, and lasting facts of arrays;
    modes and facts of attributes ``with_attributes``, if none was set."""
    if isinstance(subject, Node):
        return not isinstance(subject.value_type, ArrayType)
    if isinstance(subject, Attribute):
        return with_attributes and subject.path.rpartition(".")[2] == "training"
    if not isinstance(subject, Call):
        return not isinstance(subject, notes.Variable)
    if subject.function is getattr and subject.args[1] in _LASTING:
        owner = subject.args[0]
        is_array = isinstance(owner, Node) and isinstance(owner.value_type, ArrayType)
        return is_array or (with_attributes and isinstance(owner, Attribute))
    if subject.function is getattr:  # of a dtype or device, which nobody changes
        return isinstance(subject.args[0], Call) and lasts(subject.args[0], with_attributes)
    if getattr(subject.function, "of_sizes", False):  # and of settings of a layer, which stay what nobody sets
        settings = (argument for argument in subject.args if not isinstance(argument, Attribute) or not with_attributes)
        return all(lasts(argument, with_attributes) for argument in settings)
    is_item = subject.function is operator.getitem
    is_arithmetic = subject.function in _COMPARISONS or subject.function in _ARITHMETIC
    return (is_item or is_arithmetic) and all(lasts(argument, with_attributes) for argument in subject.args)


def is_reading(node: Node) -> bool:
    """Whether a call tells a fact about what it is given, or computes with plain numbers."""
    if node.target is notes.read_variable:
        return True
    if isinstance(node.value_type, ArrayType) or any(_holds_nodes(argument) for argument in node.args):
        return False
    if bodies_of(node):
        return False
    if node.op == "call_method":
        return node.target in _SIZES
    if is_own(node.target):
        return effect_of(node) is Effect.NONE
    if _is_one_of(node.target, _READINGS):
        of_array = any(isinstance(used.value_type, ArrayType) for used in node.all_input_nodes)
        return not of_array or node.target in _OF_ARRAYS
    are_attributes = all(used.op == "get_attr" for used in node.all_input_nodes)
    return are_attributes and effect_of(node) is Effect.NONE


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
    if isinstance(subject, Call) and subject.function is bool and _is_negated_mode(subject.args[0]):
        subject = subject.args[0]
    if test == "equals" and type(expected) is bool and _is_negated_mode(subject):
        subject, expected = subject.args[0], not expected
    is_equality = _is_comparison(subject, operator.ne)  # of anything: nan differs from itself both ways
    if test == "equals" and expected is False and (is_equality or _compares_whole_numbers(subject)):
        subject, expected = Call(OPPOSITE[subject.function], subject.args), True
    reason = str(node.args[4]) if len(node.args) > 4 else ""
    is_worded = test in _WORDED or _has_own_function(subject)
    label = str(node.args[2]) if is_worded and len(node.args) > 2 else ""
    return Guard(subject, test, expected, kind_of(test, subject), node.source, reason, label)


def _compares_whole_numbers(subject: Expression) -> bool:
    """Whether an expression compares sizes and whole numbers, of which one comparison or its opposite holds: none is
    nan."""
    if not isinstance(subject, Call) or not _is_one_of(subject.function, _COMPARISONS):
        return False
    return all(map(_is_whole_number, subject.args))


def _is_whole_number(one: Expression) -> bool:
    if isinstance(one, Node):
        return one.value_type == ScalarType("int")
    if not isinstance(one, Call):
        return type(one) is int
    if one.function is operator.getitem:
        return _is_shape(one.args[0]) and type(one.args[1]) is int
    if one.function is getattr:
        return bool(one.args[1] == "ndim")
    return _is_one_of(one.function, _OF_WHOLE_NUMBERS) and all(map(_is_whole_number, one.args))


def _is_shape(one: Expression) -> bool:
    return isinstance(one, Call) and one.function is getattr and one.args[1] == "shape"


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
    return is_own(subject.function) or any(map(_has_own_function, subject.args))


def _always_holds(node: Node, subject: Expression) -> bool:
    """Whether a recorded guard holds whatever comes in: its subject is a plain value that is the expected one."""
    is_plain = not isinstance(subject, (Node, Attribute, Call, notes.Variable))
    return is_plain and TESTS[_TESTS[node.target]].holds(subject, node.args[1])


def _bodies_without_data(graph: Graph) -> set[Graph]:
    """The bodies of branches of which modes and drawn numbers decide whether they run, not what the program is given:
    one layer of many that is left out in training, say."""
    found: set[Graph] = set()
    dependence, waiting = Dependence(), [graph]
    while waiting:
        for node in waiting.pop().nodes:
            branch = control_of(node)
            if not isinstance(branch, Branch) or not isinstance(branch.predicate, Node):  # a constant that was folded
                continue
            if dependence.depends_on(branch.predicate, _is_no_data):
                dependence.enter(branch)
                found.update(branch.bodies)
                waiting += branch.bodies
    return found


def _is_no_data(node: Node) -> bool:
    is_mode = node.op == "get_attr" and str(node.target).rpartition(".")[2] == "training"
    return is_mode or (node.op != "placeholder" and effect_of(node) is Effect.RANDOM)


# ---- guards that say the same ----------------------------------------------------------------------------------------


def _key_of(one: Guard) -> Any:
    """What a guard says; a key of its own where that cannot be compared."""
    key = one.subject, one.test, type(one.expected), one.expected
    try:
        hash(key)
    except TypeError:  # a list that is expected, say
        return id(one)
    return key


def condensed(found: list[Guard]) -> list[Guard]:
    """Guards without those that say again what another says: the same, or ``not x == 'b'`` where ``x == 'a'``."""
    first = {_key_of(one): one for one in reversed(found)}
    equal = {one.subject.args[0]: one.subject.args[1] for one in first.values() if _is_equality(one, True)}
    return [one for one in found if first[_key_of(one)] is one and not _is_another(one, equal)]


def _is_another(one: Guard, equal: dict[Any, Any]) -> bool:
    """Whether a guard says that something is not a value where another says that it is some other value."""
    if not (_is_equality(one, False) or _is_equality(one, True, operator.ne)) or one.subject.args[0] not in equal:
        return False
    value = equal[one.subject.args[0]]
    return type(value) is type(one.subject.args[1]) and bool(value != one.subject.args[1])


def _is_equality(one: Guard, answer: bool, function: Any = operator.eq) -> bool:
    """Whether a guard says that something is, or is not, a text, a whole number, or one of the objects of a kind."""
    is_told = one.test == "equals" and one.expected is answer and type(_key_of(one)) is not int
    return is_told and _is_comparison(one.subject, function)


def _is_comparison(subject: Expression, function: Any) -> bool:
    return isinstance(subject, Call) and subject.function is function and _is_distinct(subject.args[1])


def _is_negated_mode(subject: Expression) -> bool:
    """Whether an expression is ``not part.training``."""
    given = subject.args[0] if isinstance(subject, Call) and subject.function is operator.not_ else None
    return isinstance(given, Attribute) and given.path.rpartition(".")[2] == "training"


def _is_distinct(value: Any) -> bool:
    """Whether a plain value equals its like alone: a text, a whole number, one of the objects of a kind."""
    is_leaf = isinstance(value, (Node, Attribute, Call))
    return not is_leaf and (type(value) in (str, int) or type(value).__eq__ is object.__eq__)


# ---- kinds -----------------------------------------------------------------------------------------------------------

_KIND_OF_WORD = {
    **dict.fromkeys(("shape", "ndim", "size", "numel", "nelement", "dim", "ndimension", "len", "stride"), "size"),
    **dict.fromkeys(("dtype", "device", "layout", "requires_grad", "is_leaf", "is_nested", "names", "type"), "type"),
    **dict.fromkeys(("kind_of", "number_kind", "fits", "is_mask"), "type"),
    **dict.fromkeys(("training", "is_grad_enabled", "level_of", "defaults", "settings"), "mode"),
    **dict.fromkeys(("read_variable", "current_number", "are_as_they_were", "settings_of", *OUTSIDE), "variable"),
    **dict.fromkeys(("is_", "are_distinct"), "structure"),
}


_CODE = (type, FunctionType, BuiltinFunctionType, staticmethod, classmethod, property)


def kind_of(test: str, subject: Expression) -> str:
    """What a lifted guard is about."""
    if test == "variable":
        is_code = type(subject) is notes.Variable and isinstance(subject.expected, _CODE)
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
    if isinstance(subject, notes.Variable):
        return ["read_variable"]
    if not isinstance(subject, Call):
        return []
    name = subject.function if isinstance(subject.function, str) else getattr(subject.function, "__name__", "")
    own = [str(subject.args[1])] if subject.function is getattr else [name]
    return own + [word for argument in subject.args for word in _words(argument)]


# ---- what a value directly depends on --------------------------------------------------------------------------------


class Dependence:
    """One walk from a node backwards."""

    def __init__(self, bodies: Bodies | None = None) -> None:
        self._bodies = bodies
        self._around: dict[Graph, Branch] = {}

    def depends_on(self, node: Node, is_end: Callable[[Node], bool]) -> bool:
        """Whether all that a value is computed of is constant, or one of the nodes that end the walk."""
        waiting, seen = [node], set[Node]()
        while waiting:
            found = waiting.pop()
            if found in seen or is_end(found):
                continue
            seen.add(found)
            given = self.given_to(found)
            if not given:
                return False
            waiting += given
        return True

    def comes_from(self, node: Node, is_one: Callable[[Node], bool]) -> bool:
        """Whether a value is one of some nodes, whichever side branches take; None, which has no attributes, aside."""
        waiting, seen = [node], set[Node]()
        while waiting:
            found = waiting.pop()
            if found in seen or is_one(found):
                continue
            seen.add(found)
            outer = self.outer(found)
            given = self.sides(found) if outer is None else [outer]
            if not given or not all(isinstance(one, Node) for one in given):
                return False
            waiting += given
        return True

    def given_to(self, node: Node) -> list[Node]:
        """The nodes that the value of a node is computed of."""
        if node.op == "placeholder":
            outer = self.outer(node)
            return [] if outer is None else [outer]
        branch = self.branch_of(node)
        if branch is None:
            return node.all_input_nodes
        return [one for one in (branch.predicate, *self._ends(branch, int(node.args[1]))) if isinstance(one, Node)]

    def sides(self, node: Node) -> list[Any]:
        """What the sides of a branch give, those that end with an error left out, where a node is a result of one."""
        branch = self.branch_of(node)
        return [] if branch is None else self._ends(branch, int(node.args[1]))

    def outer(self, node: Node) -> Node | None:
        """What a parameter of a body stands for; None for any other node."""
        if node.op != "placeholder":
            return None
        branch = self._around.get(node.graph)
        if branch is None:
            return None if self._bodies is None else self._bodies.outer(node)
        outer = branch.operands[_place_among_inputs(node)]
        return outer if isinstance(outer, Node) else None

    def branch_of(self, node: Node) -> Branch | None:
        """The branch that a node takes a result of."""
        if node.target is not operator.getitem or type(node.args[1]) is not int or not isinstance(node.args[0], Node):
            return None
        found = control_of(node.args[0])
        return found if isinstance(found, Branch) else None

    def enter(self, branch: Branch) -> None:
        """Let the parameters of the bodies of a branch be known, and of the branches with which these close."""
        for body in branch.bodies:
            self._around[body] = branch
            closing = control_of(closing_branch(body)) if closing_branch(body) is not None else None
            if isinstance(closing, Branch):
                self.enter(closing)

    def _ends(self, branch: Branch, place: int) -> list[Any]:
        self.enter(branch)
        found = []
        for body in branch.bodies:
            found += [end[place] for end in ends_of(body) if isinstance(end, tuple) and place < len(end)]
        return [one for one in found if one is not None]


def _place_among_inputs(parameter: Node) -> int:
    """How many parameters of a body come before this one."""
    place, before = 0, parameter._prev
    while before is not parameter.graph._root:
        place += before.op == "placeholder"
        before = before._prev
    return place
