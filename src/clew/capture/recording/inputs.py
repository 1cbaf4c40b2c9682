"""The arguments of the example become placeholders, one for each parameter of the original.

In come the example's arguments, and later the lifted state; out come the values that the program runs on. Containers
are taken apart by nodes, made only for what is used, and keep their identity; what is no array or number is guarded.
A parameter that the example leaves out is an input with its default: a number is traced, what the program never reads
is not relied on, and anything else must be left out again. For programs that ask ``a is b``, whether equal plain
values are one object is guarded too.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import operator
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, MethodType
from typing import TYPE_CHECKING, Any

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.guards import notes
from clew.capture.guards.function_equality import FunctionFingerprint, cells_of, has_fingerprint
from clew.capture.guards.notes import Variable, expression_of
from clew.capture.location import MISSING
from clew.capture.recording.alternatives import KEYS_LATER, Choice, Choices, KeyOrders, Kind, has
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.list_proxies import ListProxy, StateListProxy, WalkedDict, values_of
from clew.capture.recording.recorder import Pending, Recorder
from clew.capture.state.containers import (
    ATTRIBUTE,
    ITEM,
    MEMBER,
    SIMPLE,
    TEXTS,
    UNSET,
    VALUE,
    Contents,
    contents,
    follows,
    has_attributes,
    is_flat,
    refill,
    same_part,
    value_of,
)
from clew.errors import CaptureError, ExampleMismatch, a_or_an
from clew.ir.effects import pure
from clew.ir.guests import guest_of, is_plain_value
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.capture.control_flow.argument_uses import Asked


def bind(
    inputs: Inputs, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], target: Any = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Make a placeholder for each parameter; the arguments to run the program with.

    ``target`` is the function that gets them as they are; None if another may see which were given.
    """
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise ExampleMismatch(
            f"the example does not fit {_name_of(target)}{signature}: {error}",
            fixes=("give the arguments of one call: args=(...), kwargs={...}",),
        ) from None
    code = _code_with(target, signature)
    entered: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        node = _placeholder(inputs, name, parameter)
        given = bound.arguments.get(name, parameter.default)
        if code is not None and name in inputs.handed_on and inputs.takes_whole(given):
            entered[name] = inputs.whole(given, node)
        elif code is not None and (choice := _choice(inputs, given, node, parameter)) is not None:
            entered[name] = choice
        elif code is not None and inputs.takes_items(given, name, parameter):
            entered[name] = inputs.items_of({} if given is parameter.empty else given, node, name)
        elif code is not None and inputs.takes_list(given, name):
            entered[name] = inputs.open_list(given, node, name)
        elif code is not None and inputs.takes_values(given, name):
            entered[name] = inputs.open_values(given, node)
        elif name in bound.arguments:
            entered[name] = _enter(inputs, bound.arguments[name], node, name, parameter)
        elif code is not None and not _mentions(code, name):
            continue
        elif code is not None and inputs.takes_number(parameter.default, name) and _may_be_passed(parameter):
            entered[name] = inputs.enter(parameter.default, node, name)
        else:
            _check_nothing_given(inputs, node, name, parameter)
    bound.arguments = entered
    if inputs.choices is not None:
        inputs.choices.is_open = False
    return _as_passed(signature, bound, len(args))


def _name_of(target: Any) -> str:
    """The name of a program in front of its parameters."""
    name = str(getattr(target, "__qualname__", ""))
    return "" if "<" in name else name


def _choice(inputs: Inputs, value: Any, node: Node, parameter: inspect.Parameter) -> Choice | None:
    """The proxy of an argument that may be of several kinds."""
    is_compared = type(value) is str and inputs.asked is not None and parameter.name in inputs.asked().only_compared
    return inputs.choice(value, node, parameter.name, is_compared) if _may_be_passed(parameter) else None


def _code_with(target: Any, signature: inspect.Signature) -> CodeType | None:
    """The code of a function that has the parameters of a signature itself."""
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    if not isinstance(code, CodeType) or not _BLIND.isdisjoint(code.co_names):
        return None
    return code if signature.parameters.keys() <= {*code.co_varnames} else None


