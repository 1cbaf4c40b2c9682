"""Arguments that may be of another kind at each call: None or an array, one text of several.

In comes what the example gives for such an argument, and what its program asks of it; out comes what one run gets: the
example's value, or another that is tried in its place. Which one it is, is a question at the entrance of the graph, and
each answer a path of the program. Always holds: a value that was only tried stands for those of its kind alone, of
which the graph guards all that it relies on; a kind that could not be tried is refused.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from clew.capture.guards import notes
from clew.capture.guards.notes import expression_of
from clew.capture.location import MISSING
from clew.capture.recording.recorder import Pending, Recorder
from clew.capture.state.containers import ITEM, refill
from clew.ir.effects import pure
from clew.ir.node import Node

if TYPE_CHECKING:
    from clew.capture.control_flow.argument_uses import Asked

MOST_WAYS = 48
"""Arguments may be of other kinds as long as there are no more ways than this to give them."""
_MOST_TEXTS = 8


@pure
def is_text(value: Any, text: str) -> bool:
    """Whether a value is this text."""
    return type(value) is str and value == text


@pure
def is_any_text(value: Any) -> bool:
    """Whether a value is a text."""
    return type(value) is str


class Kind(NamedTuple):
    """One kind that an argument may be of: a name for it, the test that tells it, and the value to run with."""

    label: str
    test: Callable[..., bool]
    arguments: tuple[Any, ...]
    value: Any

    def is_entered(self) -> bool:
        """Whether a number or array stands for the value, with guards of its own."""
        return self.label in ("number", "array")

    def is_flag(self) -> bool:
        """Whether it is one of the two values of a flag, whose truth tells which."""
        return self.test is operator.truth


NONE = Kind("None", operator.is_, (None,), None)
FLAGS = [Kind("True", operator.truth, (), True), Kind("False", operator.truth, (), False)]
"""The values of a flag that the framework takes as a plain one only."""


@pure
def lacks(values: Any, key: str) -> bool:
    """Whether a dict has no such key."""
    return key not in values


@pure
def has(values: Any, key: str) -> bool:
    """Whether a dict has a key."""
    return key in values


ABSENT = Kind("absent", lacks, (), MISSING)
"""An item that is not in a dict."""


class Tried(Protocol):
    """What earlier runs have found out about kinds of arguments."""

    guesses: dict[str, int]
    """How many arrays were tried in vain, by the name of the argument."""
    impossible: set[tuple[str, str]]
    """Names of arguments, and kinds that the program cannot be run with."""
    left: dict[Any, Any]
    """What a run has left in places that it has changed, by their keys."""


class Choice:
    """An argument that may be of several kinds, until it is known which one this run gets."""

    def __init__(self, name: str, place: Any, kinds: list[Kind], own: int, home: Any = None) -> None:
        self.name = name
        self.place = place
        self.home = home
        """The dict of which it is an item, if it may be missing there."""
        self.kinds = kinds
        self.chosen = kinds[own]
        """The kind that the argument is of in this run: to begin with, that of the example."""
        self.marker: Node | None = None
        """A guard on its kind, behind which those stand on what the program relies on."""

    @property
    def node(self) -> Node:
        """The argument where the guard is."""
        assert self.marker is not None
        test: Any = self.marker.args[0]
        return test.args[0]  # type: ignore[no-any-return]


class Kinds(Protocol):
    """What enters a run, and what a framework knows of kinds."""

    recorder: Any
    checks: list[Any]

    def number_kind(self, value: Any = 1.0) -> Kind:
        """A number."""

    def array_kind(self, name: str, tries: int) -> Kind | None:
        """An array that might do for an argument of this name, if all before it did not."""

    def own_array_kind(self, value: Any) -> Kind | None:
        """The kind of an array that the example gives."""

    def kind_left(self, value: Any) -> Kind | None:
        """The kind of what a run has left where nothing was, with a value to run with; None if it is not followed."""

    def entered(self, value: Any, place: Any) -> Any:
        """The proxy of a number or an array."""

    def is_plain(self, kind: type) -> bool:
        """Whether the framework refuses proxies of numbers of a class."""


class Choices:
    """The arguments of one run that may be of several kinds."""

    def __init__(
        self, inputs: Kinds, asked: Callable[[], Asked], tried: Tried, static: frozenset[str], guesses: bool = True
    ) -> None:
        self.recorder = inputs.recorder
        self.asked = asked
        self.tried = tried
        self.kinds = inputs
        self.static = static
        self.checks = inputs.checks
        self.guesses = guesses
        """Whether an argument may be None or not."""
        self.made: list[Choice] = []
        self.is_open = True
        """Whether arguments are still coming in."""

    def choice(self, value: Any, place: Any, name: str, is_compared: bool) -> Choice | None:
        """The proxy of an argument until its kind is known; None if it can be of one kind only. The program sees no
        more of a text that ``is_compared`` than what comparisons tell."""
        if not self._takes(name):
            return None
        kinds = self._kinds(value, name, is_compared)
        possible = [kind for kind in kinds if self._is_possible(name, kind)]
        if len(possible) < len(kinds):  # then any other text might be the one that cannot be run
            possible = [kind for kind in possible if kind.test is not is_any_text]
        own = next((place for place, kind in enumerate(possible) if kind.value is value), 0)
        ways = math.prod(len(one.kinds) for one in self.made)
        if len(possible) < 2 or ways * len(possible) > MOST_WAYS:
            return None
        if kinds is FLAGS:
            self.checks.append((notes.require_type, place, bool))
        elif all(kind.test in (is_text, is_any_text) for kind in possible):  # they differ by what they say alone
            self.checks.append((notes.require_type, place, str))
            texts = tuple(kind.value for kind in possible if kind.arguments)
            if len(texts) == len(possible):
                self.checks.append((notes.require_either, place, texts))
            possible = [kind._replace(test=operator.eq) if kind.arguments else kind for kind in possible]
        self.made.append(Choice(name, place, possible, own))
        return self.made[-1]

    def item(self, values: dict[str, Any], home: Any, key: str) -> Choice | None:
        """The proxy of an item of a dict that may be missing; None if it cannot be otherwise."""
        value = values.get(key, MISSING)
        if not self._takes(key):
            return None
        guess = self.kinds.array_kind(key, self.tried.guesses.get(key, 0)) if value is MISSING else None
        if value is MISSING:
            present = [self.kinds.number_kind(), *([] if guess is None else [guess])]
        elif type(value) in (int, float):
            present = [self.kinds.number_kind(value)]
        else:
            own_kind = self.kinds.own_array_kind(value)
            present = [] if own_kind is None else [own_kind]
        possible = [kind for kind in (ABSENT, *present) if self._is_possible(key, kind)]
        ways = math.prod(len(one.kinds) for one in self.made)
        if not present or len(possible) < 2 or ways * len(possible) > MOST_WAYS:
            return None
        own = next((place for place, kind in enumerate(possible) if kind.value is value), 0)
        self.made.append(Choice(key, None, possible, own, home))
        return self.made[-1]

    def _takes(self, name: str) -> bool:
        return self.is_open and name not in self.static and all(one.name != name for one in self.made)

    def _is_possible(self, name: str, kind: Kind) -> bool:
        return (name, kind.label) not in self.tried.impossible

    def _kinds(self, value: Any, name: str, is_compared: bool) -> list[Kind]:
        """The kinds of an argument, in the order in which they are asked for."""
        if type(value) is bool and self.kinds.is_plain(bool):
            return FLAGS
        if not self.guesses and type(value) is not str:
            return []
        asked = self.asked()
        is_optional = self.guesses and (name in asked.optional or (value is None and name in asked.falsy))
        none = [NONE] if is_optional else []
        if value is None and is_optional:
            array = self.kinds.array_kind(name, self.tried.guesses.get(name, 0))
            return [NONE, *self._texts(name), self.kinds.number_kind(), *([] if array is None else [array])]
        if type(value) is str:
            return self._kinds_of_text(value, name, none, is_compared)
        if not is_optional:
            return []
        if type(value) in (int, float):
            return [NONE, self.kinds.number_kind(value)]
        own_kind = self.kinds.own_array_kind(value)
        return [] if own_kind is None else [NONE, own_kind]

    def _kinds_of_text(self, value: str, name: str, none: list[Kind], is_compared: bool) -> list[Kind]:
        """Those that the program names, and any other if all that it does is to compare."""
        own = Kind(repr(value), is_text, (value,), value)
        texts = self.asked().texts.get(name, [])
        others = [kind for kind in self._texts(name) if kind.label != own.label]
        is_any = is_compared and 0 < len(texts) <= _MOST_TEXTS
        if is_any and value not in texts:
            return [*others, *none, Kind("text", is_any_text, (), value)]
        longer = "another text" + "".join([kind.label for kind in (own, *others)])
        unknown = [Kind("text", is_any_text, (), longer)] if is_any else []
        return [own, *others, *none, *unknown]

    def _texts(self, name: str) -> list[Kind]:
        texts = self.asked().texts.get(name, [])[:_MOST_TEXTS]
        return [Kind(repr(text), is_text, (text,), text) for text in texts]

    def kind_left(self, key: Any, label: str, before: Any = None) -> Kind | None:
        """The kind of what an earlier run has left in a place that was None, or not there, if the program asks that of
        some place: at the first call all are so, and none is later."""
        if self.recorder.identity.is_asked or key not in self.tried.left:
            return None
        if before is MISSING and not self.guesses:
            return None
        kind = self.kinds.kind_left(self.tried.left[key])
        is_asked = before is MISSING or any(name in self.asked().optional for _, name in self.tried.left)
        return kind if kind is not None and is_asked and self._is_possible(label, kind) else None

    # ---- one run -------------------------------------------------------------------------------------------------

    def decide(self) -> dict[int, Any]:
        """Ask of which kinds the arguments are; what each is in this run, by the identity of its choice."""
        nodes = [self.recorder.resolve(one.place if one.home is None else one.home) for one in self.made]
        return {id(one): self._decide(one, node) for one, node in zip(self.made, nodes, strict=True)}

    def _decide(self, one: Choice, node: Node) -> Any:
        recorder = self.recorder
        assert recorder.paths is not None
        for kind in one.kinds[:-1]:
            given = (node, one.name) if kind is ABSENT else (node, *kind.arguments)
            asked = node if kind.is_flag() else recorder.create(kind.test, given)
            if recorder.paths.choose(asked, kind is one.chosen):
                one.chosen = kind
                break
            if kind is ABSENT:
                node = one.place = recorder.create(operator.getitem, (node, one.name))
        else:
            one.chosen = one.kinds[-1]
            # a guard at the entrance says that it is one of these texts, or a flag
            is_known = one.kinds[0].test is operator.eq or one.kinds[0].is_flag()
            one.marker = None if is_known else self.required(one.chosen, node)
        if not one.chosen.is_entered():
            return one.chosen.value
        one.marker = one.marker or self.required(one.chosen, node)
        return self.kinds.entered(one.chosen.value, one.node)  # of which facts are read on this path alone

    def required(self, kind: Kind, node: Node) -> Node:
        """A guard that a value is of a kind."""
        asked = self.recorder.create(kind.test, (node, *kind.arguments))
        told = kind.label if kind.arguments else f"{'an' if kind.label == 'array' else 'a'} {kind.label}"
        return self.recorder.create(notes.require, (asked, True, f"{expression_of(node)} is {told}"))

    def learn(self, runs: Iterable[Choices]) -> bool:
        """Note what could not be tried, if anything; whether the program has to be run again."""
        done = {(one.name, one.chosen.label) for run in runs for one in run.made}
        wanted = {(one.name, kind.label) for one in self.made for kind in one.kinds}
        for name, label in sorted(wanted - done):
            if label == "array" and self.kinds.array_kind(name, self.tried.guesses.get(name, 0) + 1) is not None:
                self.tried.guesses[name] = self.tried.guesses.get(name, 0) + 1
            else:
                self.tried.impossible.add((name, label))
        return bool(wanted - done)


# ---- dicts whose keys may stand in another order ---------------------------------------------------------------------


KEYS_LATER = object()
"""Stands among the checks of what has entered for that on the keys of a dict, until it is known what matters of them.
Items are looked at behind it."""
MOST_ORDERS = 6
"""The keys of dicts may stand in any order as long as there are no more orders than this."""


@pure
def keys_of(values: Any) -> frozenset[Any]:
    """The keys of a dict, in whatever order."""
    return frozenset(values)


@pure
def stand_in_order(values: Any, keys: tuple[Any, ...]) -> bool:
    """Whether the keys of a dict stand in this order."""
    return tuple(values) == keys


class KeyOrders:
    """The dicts among the arguments of one run, whose keys may stand in any order.

    If the program may see the order, each is a path of its own, as long as they are few. If all of these paths turn out
    to do the same, the program does not see it.
    """

    def __init__(self) -> None:
        self.may_ask = False
        """Whether each order may be a path."""
        self.is_seen = True
        """Whether the program may see in which order keys stand, as far as its code tells."""
        self.is_unseen = False
        """Whether all orders were tried, and the program did the same."""
        self.found: list[tuple[Any, tuple[Any, ...]]] = []
        """Dicts that have entered, with their keys."""
        self.kept: list[Any] = []
        """Dicts of the state, and those that only the program holds, made of what it was given by name."""
        self._asked: list[tuple[Any, tuple[Any, ...]]] = []

    def checks(self) -> list[tuple[Any, Any, Any]]:
        """What has to be guarded of the keys of what has entered: which there are, or in which order too."""
        found, self.found = self.found, []
        is_free = self.is_unseen or not self.is_seen
        orders = math.prod(math.factorial(min(len(keys), MOST_ORDERS)) for _, keys in found)
        is_kept = any(one.value is kept for one, _ in found for kept in self.kept)
        if not is_free and (orders > MOST_ORDERS or is_kept or not self.may_ask):
            return [(notes.require_keys, one.place, keys) for one, keys in found]
        self._asked += [one for one in found if not is_free or (type(one[0].value) is not dict and not self.is_unseen)]
        return [(notes.require, Pending(keys_of, (one.place,)), frozenset(keys)) for one, keys in found]

    def ask(self, recorder: Recorder) -> None:
        """Ask in which order keys stand; on another path than the first they stand in another one."""
        for container, keys in self._asked:
            paths, node = recorder.paths, recorder.resolve(container.place)
            assert paths is not None
            *others, last = itertools.permutations(keys)
            asked = ((recorder.create(stand_in_order, (node, order)), order) for order in others)
            order = next((order for one, order in asked if paths.choose(one, order == keys)), last)
            if order != keys:
                container.entered = {(ITEM, key): container.entered[ITEM, key] for key in order}
                refill(container.value, container.entered)
