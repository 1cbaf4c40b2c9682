"""What rewritten functions call: each loop, branch and condition of the user's is one call of ``RUNTIME``.

Outside of captures, and where nothing is asked of data, it does what Python does. Inside of a capture it hands loops
and branches to the ``Regions`` of that capture.
"""

from __future__ import annotations

import builtins
import contextlib
import contextvars
import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew.capture.recording.list_proxies import ListProxy, extreme
from clew.capture.state.snapshot import cells_of
from clew.errors import CaptureError

if TYPE_CHECKING:
    from clew.capture.control_flow.regions import Regions
    from clew.capture.recording.recorder import Recorder

current: contextvars.ContextVar[Regions | None] = contextvars.ContextVar("clew_regions", default=None)
"""The regions of the capture that is recording in this context."""

Names = tuple[str, ...]
Sets = tuple[Names, Names, Names, Names]
_SETS_NOTHING: Sets = ((), (), (), ())

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne, "Is": operator.is_, "IsNot": operator.is_not, "In": lambda one, other: one in other,
    "NotIn": lambda one, other: one not in other,
}  # fmt: skip


def unrolled(regions: Regions | None, number: int, iterable: Any = None) -> Any:
    """A block in which Python runs a loop round by round."""
    return contextlib.nullcontext() if regions is None else regions.unrolled(number, iterable)


def before_guard(recorder: Recorder, is_on_data: bool) -> None:
    """The program relies on a whole number: perhaps a loop does, whose function can be rewritten."""
    regions = current.get()
    if regions is not None and regions.recorder is recorder:
        regions.before_guard(is_on_data)


def before_question(recorder: Recorder) -> None:
    """A function that was handed to another one asks for the truth of a value: perhaps it can be rewritten."""
    regions = current.get()
    if regions is not None and regions.recorder is recorder:
        regions.before_question()


def before_fact(recorder: Recorder) -> None:
    """The program asks for a dtype: perhaps in a branch, whose function can be rewritten."""
    regions = current.get()
    if regions is not None and regions.recorder is recorder:
        regions.before_fact()


class Returned:
    """What a body gives back for a ``return`` of the function around it."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Outcome:
    """How a loop has ended."""

    def __init__(self, broke: Any = False, returned: Any = False, value: Any = None) -> None:
        self.broke = broke
        self.returned = returned
        self.value = value

    def take(self, result: Any) -> bool:
        """Note what a round gave back; whether the loop ends there."""
        if isinstance(result, Returned):
            self.broke, self.returned, self.value = True, True, result.value
        elif result is not None:
            self.broke = True
        return result is not None


_NO_KEY = object()
"""A key that no dict has."""
_BEGINNINGS = {"sum": 0, "max": None, "min": None, "any": False, "all": True, "reduce": None}


def is_own(function: Any, kind: str) -> bool:
    """Whether a function is Python's own of this name, or what stands for it during a capture."""
    original = functools.reduce if kind == "reduce" else getattr(builtins, kind)
    return function is original or str(getattr(function, "__module__", "")).startswith("clew.")


def _plain(regions: Regions | None, plainly: Callable[[Any], Any] | None, iterable: Any) -> Any:
    """What ``sum`` or its like walks by itself."""
    items = iterable if regions is None else regions.walked(iterable)
    return items if plainly is None else plainly(items)


def _said_of_nothing(function: Any) -> str:
    """What an error of ``max`` or ``min`` says if there is nothing to choose from."""
    try:
        function(())
    except ValueError as error:
        return str(error)
    return ""