_BLIND = frozenset({"locals", "vars", "exec", "eval", "dir", "_getframe", "currentframe"})
"""Functions by which a function may read variables that it does not name."""
_OF_LOCALS = ("FAST", "DEREF", "CLOSURE", "CELL")


def _mentions(code: CodeType, name: str) -> bool:
    """Whether a function does anything with a parameter."""
    steps = [one for one in instructions_of(code) if any(kind in one.opname for kind in _OF_LOCALS)]
    return any(one.argval == name or (isinstance(one.argval, tuple) and name in one.argval) for one in steps)


def _may_be_passed(parameter: inspect.Parameter) -> bool:
    """Whether a parameter that was left out can be given by its name."""
    return parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def _enter(inputs: Inputs, value: Any, node: Node, name: str, parameter: inspect.Parameter) -> Any:
    """Arguments gathered by ``**`` come in a dict that nobody else holds, whose writes nobody sees."""
    entered = inputs.enter(value, node, name)
    if parameter.kind is parameter.VAR_KEYWORD:
        inputs.containers = [container for container in inputs.containers if container.value is not value]
        del inputs.recorder.objects[id(value)]
        inputs.key_orders.kept.append(value)
    return entered


def _as_passed(
    signature: inspect.Signature, bound: inspect.BoundArguments, count: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Positional arguments by position and named ones by name, as the caller passed them."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL and type(value) is ListProxy:
            kwargs[name] = value  # the program runs as one that takes them in one list
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            args += value
        elif kind is inspect.Parameter.VAR_KEYWORD:
            kwargs |= value
        elif len(args) < count and kind is not inspect.Parameter.KEYWORD_ONLY:
            args.append(value)
        else:
            kwargs[name] = value
    return tuple(args), kwargs


def _placeholder(inputs: Inputs, name: str, parameter: inspect.Parameter) -> Node:
    stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else stars
    value = parameter.default
    default = () if value is parameter.empty else (Default(value) if follows(value) else value,)
    kind = {"keyword_only": True} if parameter.kind is parameter.KEYWORD_ONLY else {}
    kind = {"positional_only": True} if parameter.kind is parameter.POSITIONAL_ONLY else kind
    return inputs.recorder.graph.create_node("placeholder", stars + name, default, kind, name)


class Default:
    """Stands for a default value that is one object, which may be changed: a list, say."""

    def __init__(self, value: Any) -> None:
        self.text = repr(value)

    def __repr__(self) -> str:
        return self.text


def _check_nothing_given(inputs: Inputs, node: Node, name: str, parameter: inspect.Parameter) -> None:
    """A parameter that was left to its default must be left so again: the program saw the plain default. An array that
    is a default is an input like any other."""
    if inputs.recorder.is_array(parameter.default):
        inputs.enter(parameter.default, node, name)
    elif parameter.default is not parameter.empty:
        inputs.default(node.args[0], node, name)
    elif parameter.kind is parameter.VAR_POSITIONAL:
        inputs.checks.append((notes.require_length, node, 0))
    elif parameter.kind is parameter.VAR_KEYWORD:
        inputs.checks.append((notes.require_keys, node, ()))


# ---- what the arguments hold -----------------------------------------------------------------------------------------

_NUMBERS = (int, float, bool)


class InputContainer:
    """A mutable container of the example: its node, what it held, and what it held when the program started."""

    __slots__ = ("before", "entered", "place", "value")

    def __init__(self, value: Any, place: Any, before: Contents) -> None:
        self.value = value
        self.place = place
        self.before = before
        self.entered: Contents = {}


def is_plain(value: Any) -> bool:
    """Whether a value is a plain one, or a tuple of such."""
    return isinstance(value, SIMPLE) or (type(value) is tuple and all(map(is_plain, value)))


class InnerHistories:
    """The lists below a place of the state that the program may only append to."""

    def __init__(self) -> None:
        self.is_one: Callable[[list[Any]], bool] = lambda value: False
        """Whether nobody else holds a list that lies in what enters."""
        self.found: list[tuple[StateListProxy, Any, slice, slice]] = []
        """Such lists, their places, and which of the checks and arrays are those of their items."""


class Inputs:
    """Everything that entered one capture."""

    def __init__(self, recorder: Recorder, wrap_number: Callable[[Any, Any], Any], static: frozenset[str]) -> None:
        self.recorder = recorder
        self.wrap_number = wrap_number
        self.static = static
        self.plain_kinds: tuple[type, ...] = ()
        self.arrays: list[tuple[Any, Any]] = []
        self.callables: list[Any] = []
        self.containers: list[InputContainer] = []
        self.changing: frozenset[int] = frozenset()
        """Identities of the dicts and cells in which the program changes variables, as far as that is known."""
        self.ends: list[Any] = []
        self.streams: list[random.Random] = []
        self.twins: list[Any] = []
        self.checks: list[tuple[Any, Any, Any]] = []
        self.identities: Identities | None = None
        """For programs that compare objects."""
        self.histories = InnerHistories()
        self.handed_on: frozenset[str] = frozenset()
        """Parameters that the program only hands on to calls of the framework."""
        self.asked: Callable[[], Asked] | None = None
        """Tells what the code of the program does with arguments: it is looked at where an argument may be another."""
        self.choices: Choices | None = None
        """Arguments that may be of several kinds."""
        self.key_orders = KeyOrders()
        self.first_call_places: list[tuple[InputContainer, tuple[str, Any]]] = []
        """Places in the state that are None, and may be something else after the first call."""
        self.dicts: list[dict[str, Any]] = []
        """Of dicts among the arguments, the items that the program takes."""

    def choice(self, value: Any, place: Any, name: str, is_compared: bool = False) -> Choice | None:
        """The proxy of an argument that may be of several kinds, until this run knows which one it gets."""
        is_known = self.choices is None or id(value) in self.recorder.objects or self.recorder.identity.is_asked
        return None if is_known else self.choices.choice(value, place, name, is_compared)  # type: ignore[union-attr]

    def decide(self, given: tuple[tuple[Any, ...], dict[str, Any]]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Ask of which kinds arguments are; what the program is called with."""
        self.key_orders.ask(self.recorder)
        if self.choices is None or not self.choices.made:
            return given
        found = self.choices.decide()
        for items in self.dicts:
            for key in [key for key in items if id(items[key]) in found]:
                items[key] = found[id(items[key])]
                if items[key] is MISSING:
                    del items[key]
        for container in self.containers:
            parts = {key: found.get(id(part), part) for key, part in container.entered.items()}
            if any(part is not container.entered[key] for key, part in parts.items()):
                container.entered = parts
                refill(container.value, parts)
        args, kwargs = given
        named = {name: found.get(id(one), one) for name, one in kwargs.items()}
        there = {name: one for name, one in named.items() if one is not MISSING}
        return tuple([found.get(id(one), one) for one in args]), there

    def takes_items(self, value: Any, name: str, parameter: inspect.Parameter) -> bool:
        """Whether of a dict the program only takes single items."""
        is_dict = type(value) is dict and id(value) not in self.recorder.objects
        if self.asked is None or self.recorder.identity.is_asked:
            return False
        return (is_dict or parameter.kind is parameter.VAR_KEYWORD) and bool(self.asked().keys.get(name))

    def items_of(self, values: dict[str, Any], place: Any, name: str) -> dict[str, Any]:
        """A dict with the items that the program takes, each as it shall see it; what else is there is not seen."""
        assert self.asked is not None
        self.checks.append((notes.require_type, place, dict))
        found: dict[str, Any] = {}
        asked = self.asked()
        for key, is_needed in asked.keys[name].items():
            at = Pending(operator.getitem, (place, key))
            choice = None if is_needed or self.choices is None else self.choices.item(values, place, key)
            if choice is not None:
                found[key] = choice
                continue
            self.checks.append((notes.require, Pending(has, (place, key)), key in values))
            if key in values:
                choice = self.choice(values[key], at, key, (name, key) in asked.compared_items)
                found[key] = self.enter(values[key], at, name) if choice is None else choice
        self.dicts.append(found)
        return found

    def kind_left(self, value: Any) -> Kind | None:
        """The kind of what a run has left where nothing was, with a value to run with; None if it is not followed."""
        return None

    def takes_list(self, value: Any, name: str) -> bool:
        """Whether a list may be of any length: the program only reads it, and its items are of one kind."""
        return False

    def open_list(self, value: Any, place: Any, name: str) -> Any:
        """The proxy of such a list."""
        raise NotImplementedError

    def takes_values(self, value: Any, name: str) -> bool:
        """Whether a dict may have any keys: the program only walks its values, and they are of one kind."""
        return False

    def open_values(self, value: dict[Any, Any], place: Any) -> Any:
        """The proxy of such a dict."""
        raise NotImplementedError

    def enter(self, value: Any, place: Any, name: str) -> Any:
        """The value as the program shall see it; what it holds is tied to nodes, what it is is guarded."""
        known = self.recorder.objects.get(id(value))
        if known is not None and known[0] is value:
            self._same_object(known[1], place)
            return value
        if self.recorder.is_array(value):
            self.arrays.append((value, place))
            return self.recorder.enter(value, place)
        if self.takes_number(value, name):
            self.check_number(value, place)
            return self.wrap_number(value, place)
        if isinstance(value, tuple):
            return self._tuple(value, place, name)
        if type(value) is slice:
            return self._slice(value, place, name)
        if type(value).__module__ == "clew.ir.arguments":
            return self._frozen(value, place, name)
        twin = self.recorder.twin_of(value)
        if twin is not None:
            return self._twin(value, twin, place)
        if type(value) is random.Random:
            return self._stream(value, place)
        if isinstance(value, TEXTS):  # what is read and written of them has no node
            raise _cannot_follow(name, value)
        if follows(value) and not self.recorder.is_end(value):
            return self._container(value, place, name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._dataclass(value, place, name)
        return self.constant(value, place, name)

    def _twin(self, value: Any, twin: Any, place: Any) -> Any:
        """An object that a framework draws from: a twin that reports stands for it, the same one at each place."""
        known = self.recorder.known(twin)
        if known is not None:
            self._same_object(known, place)
            return twin
        self.checks.append((notes.require_type, place, type(value)))
        self.checks.append((notes.require, Pending(getattr, (place, "device")), value.device))
        for other in self.twins:  # what is drawn from one must not be missing in the other
            self.checks.append((notes.require, Pending(operator.is_, (other, place)), False))
        self.twins.append(place)
        return self.recorder.enter(twin, place)

    def _stream(self, value: random.Random, place: Any) -> Any:
        """A stream of random numbers: draws from it are recorded on its node, whichever stream it is."""
        self.checks.append((notes.require_type, place, random.Random))
        self.recorder.objects[id(value)] = (value, place)
        self.streams.append(value)
        return value

    def _dataclass(self, value: Any, place: Any, name: str) -> Any:
        """One that keeps its fields in slots: the program gets a twin of it."""
        self.checks.append((notes.require_type, place, type(value)))
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        parts = {field: self.enter(getattr(value, field), Pending(getattr, (place, field)), name) for field in fields}
        twin = dataclasses.replace(value, **parts)
        self.recorder.objects[id(twin)] = (twin, place)  # what is given on is the object that came in
        return twin

    def check_number(self, value: Any, place: Any) -> None:
        """Guard what a traced number must be."""
        self.checks.append((notes.require_type, place, type(value)))

    def takes_whole(self, value: Any) -> bool:
        """Whether an argument that is only handed on may be another one in each call."""
        return False

    def whole(self, value: Any, place: Any) -> Any:
        """The proxy of such an argument."""
        raise NotImplementedError

    def is_plain(self, kind: type) -> bool:
        """Whether numbers of a class enter as they are."""
        return kind in self.plain_kinds

    def takes_number(self, value: Any, name: str) -> bool:
        """Whether a value is a number that enters as a traced one."""
        return type(value) in _NUMBERS and name not in self.static and type(value) not in self.plain_kinds

    def _same_object(self, first: Any, second: Any) -> None:
        """The same container in two places must be one again."""
        nodes = [self.recorder.resolve(place) for place in (first, second)]
        if nodes[0] is not nodes[1]:
            same = self.recorder.create(operator.is_, tuple(nodes))
            self.checks.append((notes.require, same, True))

    def _tuple(self, value: Any, place: Any, name: str) -> Any:
        self.checks.append((notes.require_type, place, type(value)))
        if hasattr(value, "_fields"):
            fields = (self.enter(getattr(value, f), Pending(getattr, (place, f)), name) for f in value._fields)
            return type(value)(*fields)
        self.checks.append((notes.require_length, place, len(value)))
        if is_plain_value(value):
            return self.recorder.result(value, place)  # a shape, whose sizes are traced
        items = self._items(value, place, name)
        if self.identities is not None and all(map(operator.is_, items, value)):
            self.identities.note(value, place)
            return value
        return type(value)(items)

    def _slice(self, value: Any, place: Any, name: str) -> Any:
        self.checks.append((notes.require_type, place, slice))
        parts = ("start", "stop", "step")
        return slice(*(self.enter(getattr(value, part), Pending(getattr, (place, part)), name) for part in parts))

    def _frozen(self, value: Any, place: Any, name: str) -> Any:
        """The immutable lists and dicts of graphs, when a graph itself is captured."""
        self.checks.append((notes.require_type, place, type(value)))
        if isinstance(value, list):
            self.checks.append((notes.require_length, place, len(value)))
            return type(value)(self._items(value, place, name))
        self.checks.append((notes.require_keys, place, tuple(value)))
        pairs = ((key, self.enter(v, Pending(operator.getitem, (place, key)), name)) for key, v in value.items())
        return type(value)(pairs)

    def _items(self, value: Any, place: Any, name: str) -> list[Any]:
        return [self.enter(item, Pending(operator.getitem, (place, i)), name) for i, item in enumerate(value)]

    def _container(self, value: Any, place: Any, name: str) -> Any:
        container = InputContainer(value, place, contents(value))
        self.containers.append(container)
        self.recorder.objects[id(value)] = (value, place)
        self.checks.append((notes.require_type, place, type(value)))
        self._check_keys(container)
        if callable(value):
            self.callables.append(value)
        if has_attributes(value) and self.choices is not None and self.choices.is_open:
            self.key_orders.is_seen = True  # by methods that were not looked at, as those around the program were
        for key, part in container.before.items():
            is_free = part is None and self._is_set_later(container, key)
            container.entered[key] = None if is_free else self._part(key, part, place, name)
        refill(value, container.entered)
        return value

    def _is_set_later(self, container: InputContainer, key: tuple[str, Any]) -> bool:
        """Whether a place in the state that is None holds something else at a later call, which is asked for."""
        is_state = self.choices is not None and not self.choices.is_open
        if not is_state or self.choices.kind_left((id(container.value), key[1]), str(key[1])) is None:  # type: ignore[union-attr]
            return False
        self.first_call_places.append((container, key))
        return True

    def history(self, value: list[Any], place: Any, name: str) -> StateListProxy:
        """A list of the state whose length and items matter only if the program looks at them."""
        self.checks.append((notes.require_type, place, list))
        before = contents(value)
        parts = {key: self._part(key, part, place, name) for key, part in before.items()}
        made = StateListProxy(value, list(parts.values()), place, self.recorder)
        container = InputContainer(made, place, before)
        container.entered = parts
        self.containers.append(container)
        self.recorder.objects[id(made)] = (made, place)
        return made

    def _inner_history(self, value: list[Any], place: Any, name: str) -> StateListProxy:
        """Such a list below a place of the state."""
        checks, arrays = len(self.checks) + 1, len(self.arrays)
        made = self.history(value, place, name)
        self.histories.found.append((made, place, slice(checks, len(self.checks)), slice(arrays, len(self.arrays))))
        return made

    def _check_keys(self, container: InputContainer) -> None:
        value, place = container.value, container.place
        if isinstance(value, dict):
            keys = tuple(key for way, key in container.before if way == ITEM)
            is_argument = self.choices is not None and self.choices.is_open
            if len(keys) > 1 and (type(value) is dict or (type(value) is OrderedDict and is_argument)):
                self.key_orders.found.append((container, keys))
                self.checks.append((KEYS_LATER, place, keys))
                self.key_orders.kept += [] if is_argument else [value]
            else:
                self.checks.append((notes.require_keys, place, keys))
        elif isinstance(value, set):
            self.checks.append((notes.require, place, set(value)))
        elif isinstance(value, (list, deque)):
            self.checks.append((notes.require_length, place, len(value)))
        if isinstance(value, deque):
            self.checks.append((notes.require, Pending(getattr, (place, "maxlen")), value.maxlen))
        elif isinstance(value, defaultdict):
            self.checks.append(
                (notes.require_same, Pending(getattr, (place, "default_factory")), value.default_factory)
            )
        if has_attributes(value):
            names = tuple(key for way, key in container.before if way == ATTRIBUTE)
            self.checks.append((notes.require_attributes, place, names))

    def _part(self, key: tuple[str, Any], part: Any, place: Any, name: str) -> Any:
        way, inner = key
        if way == MEMBER:
            if not isinstance(part, SIMPLE):
                raise _cannot_follow(name, part)
            return part
        if way == VALUE:
            return self._value(part, Pending(value_of, (place,)), name)
        reader = getattr if way == ATTRIBUTE else operator.getitem
        is_new = type(part) is list and id(part) not in self.recorder.objects
        if is_new and self.histories.is_one(part):
            return self._inner_history(part, Pending(reader, (place, inner)), name)
        found = self.choice(part, Pending(reader, (place, inner)), inner) if type(inner) is str else None
        return self.enter(part, Pending(reader, (place, inner)), name) if found is None else found

    def _value(self, value: Any, place: Any, name: str) -> Any:
        """What a context variable holds; that it holds nothing is guarded too."""
        if value is not UNSET:
            return self.enter(value, place, name)
        self.checks.append((notes.require_same, place, value))
        return value

    def constant(self, value: Any, place: Any, name: str) -> Any:
        """A value that is the same in every call that the capture is good for."""
        is_fact = is_plain_value(value)
        if isinstance(value, MethodType) and self._enters_owner(value):
            self.enter(value.__self__, Pending(getattr, (place, "__self__")), name)
        owner = value.__self__ if isinstance(value, MethodType) else value
        if self.recorder.is_end(owner):
            self.ends.append(owner)
        if has_fingerprint(value) and not self._must_be_same(value):
            self._function(value, place)
        elif isinstance(value, enum.Enum) or callable(value):
            self.checks.append((notes.require_same, place, value))
            self.callables.append(value)
        elif isinstance(value, (*SIMPLE, frozenset, range)) or (is_fact and _has_equality(value)):
            self.checks.append((notes.require, place, value))
            if self.identities is not None:
                self.identities.note(value, place)
        elif is_fact or self.recorder.is_end(value):
            self.checks.append((notes.require_same, place, value))
        else:
            raise _cannot_follow(name, value)
        return value

    def _function(self, value: Any, place: Any) -> None:
        """A function may be made anew for each call: what it does must be the same, and it is given on as it comes."""
        entered = isinstance(value, MethodType) and self._enters_owner(value)
        self.checks.append((notes.require_alike, place, FunctionFingerprint(value, entered)))
        self.recorder.objects[id(value)] = (value, place)
        self.callables.append(value)

    def _must_be_same(self, function: Any) -> bool:
        """Whether no other function can stand for this one: the program compares objects, or the function sets
        variables of its own, of which the graph knows those of the example."""
        return self.recorder.identity.is_asked or any(id(cell) in self.changing for cell in cells_of(function))

    def _enters_owner(self, method: MethodType) -> bool:
        return follows(method.__self__) and not self.recorder.is_end(method.__self__)

    def default(self, value: Any, place: Any, name: str) -> None:
        """A parameter that was left out has its plain default value, and must have it again; a tuple of plain values
        may be an equal one, unless the program compares objects."""
        if type(value) is tuple and not self.recorder.identity.is_asked and is_plain(value):
            self.checks.append((notes.require_type, place, tuple))
            self.checks.append((notes.require_length, place, len(value)))
            for index, item in enumerate(value):
                self.default(item, Pending(operator.getitem, (place, index)), name)
            return
        self.checks.append((notes.require if isinstance(value, SIMPLE) else notes.require_same, place, value))

    def write_checks(self) -> list[Node]:
        """Put the guards of what has entered into the graph, each once."""
        written = []
        of_keys = iter(self.key_orders.checks())
        for check, place, expected in [next(of_keys) if one[0] is KEYS_LATER else one for one in self.checks]:
            node = self.recorder.resolve(place)
            shown = expected.__name__ if isinstance(expected, type) else repr(expected)
            text = f"{_WORDS[check].format(expression_of(node))} {shown}"
            text = notes.describe(node, expected) if node.target is has else text
            written.append(self.recorder.create(check, (node, expected, text)))
        self.checks.clear()
        for first, second, answer in () if self.identities is None else self.identities.questions():
            written.append(self._identity(first, second, answer))
        return written

    def _identity(self, first: Any, second: Any, answer: bool) -> Node:
        """Guard whether two places, or a variable and a place, hold the same object."""
        is_variable = isinstance(first, notes.Variable)
        node = self.recorder.create(notes.read_variable, (first,)) if is_variable else self.recorder.resolve(first)
        other = self.recorder.resolve(second)
        text = f"{expression_of(node)} is {'' if answer else 'not '}{expression_of(other)}"
        same = self.recorder.create(operator.is_, (node, other))
        return self.recorder.create(notes.require, (same, answer, text))

    def resolve_arrays(self) -> None:
        """Make the nodes of all arrays now: what holds them may be changed before they are used."""
        for _, place in self.arrays:
            self.recorder.resolve(place)

    def put_back(self) -> None:
        """Let all containers hold what they held."""
        for container in reversed(self.containers):
            if type(container.value) is not StateListProxy:  # what it stands for was left as it was
                refill(container.value, container.before)

    def commit(self, plain: Callable[[Any], Any]) -> None:
        """Let all containers hold what the program left in them, with plain numbers."""
        for container in self.containers:
            value = container.value.original if type(container.value) is StateListProxy else container.value
            parts = contents(container.value).items()
            refill(value, {(way, self.recorder.concrete(key)): plain(part) for (way, key), part in parts})


class ExampleInputs(Inputs):
    """What enters the capture of a program that runs on real values: lists among it may be of any length."""

    recorder: ExampleRecorder

    def __init__(
        self, recorder: ExampleRecorder, wrap_number: Callable[[Any, Any], Any], static: frozenset[str]
    ) -> None:
        super().__init__(recorder, wrap_number, static)
        self.lists: list[tuple[list[Any], Any]] = []
        """The lists that may be of any length."""

    def resolve_arrays(self) -> None:
        """Make the nodes of all arrays now, and of the lists that hold some."""
        super().resolve_arrays()
        for _, place in self.lists:
            self.recorder.resolve(place)

    def kind_in_list(self, value: Any) -> Any:
        """Of which kind an item of a list is; None for what a list of any length may not hold."""
        return None

    def watch_items(self, values: list[Any]) -> None:
        """Let what lists of any length hold be put back after the run."""
        raise NotImplementedError

    def takes_list(self, value: Any, name: str) -> bool:
        """Whether a list may be of any length: the program only reads it, and its items are of one kind."""
        if type(value) not in (list, tuple) or not value or self.choices is None or name in self.static:
            return False
        asked = self.choices.asked()
        return name in (asked.only_read if type(value) is list else asked.read_alike) and self._are_alike(value, value)

    def _are_alike(self, holder: Any, values: Iterable[Any]) -> bool:
        """Whether all that nobody else holds but a container is of one kind."""
        if id(holder) in self.recorder.objects or self.recorder.identity.is_asked:
            return False
        kinds = [self.kind_in_list(one) for one in values]
        return None not in kinds and all(kind == kinds[0] for kind in kinds)

    def takes_values(self, value: Any, name: str) -> bool:
        """Whether a dict may have any keys: the program only walks its values, and they are of one kind."""
        if type(value) is not dict or not value or self.choices is None or name in self.static:
            return False
        return name in self.choices.asked().only_values and self._are_alike(value, value.values())

    def open_values(self, value: dict[Any, Any], place: Any) -> Any:
        """The proxy of such a dict."""
        self.checks.append((notes.require_type, place, dict))
        return WalkedDict(value, self.opened(list(value.values()), Pending(values_of, (place,))))

    def open_list(self, value: Any, place: Any, name: str) -> Any:
        """The proxy of such a list, or of a tuple that the program treats like one."""
        if self.choices is not None and name in self.choices.asked().read_alike:
            self.checks.append((notes.require, Pending(is_list_or_tuple, (place,)), True))
        else:
            self.checks.append((notes.require_type, place, list))
        return self.opened(value, place)

    def opened(self, value: Any, place: Any) -> ListProxy:
        """The proxy of what may have any length."""
        self.lists.append((value, place))
        self.watch_items(value)
        made = ListProxy(list(value), place, self.recorder)
        made.is_uniform = True
        return made


@pure
def is_list_or_tuple(value: Any) -> bool:
    """Whether a value is a list or a tuple."""
    return type(value) in (list, tuple)


def _has_equality(value: Any) -> bool:
    return type(value).__eq__ is not object.__eq__


def _cannot_follow(name: str, value: Any) -> CaptureError:
    other = guest_of(value)
    kind = None if other is None else other.array_class
    if other is not None and kind is not None and isinstance(value, kind):
        if is_flat(value) and type(value) is not kind:
            return CaptureError(
                f"the argument {name!r} holds {a_or_an(value)}, a class of arrays of its own",
                why="what such an array does when it is read or written to is not seen",
                fixes=("pass a plain array: numpy.asarray(x)",),
            )
        return CaptureError(
            f"the argument {name!r} holds an array of {other.package}, and the program is of another framework",
            why="a capture follows the arrays of one framework",
            fixes=("convert it before the call",),
        )
    return CaptureError(
        f"the argument {name!r} holds {a_or_an(value)}, which cannot be followed",
        why="capture follows arrays, numbers, strings, None, containers and plain objects of these",
        fixes=("pass its parts as arguments",),
    )


_WORDS = {
    notes.require: "{} ==",
    notes.require_either: "{} in",
    notes.require_same: "{} is",
    notes.require_alike: "{} does what was done by",
    notes.require_type: "type({}) is",
    notes.require_length: "len({}) ==",
    notes.require_keys: "tuple({}) ==",
    notes.require_attributes: "tuple(vars({})) ==",
}


# ---- which plain values are one object -------------------------------------------------------------------------------

_KINDS = frozenset({int, float, complex, str, bytes, tuple, frozenset, range})
_SMALL = range(-5, 257)
"""Python has one object for each of these numbers."""


class Identities:
    """The plain values of one capture that may or may not be the same object in another call."""

    def __init__(self, around: Iterable[tuple[Any, str, Any]]) -> None:
        self._around = [(value, Variable(holder, name)) for holder, name, value in around if _may_be_several(value)]
        self._entered: list[tuple[Any, Any]] = []
        self._compared = 0

    def note(self, value: Any, place: Any) -> None:
        """A value came in as it is."""
        if _may_be_several(value):
            self._entered.append((value, place))

    def questions(self) -> Iterator[tuple[Any, Any, bool]]:
        """Two places, or a variable and a place, and whether they hold the same object; for what was noted lately."""
        for index in range(self._compared, len(self._entered)):
            value, place = self._entered[index]
            for other, where in self._entered[:index]:
                if same_part(value, other):
                    yield where, place, other is value
            for other, variable in self._around:
                if same_part(value, other):
                    yield variable, place, other is value
        self._compared = len(self._entered)


def _may_be_several(value: Any) -> bool:
    kind = type(value)
    return kind in _KINDS and not (kind is int and value in _SMALL) and not (kind in (str, bytes, tuple) and not value)
