"""Shapes, ranks and dtypes of arrays as values of the graph: the program relies on them only where it looks inside.

``x.shape`` is a tuple of traced sizes whose length stays free while it is indexed, cut, joined, compared or handed on;
whoever walks it, or unpacks it, relies on the rank. ``x.dtype`` may be handed to NumPy and compared; its parts, its
text and its hash are guarded. ``x.ndim`` is a traced number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from clew.capture.recording.list_proxies import TupleProxy
from clew.capture.recording.recorder import Pending
from clew.frameworks.numpy.array_proxy import SLOTS, Reliance, Traced, TracedInt, made_stand_in, relying

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder

_PARTS = frozenset("kind char num name str type itemsize".split())


class TracedShape(TupleProxy):
    """The shape of an array, or a part of one, of whatever length."""

    recorder: NumpyRecorder
    array: Any = None
    """The array, if it is one of the arguments: how many sizes there must be is checked before the program runs."""

    def fix_length(self) -> tuple[Any, ...]:
        """Rely on the rank from now on."""
        if self.is_whole:
            recorder, node = self.recorder, self.recorder.resolve(self.place)
            is_shape = node.target is getattr and node.args[1] == "shape"
            rank = recorder.create(getattr, (node.args[0], "ndim")) if is_shape else recorder.create(len, (node,))
            recorder.guard(rank, tuple.__len__(self))
            self.fixed = tuple.__getitem__(self, slice(None))
        return self.plain

    def _reach(self, place: int) -> None:
        """Rely on there being so many sizes: nobody may use this one, and then the graph would not ask for it."""
        recorder, node = self.recorder, self.recorder.resolve(self.place)
        is_shape, least = node.target is getattr and node.args[1] == "shape", place if place >= 0 else -place - 1
        if self.array is not None:
            recorder.least_ranks[id(self.array)] = max(least + 1, recorder.least_ranks.get(id(self.array), 0))
        else:
            rank = recorder.create(getattr, (node.args[0], "ndim")) if is_shape else recorder.create(len, (node,))
            recorder.guard(recorder.create(operator.gt, (rank, least)), True)
            recorder.sizes_of_results = True

    def __getitem__(self, key: Any) -> Any:
        if not self.is_whole:
            return self.plain[key]
        if type(key) is int and -tuple.__len__(self) <= key < tuple.__len__(self):
            self._reach(key)
            node = self.recorder.create(operator.getitem, (self.recorder.resolve(self.place), key))
            return _number(self.recorder, self.recorder.concrete(tuple.__getitem__(self, key)), node)
        if type(key) is TracedInt and not self.recorder.bodies.open:
            size = tuple.__getitem__(self, self.recorder.concrete(key))
            node = self.recorder.create(operator.getitem, self.recorder.argument((self, key)))
            return _number(self.recorder, self.recorder.concrete(size), node)
        bounds = (key.start, key.stop, key.step) if isinstance(key, slice) else (0.5,)
        if any(type(bound) not in (int, type(None)) for bound in bounds):
            return self.fix_length()[key]
        node = self.recorder.create(operator.getitem, (self.recorder.resolve(self.place), key))
        return shape(self.recorder.concrete(tuple.__getitem__(self, key)), node, self.recorder)

    def __add__(self, other: Any) -> Any:
        return self._joined(self, other)

    def __radd__(self, other: Any) -> Any:
        return self._joined(other, self)

    def _joined(self, first: Any, second: Any) -> Any:
        if not isinstance(first, tuple) or not isinstance(second, tuple):
            return NotImplemented
        if not self.is_whole:
            return (*first, *second)
        recorder = self.recorder
        plain = (*recorder.concrete(first), *recorder.concrete(second))
        node = recorder.create(operator.add, (recorder.argument(first), recorder.argument(second)))
        return shape(plain, node, recorder)

    def __eq__(self, other: object) -> Any:
        return self._compared(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compared(operator.ne, other)

    def _compared(self, function: Callable[..., Any], other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        recorder = self.recorder
        answer = function(recorder.concrete(self), recorder.concrete(other))
        if not self.is_whole:
            return answer
        node = recorder.create(function, (recorder.argument(self), recorder.argument(other)))
        return _number(recorder, answer, node)

    __hash__ = TupleProxy.__hash__


def _number(recorder: NumpyRecorder, plain: Any, place: Any) -> Any:
    """The stand-in of a size, or of what a comparison says: a number of Python's, whatever the arrays are."""
    return relying(recorder.result(plain, place), Reliance.NOTHING)


def shape(plain: tuple[int, ...], place: Any, recorder: NumpyRecorder, array: Any = None) -> Any:
    """The stand-in of a shape; of an ``array`` among the arguments, if it is given."""
    made = TracedShape(
        _number(recorder, size, Pending(operator.getitem, (place, index))) for index, size in enumerate(plain)
    )
    made.place, made.recorder, made.fixed, made.array = place, recorder, None, array
    return made


class TracedSizes(Traced):
    """Stands in a call for a shape, of whatever length."""

    __slots__ = SLOTS
    __class__ = property(lambda self: TracedSizes)  # type: ignore[assignment]  # no tuple, which would be walked


def whole_shape(plain: tuple[int, ...], place: Any, recorder: NumpyRecorder) -> Any:
    """The stand-in of a shape as an argument."""
    return made_stand_in(TracedSizes, plain, place, recorder)


class TracedWhole(Traced):
    """Stands for an argument that the program only hands on to calls: whatever comes is given to them."""

    __slots__ = SLOTS
    __class__ = property(lambda self: TracedWhole)  # type: ignore[assignment]  # nobody looks into it


def is_whole(value: Any) -> bool:
    """Whether a value stands for such an argument."""
    return type(value) is TracedWhole


def whole_argument(plain: Any, place: Any, recorder: NumpyRecorder) -> Any:
    """The stand-in of such an argument."""
    return relying(made_stand_in(TracedWhole, plain, place, recorder), Reliance.DTYPE)


class TracedDtype(Traced):
    """Stands for a dtype."""

    __slots__ = SLOTS

    def __hash__(self) -> int:
        self.recorder.reveal(self)
        return hash(self.plain)

    def __bool__(self) -> bool:
        self.recorder.reveal(self)
        return bool(self.plain)


def dtype(plain: Any, place: Any, recorder: NumpyRecorder) -> Any:
    """The stand-in of a dtype; the dtype itself, relied on, for programs that compare objects."""
    if recorder.identity.of_objects:
        recorder.guard(place, plain)
        return plain
    return relying(made_stand_in(TracedDtype, plain, place, recorder), Reliance.NOTHING)


def dtype_attribute(recorder: NumpyRecorder, traced: Any, name: str) -> Any:
    """A part of a dtype: that alone is relied on where it tells everything that the program can see."""
    found = traced.plain if name == "dtype" else getattr(traced.plain, name)  # as which NumPy takes it
    if name in _PARTS:
        recorder.guard(recorder.create(getattr, (recorder.resolve(traced.place), name)), found)
    else:
        recorder.reveal(traced)
    return found


def can_compare(traced: Any, other: Any) -> bool:
    """Whether a dtype may be compared with something by a call of the graph."""
    return isinstance(traced, TracedDtype) and isinstance(other, (type, str, numpy.dtype, TracedDtype, type(None)))