class Runtime:
    """The one object that rewritten functions hold."""

    BREAK = object()
    ASSERTION_ERROR = AssertionError

    @staticmethod
    def returned(value: Any) -> Returned:
        """A ``return`` inside of a body."""
        return Returned(value)

    @staticmethod
    def while_(number: int, test: Any, body: Any, sets: Sets, wants: bool) -> Outcome:
        """A ``while``. It ``sets`` the first of four groups of names; of these the second may be read after it, the
        third in a next round or then, and those of the fourth end with the function.
        """
        regions = current.get()
        outcome = Outcome()
        rounds = 0
        while True:
            if regions is not None and regions.is_loop_on_data(number, test, rounds):
                return regions.loop(number, test, body, sets, wants)  # type: ignore[no-any-return]
            with unrolled(regions, number):
                if not test() or outcome.take(body()):
                    return outcome
            rounds += 1

    @staticmethod
    def for_(
        number: int,
        iterable: Any,
        body: Any,
        sets: Sets,
        wants: bool,
        lists: tuple[Names, Names, Names] = ((), (), ()),
    ) -> Outcome:
        """A ``for``, which ``sets`` names as a ``while`` does. Of the ``lists`` the local ones may have any length, the
        chains at each round, and those that the function gives back if nobody but the caller of the program sees them.
        """
        regions = current.get()
        outcome = Outcome()
        if regions is not None and regions.is_open_ended(number, iterable):
            return regions.loop_over(number, iterable, body, sets, wants, *lists)  # type: ignore[no-any-return]
        with unrolled(regions, number, iterable):
            for item in iterable if regions is None else regions.walked(iterable):
                if outcome.take(body(item)):
                    break
        return outcome

    def collected(self, number: int, name: str, iterable: Any, each: Any, is_local: bool) -> Any:
        """A list comprehension; ``each`` appends one item to the list that the variable of this name holds."""
        place = cells_of(each)[name]
        place.cell_contents = []
        self.for_(number, iterable, each, _SETS_NOTHING, False, ((name,) if is_local else (), (), (name,)))
        found, place.cell_contents = place.cell_contents, None
        return found

    def reduced(
        self, number: int, kind: str, name: str, function: Any, iterable: Any, each: Any, plainly: Any, *start: Any
    ) -> Any:
        """``sum(...)`` and its like; ``each`` keeps what was found so far in the variable of this name, ``plainly``
        gives what the function itself would walk, if it is another thing. Of ``functools.reduce`` the ``function`` is
        a tuple: itself, what it calls in each round, and the name of the variable by which ``each`` does."""
        if kind == "reduce":
            return self._reduced_by(number, name, function, iterable, each, plainly, *start)
        regions = current.get()
        if regions is None or not regions.is_reduced(number, kind, function, iterable, plainly is None):
            is_extreme = plainly is None and kind in ("max", "min") and is_own(function, kind)
            found = extreme(getattr(builtins, kind), iterable) if is_extreme else None
            if found is not None:
                return found
            with unrolled(regions, number, iterable if is_own(function, kind) else ()):
                return function(_plain(regions, plainly, iterable), *start)
        place = cells_of(each)[name]
        place.cell_contents = start[0] if start else _BEGINNINGS[kind]
        self.for_(number, iterable, each, ((name,), (name,), (name,), ()), False)
        found, place.cell_contents = place.cell_contents, None
        if found is None and kind in ("max", "min"):
            raise ValueError(_said_of_nothing(function))
        return found

    def _reduced_by(
        self, number: int, name: str, made: tuple[Any, Any, str], iterable: Any, each: Any, plainly: Any, *start: Any
    ) -> Any:
        regions = current.get()
        function, step, step_name = made
        begins_with_none = start == (None,)
        if regions is None or begins_with_none or not regions.is_reduced(number, "reduce", function, iterable):
            with unrolled(regions, number, iterable if is_own(function, "reduce") else ()):
                return function(step, _plain(regions, plainly, iterable), *start)
        cells = cells_of(each)
        cells[step_name].cell_contents, cells[name].cell_contents = step, start[0] if start else None
        self.for_(number, iterable, each, ((name,), (name,), (name,), ()), False)
        found, cells[name].cell_contents, cells[step_name].cell_contents = cells[name].cell_contents, None, None
        return function(step, ()) if found is None else found  # which raises the error of no items

    @staticmethod
    def merged(number: int, step: Any, found: Any, item: Any) -> Any:
        """What ``functools.reduce`` has found after one item more."""
        if found is None:
            return item
        result = step(found, item)
        regions = current.get()
        if result is None and regions is not None:
            regions.give_up(number, "a function that reduces gives None")
        return result

    @staticmethod
    def summand(number: int, item: Any) -> Any:
        """What ``sum`` adds next."""
        regions = current.get()
        if regions is not None:
            regions.check_summand(number, item)
        return item

    def better(self, number: int, kind: str, found: Any, item: Any) -> Any:
        """What ``max`` or ``min`` has found after one item more."""
        if found is None:
            return item
        is_better = item > found if kind == "max" else item < found
        return self.choose(number * 1000, is_better, lambda: item, lambda: found)

    @staticmethod
    def listed(array: Any, unpacks: bool, gives_parts: bool = False) -> Any:
        """``array.tolist()``, which does not escape; with ``unpacks`` each row is taken apart at once. What torch takes
        apart by it may be seen by others if it ``gives_parts``."""
        regions = current.get()
        found = None if regions is None else regions.listed(array, unpacks, gives_parts)
        return array.tolist() if found is None else found

    @staticmethod
    def grouped(function: Any, items: Any, key: Any, place: int) -> Any:
        """``itertools.groupby(items, lambda item: item[place])``, of which each group is made a list at once."""
        regions = current.get()
        found = None if regions is None else regions.grouped(function, items, place)
        return function(items if regions is None else regions.walked(items), key) if found is None else found

    @staticmethod
    def copied(function: Any, items: Any) -> Any:
        """``list(items)``, of a group, which nobody else holds."""
        is_own = function is list or str(getattr(function, "__module__", "")).startswith("clew.")
        return items if type(items) is ListProxy and is_own else function(iter(items))

    @staticmethod
    def repeated(items: list[Any], count: Any) -> Any:
        """``items * count``, a list that does not escape."""
        regions = current.get()
        found = None if regions is None else regions.repeated(items, count)
        return items * count if found is None else found

    @staticmethod
    def indexed(array: Any, index: Any) -> Any:
        """``array[index]``, where the index may be a list of any length."""
        regions = current.get()
        found = None if regions is None else regions.indexed(array, index)
        return array[index] if found is None else found

    @staticmethod
    def place(number: int, group: Any, index: Any, may_miss: bool = False) -> Any:
        """The index of an item of a list or dict; if it comes from data, each that there is is asked for."""
        regions = current.get()
        places = None if regions is None else regions.places(group, index)
        if regions is None or places is None:
            return index
        wanted = regions.index(index)
        for one in places:
            if wanted == one:
                return one
        if may_miss:
            return _NO_KEY
        raise CaptureError("an index that comes from data is none of those that a list or dict has")

    def item(self, number: int, group: Any, index: Any) -> Any:
        """An item of a list or dict that is written out."""
        return group[self.place(number, group, index)]

    @staticmethod
    def walk(function: Any, values: Any) -> Any:
        """``iter(values)``, of which only the next item is asked for."""
        regions = current.get()
        found = None if regions is None else regions.walk(function, values)
        return function(values) if found is None else found

    @staticmethod
    def text(pieces: tuple[str, ...], *values: Any) -> str:
        """What an error says: a text in pieces, each with a field for one of the values, and what follows them."""
        regions = current.get()
        return "".join(pieces).format(*values) if regions is None else regions.text(pieces, values)

    @staticmethod
    def if_(number: int, test: Any, then: Any, other: Any, names: Names, live: Names) -> None:
        """An ``if`` that is left at its end."""
        regions, test = current.get(), counted(test)
        if regions is not None and regions.is_branch_on_data(number, test):
            regions.branch(number, test, then, other, names, live)
        elif test:
            then()
        else:
            other()

    @staticmethod
    def leave(number: int, test: Any, then: Any, other: Any, names: Names) -> Any:
        """An ``if`` of which each side ends with what the function gives; a node if a mode is asked for, or if the
        function was handed to another one, so that its sides are no paths of the program."""
        regions, test = current.get(), counted(test)
        if regions is not None and (regions.is_branch_on_mode(number, test) or regions.is_branch_inside(number, test)):
            return regions.branch(number, test, then, other, names)
        return then() if test else other()

    @staticmethod
    def choose(number: int, test: Any, then: Any, other: Any, turns: bool = True) -> Any:
        """``then if test else other``."""
        regions, test = current.get(), counted(test)
        if regions is not None and regions.is_branch_on_data(number, test):
            return regions.branch(number, test, then, other, turns=turns)
        return then() if test else other()

    def and_(self, number: int, value: Any, other: Any) -> Any:
        """``value and other``."""
        return self.choose(number, value, other, lambda: value, False)

    def or_(self, number: int, value: Any, other: Any) -> Any:
        """``value or other``."""
        return self.choose(number, value, lambda: value, other, False)

    def all_(self, number: int, value: Any, other: Any) -> Any:
        """``value and other`` where only the truth is asked."""
        return self.choose(number, value, lambda: truth(other()), lambda: False, False)

    def any_(self, number: int, value: Any, other: Any) -> Any:
        """``value or other`` where only the truth is asked."""
        return self.choose(number, value, lambda: True, lambda: truth(other()), False)

    def compare(self, number: int, names: tuple[str, ...], left: Any, *rest: Any) -> Any:
        """A chain of comparisons: each value is computed once, and only if those before hold."""
        right = rest[0]()
        found = _COMPARISONS[names[0]](left, right)
        if len(rest) == 1:
            return found
        return self.and_(number * 1000 + len(rest), found, lambda: self.compare(number, names[1:], right, *rest[1:]))

    def contained(self, number: int, value: Any, group: Any) -> Any:
        """``value in group``, of numbers or dtypes; a traced number is compared with one after the other."""
        regions = current.get()
        found = None if regions is None else regions.contained(value, group)
        if found is not None or regions is None or not regions.is_number(value):
            return value in group if found is None else found
        return self._is_one_of(number * 1000, value, list(group))

    def _is_one_of(self, number: int, value: Any, group: list[Any]) -> Any:
        found, rest = value == group[0], group[1:]
        return self.any_(number, found, lambda: self._is_one_of(number + 1, value, rest)) if rest else found

    @staticmethod
    def not_(value: Any) -> Any:
        """``not value``."""
        regions, value = current.get(), counted(value)
        return regions.negated(value) if regions is not None else not value

    @staticmethod
    def iterate(function: Any, *args: Any, **kwargs: Any) -> Any:
        """``range``, ``enumerate`` or ``zip`` of these, or the parts of an array."""
        regions = current.get()
        return function(*args, **kwargs) if regions is None else regions.iterate(function, args, kwargs)


def counted(value: Any) -> Any:
    """What is asked of a value for its truth: of a list of any length, whether there is an item."""
    return value.length() > 0 if type(value) is ListProxy and value.is_whole else value


def truth(value: Any) -> Any:
    """The truth of a value: a number of the graph if it comes from data."""
    regions, value = current.get(), counted(value)
    return bool(value) if regions is None else regions.truth(value)


RUNTIME = Runtime()
