"""What NumPy does for the recording of branches and loops: undoing what a piece did to arrays and random states,
running a piece without recording it, and telling which arrays and numbers may stand in one place.

A stand-in that is bound to another node is another object over the same memory, so that what is written through one is
seen through the other, in the example as in the graph.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

from clew.capture.control.pieces import Support
from clew.errors import CaptureError
from clew.frameworks.numpy import numbers
from clew.frameworks.numpy.kinds import is_data
from clew.frameworks.numpy.rollback import position, set_position
from clew.frameworks.numpy.traced import TracedArray, is_traced


class Rewinding:
    """Arrays, generators and settings as they are before a piece of the program runs."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self._errors, self._errstates = recorder.errors, list(recorder.errstates)
        with recorder.paused():
            self._arrays = [(array, array.copy()) for array in recorder.memory()]
            self._streams = [(stream, position(stream)) for stream in recorder.streams.known]

    def rewind(self) -> None:
        """Put all of it back."""
        recorder = self.recorder
        recorder.errors = self._errors
        recorder.errstates[:] = self._errstates
        with recorder.paused():
            for array, copy in self._arrays:
                _put_back(array, copy)
            for stream, state in self._streams:
                set_position(stream, state)
            numpy.seterr(**self._errors)


class NumpySupport(Support):
    """The support for one run."""

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder

    def is_array(self, value: Any) -> bool:
        """True for arrays and their stand-ins."""
        return type(value) is TracedArray or type(value) is numpy.ndarray

    def fresh(self, array: Any) -> Any:
        """The array itself: its stand-in will be another."""
        return array

    def kind(self, value: Any) -> Any:
        """The class of a number; class, dtype and rank of an array."""
        plain = value.plain if is_traced(value) else value
        return (type(plain), plain.dtype, plain.ndim) if isinstance(plain, numpy.ndarray) else type(plain)

    def is_data(self, value: Any) -> bool:
        """True for arrays, and for numbers that come out of them."""
        if not is_traced(value):
            return isinstance(value, (numpy.ndarray, numpy.generic))
        recorder = self.recorder
        return value.recorder is recorder and (recorder.dynamic or is_data(recorder.resolve(value.place), recorder))

    def is_node_of_data(self, node: Any) -> bool:
        """Whether the value of a node depends on what arrays hold, or changes from round to round."""
        return is_data(node, self.recorder)

    def plain_range(self, *args: Any) -> Any:
        """A ``range`` that Python walks, of which some numbers may be traced."""
        return numbers._range(*args)

    def rows(self, array: Any) -> list[Any]:
        """The items of an array in the example."""
        return list(self.recorder.concrete(array))

    def listed(self, arrays: Sequence[Any]) -> None:
        """Items of arrays of one axis are numbers, which do not follow what is written to the array later."""
        self.recorder.listed += [array.plain for array in arrays if is_traced(array)]

    def truth(self, value: Any) -> bool:
        """The truth of an array or number in the example; where there is none, the error is the program's."""
        return bool(self.recorder._perform(bool, bool, (value,), {}))

    @contextmanager
    def rewinding(self) -> Iterator[None]:
        """Put arrays, random states and settings back at the end."""
        recorder = self.recorder
        expected, before = recorder.streams.expected, Rewinding(recorder)
        with recorder.paused():
            states = random.getstate(), numpy.random.get_state()
        try:
            yield
            if recorder.streams.moved_unseen():
                raise CaptureError("random numbers are drawn in a way that cannot be recorded")
        finally:
            recorder.streams.expected = expected
            before.rewind()
            with recorder.paused():
                random.setstate(states[0])
                numpy.random.set_state(states[1])

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Run what follows on plain values, without recording it; arrays that it writes to are put back later."""
        recorder = self.recorder
        recorder.open, recorder.depth = False, recorder.depth + 1
        try:
            with recorder.rollback.comparing():
                yield
        finally:
            recorder.open, recorder.depth = True, recorder.depth - 1
            recorder.streams.expected = recorder.streams._states()


def _put_back(array: Any, copy: Any) -> None:
    if array.flags.writeable:
        array[...] = copy
