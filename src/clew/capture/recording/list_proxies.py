"""Proxies of lists, tuples and iterators whose length the graph leaves open.

In come values of the example and the nodes that compute them. A ``ListProxy`` (filled by a loop of the graph), a
``TupleProxy`` (what an array was split into by one), an ``IteratorProxy`` (``iter(x)`` that only ``next`` reads) and a
``StateListProxy`` (a list that the program may only append to) are of Python's own classes to whoever asks. Always
holds: an access that depends on the length first adds a guard on it; the proxy is a plain list or tuple from then on.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew.ir.effects import pure

if TYPE_CHECKING:
    from clew.capture.recording.example_recorder import ExampleRecorder
    from clew.capture.recording.recorder import Recorder

_LITERAL = (int, type(None))


class ListProxy(list[Any]):
    """A list of the example whose node is ``place``."""

    __slots__ = ("gives_parts", "is_fixed", "is_local", "is_uniform", "number", "place", "recorder")

    def __init__(
        self, items: list[Any], place: Any, recorder: ExampleRecorder, is_local: bool = False, number: Any = None
    ) -> None:
        list.__init__(self, items)
        self.number = number
        """The traced number that all items follow from, if they do: those of a range."""
        self.is_local = is_local
        """Whether nobody but the function that has made the list ever sees it, or what it is taken apart by."""
        self.gives_parts = False
        """Whether what is taken apart by it may be seen by others, who are given ``TupleProxy``."""
        self.is_uniform = False
        """Whether all items are of one kind, in each call, so that any stands for any other: an argument."""
        self.place = place
        self.recorder = recorder
        self.is_fixed = False

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return list

    @property
    def is_whole(self) -> bool:
        """Whether the list is still the value of its node."""
        return not self.is_fixed and bool(self.recorder.open)

    def _change(self, why: str) -> None:
        """The list is about to change: not inside of a round or a side that is undone, if it was there before."""
        self.recorder.hooks.check_piece(self.recorder.resolve(self.place), why)

    def fix_length(self) -> None:
        """Rely on the length from now on: each item is one of the node's."""
        if not self.is_whole:
            return
        self._change("a list that a loop has filled is looked at inside")
        recorder, count = self.recorder, list.__len__(self)
        if self.number is not None:
            recorder.guard(self.number.place, self.number.plain)
            self.is_fixed = True
            return
        node = recorder.resolve(self.place)
        recorder.guard(recorder.create(len, (node,)), count)
        self.is_fixed = True
        items = [self._tied(item, place) for place, item in enumerate(list.__iter__(self))]
        list.__setitem__(self, slice(None), items)

    def _tied(self, item: Any, place: Any) -> Any:
        recorder = self.recorder
        node = recorder.create(operator.getitem, (recorder.resolve(self.place), place))
        return recorder.result(recorder.apart(recorder.concrete(item)), node)

    def length(self) -> Any:
        """The length, as a number of the graph."""
        recorder = self.recorder
        return recorder.result(list.__len__(self), recorder.create(len, (recorder.resolve(self.place),)))

    def append(self, item: Any) -> None:
        """Add an item; the length stays free."""
        if self.is_whole:
            self._change("a list that a loop has filled is appended to inside")
            recorder = self.recorder
            more = [recorder.argument(item)]
            self.place, self.number = recorder.create(operator.add, (recorder.resolve(self.place), more)), None
        list.append(self, item)

    def extend(self, items: Any) -> None:
        """Add all items of a list; the length stays free."""
        if not self.is_whole or not isinstance(items, list):
            self.fix_length()
            return list.extend(self, items)
        self._change("a list that a loop has filled is appended to inside")
        recorder = self.recorder
        self.place = recorder.create(operator.add, (recorder.resolve(self.place), recorder.argument(items)))
        self.number = None
        return list.extend(self, list.__getitem__(items, slice(None)))

    def __add__(self, other: Any) -> Any:
        """A longer list, of whatever length."""
        return self._joined(self, other) if self.is_whole else list.__add__(self, other)

    def __radd__(self, other: Any) -> Any:
        return self._joined(other, self) if self.is_whole else list.__add__(other, self)

    def _joined(self, first: Any, second: Any) -> Any:
        if not isinstance(first, list) or not isinstance(second, list):
            return NotImplemented
        recorder = self.recorder
        node = recorder.create(operator.add, (recorder.argument(first), recorder.argument(second)))
        return ListProxy([*list.__iter__(first), *list.__iter__(second)], node, recorder)

    def __getitem__(self, index: Any) -> Any:
        if not self.is_whole:
            return list.__getitem__(self, index)
        recorder = self.recorder
        bounds = recorder.concrete((index.start, index.stop, index.step)) if isinstance(index, slice) else (index,)
        if isinstance(index, slice) and all(type(bound) in _LITERAL for bound in bounds):
            plain = slice(*bounds)
            node = recorder.create(operator.getitem, (recorder.resolve(self.place), recorder.argument(index)))
            return ListProxy(list.__getitem__(self, plain), node, recorder, self.is_local)
        if type(index) is int and (self.is_uniform or index in (0, -1)):
            return self._tied(list.__getitem__(self, index), index)
        if self.is_uniform and type(bounds[0]) is not slice and type(recorder.concrete(index)) is int:
            return self._tied(list.__getitem__(self, recorder.concrete(index)), recorder.argument(index))
        self.fix_length()
        return list.__getitem__(self, index)


