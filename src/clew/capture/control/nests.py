"""Values that go into a body and come out of it, taken apart: arrays and numbers are leaves, all else is their frame.

Two values fit together if their frames are equal and their leaves are of the same kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from clew.capture.example.histories import History
from clew.capture.example.recorder import Recorder, Scalar
from clew.ir.arguments import rebuilt_tuple

_NUMBERS = (bool, int, float, complex)


class Leaf:
    """Stands in a frame for an array or a number."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leaf)

    __hash__ = None  # type: ignore[assignment]


LEAF = Leaf()


class Constant:
    """Stands in a frame for a value that is neither: the same object, or an equal plain one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return False
        same = type(self.value) is type(other.value) and isinstance(self.value, (str, bytes, type(None)))
        return self.value is other.value or (same and bool(self.value == other.value))

    __hash__ = None  # type: ignore[assignment]


def is_leaf(recorder: Recorder, value: Any) -> bool:
    """Whether a value is an array or a number, or of another class that the graph follows."""
    kind = type(value)
    return kind in _NUMBERS or kind in recorder.leaf_kinds or issubclass(kind, Scalar) or recorder.is_array(value)


def stays_inside(recorder: Recorder, value: Any) -> bool:
    """Whether a value is followed where it was made, and nowhere else: its plain one is no leaf."""
    return issubclass(type(value), Scalar) and not is_leaf(recorder, recorder.concrete(value))


def frame_of(recorder: Recorder, value: Any) -> Any:
    """The frame of a value."""
    if is_leaf(recorder, value):
        return LEAF
    kind = type(value)
    if isinstance(value, tuple):
        return (kind, [frame_of(recorder, item) for item in value])
    if kind is list:
        return (kind, [frame_of(recorder, item) for item in value])
    if kind is dict:
        return (kind, {key: frame_of(recorder, item) for key, item in value.items()}, list(value))
    return Constant(value)


def leaves_of(recorder: Recorder, value: Any) -> Iterator[Any]:
    """The arrays and numbers in a value, from left to right."""
    if is_leaf(recorder, value):
        yield value
    elif isinstance(value, tuple) or type(value) is list:
        for item in value:
            yield from leaves_of(recorder, item)
    elif type(value) is History:
        for item in list.__iter__(value):  # past its note of who looks at it
            yield from leaves_of(recorder, item)
    elif type(value) is dict:
        for item in value.values():
            yield from leaves_of(recorder, item)


def containers_of(value: Any) -> Iterator[Any]:
    """The lists and dicts in a value, which a copy of it would not share with others."""
    if type(value) in (list, dict):
        yield value
    if isinstance(value, tuple) or type(value) is list:
        for item in value:
            yield from containers_of(item)
    elif type(value) is dict:
        for item in value.values():
            yield from containers_of(item)


def with_leaves(recorder: Recorder, value: Any, change: Callable[[Any], Any]) -> Any:
    """A value like this one, with other leaves; what holds none is the same object."""
    if is_leaf(recorder, value):
        return change(value)
    if not any(True for _ in leaves_of(recorder, value)):
        return value
    if isinstance(value, tuple):
        items = [with_leaves(recorder, item, change) for item in value]
        return tuple(items) if type(value) is tuple else rebuilt_tuple(value, items)
    if type(value) is list:
        return [with_leaves(recorder, item, change) for item in value]
    return {key: with_leaves(recorder, item, change) for key, item in value.items()}