def extreme(function: Callable[..., Any], values: Any) -> Any:
    """``max`` or ``min`` of a list of any length that holds numbers of one class; None for anything else."""
    is_open = type(values) is StateListProxy and values.is_open
    if not is_open and (type(values) is not ListProxy or not values.is_whole):
        return None
    recorder = values.recorder
    items = recorder.concrete(list.__getitem__(values, slice(None)))
    kinds = {type(item) for item in items}
    if len(kinds) != 1 or not kinds <= {int, float}:
        return None
    node = values.whole() if is_open else recorder.argument(values)
    return None if node is None else recorder.result(function(items), recorder.create(function, (node,)))


_FREE = frozenset({"append", "extend", "__add__", "__getitem__", "__class__", "__new__", "__init__", "__getattribute__",
                   "__setattr__", "__delattr__", "__dir__", "__doc__", "__init_subclass__", "__subclasshook__",
                   "__class_getitem__"})  # fmt: skip


def _fixing_length(method: Callable[..., Any]) -> Callable[..., Any]:
    def look(self: ListProxy, *args: Any, **kwargs: Any) -> Any:
        self.fix_length()
        return method(self, *args, **kwargs)

    return look


for _name in dir(list):
    if _name not in _FREE and callable(getattr(list, _name)):
        setattr(ListProxy, _name, _fixing_length(getattr(list, _name)))


class WalkedDict(dict[Any, Any]):
    """A dict of which the program only walks the values: a list of any length."""

    def __init__(self, given: dict[Any, Any], values: ListProxy) -> None:
        super().__init__(given)
        self._values = values

    def values(self) -> Any:
        """The values, as a list."""
        return self._values


@pure
def values_of(values: Any) -> list[Any]:
    """The values of a dict."""
    return list(values.values())


class TupleProxy(tuple[Any, ...]):
    """What an array was taken apart to by such a list: a tuple of the example, of whatever length, whose node is
    ``place``. It may be handed on whole; whoever looks at it in any other way relies on its length."""

    place: Any
    recorder: ExampleRecorder
    fixed: tuple[Any, ...] | None

    @classmethod
    def of(cls, items: tuple[Any, ...], place: Any, recorder: ExampleRecorder) -> TupleProxy:
        """The parts of the example, and the node that gives them."""
        made = cls(items)
        made.place, made.recorder, made.fixed = place, recorder, None
        return made

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return tuple

    @property
    def plain(self) -> tuple[Any, ...]:
        """The parts themselves."""
        return tuple.__getitem__(self, slice(None)) if self.fixed is None else self.fixed

    @property
    def is_whole(self) -> bool:
        """Whether its length is still free."""
        return self.fixed is None and bool(self.recorder.open)

    def fix_length(self) -> tuple[Any, ...]:
        """Rely on the length from now on: each part is one of the node's."""
        if self.is_whole:
            recorder, parts = self.recorder, self.plain
            node = recorder.resolve(self.place)
            recorder.hooks.check_piece(node, "what an array was taken apart to is looked at inside")
            recorder.guard(recorder.create(len, (node,)), len(parts))
            items = [recorder.create(operator.getitem, (node, place)) for place in range(len(parts))]
            self.fixed = tuple(map(recorder.result, recorder.apart(parts), items))
        return self.plain


def _fixing_tuple(name: str) -> Callable[..., Any]:
    method = getattr(tuple, name)

    def look(self: TupleProxy, *args: Any) -> Any:
        return method(self.fix_length(), *[one.fix_length() if type(one) is TupleProxy else one for one in args])

    return look


for _name in ("__iter__", "__len__", "__getitem__", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
              "__ge__", "__hash__", "__add__", "__mul__", "__rmul__", "__repr__", "index", "count"):  # fmt: skip
    setattr(TupleProxy, _name, _fixing_tuple(_name))


# ---- iterators that a program advances by hand -----------------------------------------------------------------------


@pure
def item_at(values: Any, position: int) -> Any:
    """The item of a walk at a position; as ``next`` does, it raises ``StopIteration`` if there is none."""
    return next(itertools.islice(values, position, None))


class IteratorProxy:
    """An iterator over an array or list of the graph."""

    def __init__(self, recorder: ExampleRecorder, values: Any, rows: list[Any] | None) -> None:
        self.recorder = recorder
        self.values = values
        self.rows = rows
        """The items of an array in the example; None for a list, which may grow meanwhile."""
        self.state: dict[str, Any] = {"position": 0}

    def __iter__(self) -> IteratorProxy:
        return self

    def __next__(self) -> Any:
        recorder, position = self.recorder, self.state["position"]
        place = recorder.concrete(position)
        items = recorder.concrete(self.values) if self.rows is None else self.rows
        if place >= len(items):
            raise StopIteration
        self.state["position"] = position + 1
        if not recorder.open:
            return items[place]
        node = recorder.create(item_at, (recorder.argument(self.values), recorder.argument(position)))
        return recorder.result(recorder.apart(recorder.concrete(items[place])), node)


# ---- lists that a program only appends to ----------------------------------------------------------------------------


class StateListProxy(list[Any]):
    """A list that knows whether anybody looked at it; ``original`` is the list that it stands for.

    One that is a place of the state, with a node, may be asked for its length, given whole to a call, or read from its
    end as far as the run has appended to it: that holds for any length.
    """

    __slots__ = ("_appended", "_items", "_looked", "original", "place", "recorder", "size")

    def __init__(
        self, original: list[Any], items: list[Any], place: Any = None, recorder: Recorder | None = None
    ) -> None:
        list.__init__(self, items)
        self.original = original
        self.place = place
        self.recorder = recorder
        self._items = items
        self._appended: list[Any] = []
        self._looked = False
        self.size: Any = None
        """The length that it began with as a traced number, if a loop carries it: then ``length`` is no look."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return list

    @property
    def seen(self) -> bool:
        """Whether anybody looked at it, or changed it by other means than its own methods, as ``heapq`` does."""
        count = len(self._items)
        if self._looked or list.__len__(self) < count or not all(map(operator.is_, list.__iter__(self), self._items)):
            return True
        appended = iter(self._appended)  # some of it may have been undone
        return not all(any(item is one for one in appended) for item in list.__getitem__(self, slice(count, None)))

    @seen.setter
    def seen(self, looked: bool) -> None:
        self._looked = looked

    def clew_refilled(self) -> None:
        """It holds what the capture has put there: what it held before, or what paths of a branch have appended."""
        self._appended = list.__getitem__(self, slice(len(self._items), None))

    def append(self, item: Any) -> None:
        """Append an item, which is no look at the list."""
        self._appended.append(item)
        list.append(self, item)

    def extend(self, items: Any) -> None:
        """Append some items."""
        before = list.__len__(self)
        list.extend(self, items)
        self._appended += list.__getitem__(self, slice(before, None))

    def __iadd__(self, items: Any) -> Any:  # type: ignore[misc]
        self.extend(items)
        return self

    @property
    def _added(self) -> list[Any]:
        """What the run has appended."""
        return list.__getitem__(self, slice(list.__len__(self.original), None))

    @property
    def is_open(self) -> bool:
        """Whether it may be of any length."""
        return self.recorder is not None and self.recorder.open and not self.seen

    def length(self) -> Any:
        """The length: a number of the graph where a loop carries it or any length will do, else a look at the list."""
        if self.size is not None:
            return self.size + list.__len__(self._added) if self._added else self.size
        if self.recorder is None or not self.is_open:
            return self.__len__()
        node = self.recorder.create(len, (self.recorder.resolve(self.place),))
        return self.recorder.result(list.__len__(self.original), node) + list.__len__(self._added)

    def argument(self) -> Any:
        """A node for the list as it is now, where any length will do; None otherwise."""
        return self.whole() if self.recorder is not None and self.recorder.joins_lists else None

    def whole(self) -> Any:
        """A node for the list as it is now, if its items are of one kind, which is guarded; None otherwise."""
        recorder = self.recorder
        if recorder is None or not self.is_open:
            return None
        alike = recorder.alike_items(list(list.__iter__(self)), self.place)
        if alike is None:
            return None
        recorder.guard(alike, True)
        node, added = recorder.resolve(self.place), [recorder.argument(item) for item in self._added]
        return recorder.create(operator.add, (node, added)) if added else node

    def __getitem__(self, index: Any) -> Any:
        is_own = type(index) is int and -list.__len__(self._added) <= index < 0
        self.seen = self.seen or not is_own
        return list.__getitem__(self, index)


_APPENDING = frozenset({"append", "extend", "__iadd__", "__getitem__"})
_OBJECT = frozenset({"__class__", "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__dir__",
                     "__doc__", "__init_subclass__", "__subclasshook__", "__class_getitem__"})  # fmt: skip


def _noting_reads(method: Callable[..., Any]) -> Callable[..., Any]:
    def look(self: StateListProxy, *args: Any, **kwargs: Any) -> Any:
        self.seen = True
        return method(self, *args, **kwargs)

    return look


for _name in dir(list):
    if _name not in _APPENDING | _OBJECT and callable(getattr(list, _name)):
        setattr(StateListProxy, _name, _noting_reads(getattr(list, _name)))
