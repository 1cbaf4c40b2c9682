"""Putting arrays, random states and settings back after a capture.

An array from outside is copied when something that shares its memory is about to be written to, and not before. A
change of one that nobody announced cannot be in the graph and is refused.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from clew.errors import CaptureError


def _fingerprint(array: Any) -> int:
    return hash(array.tobytes())


class Rollback:
    """What must be as it was when the capture ends."""

    def __init__(self) -> None:
        self._watched: list[tuple[Any, int]] = []
        self._saved: dict[int, tuple[Any, Any]] = {}
        self._streams: list[tuple[Any, Any]] = []
        self._numpy_random = numpy.random.get_state(legacy=True)
        self._python_random = random.getstate()
        self._settings = numpy.geterr(), numpy.get_printoptions()

    def watch(self, array: Any) -> None:
        """Remember an array that the program did not make."""
        if all(known is not array for known, _ in self._watched):
            self._watched.append((array, _fingerprint(array)))

    def watch_stream(self, stream: Any) -> None:
        """Remember where a generator of random numbers stands."""
        if all(known is not stream for known, _ in self._streams):
            self._streams.append((stream, position(stream)))

    def save(self, array: Any) -> None:
        """Keep copies of what is about to be written to: of all watched arrays that may share its memory."""
        for known, _ in self._watched:
            if id(known) not in self._saved and numpy.may_share_memory(known, array):
                self._saved[id(known)] = (known, known.copy())

    @contextmanager
    def comparing(self) -> Iterator[None]:
        """Keep copies of what is written to inside, by whatever means: it is what the graph does."""
        copies = [(known, known.copy()) for known, _ in self._watched if id(known) not in self._saved]
        try:
            yield
        finally:
            for known, copy in copies:
                if known.tobytes() != copy.tobytes():
                    self._saved[id(known)] = (known, copy)

    def check_unseen(self) -> None:
        """Raise if the program changed something that no node of the graph changes."""
        for array, before in self._watched:
            if id(array) not in self._saved and _fingerprint(array) != before:
                raise CaptureError("the program changed an array in a way that the capture did not see")

    def put_back(self) -> None:
        """Let everything be as it was."""
        for array, copy in self._saved.values():
            if array.flags.writeable:
                array[...] = copy
        for stream, before in self._streams:
            set_position(stream, before)
        numpy.random.set_state(self._numpy_random)
        random.setstate(self._python_random)
        self.put_settings_back()

    def put_settings_back(self) -> None:
        """Let NumPy treat errors, and print, as it did."""
        errors, printing = self._settings
        if numpy.geterr() != errors:
            numpy.seterr(**errors)
        if numpy.get_printoptions() != printing:
            numpy.set_printoptions(**printing)


def position(stream: Any) -> Any:
    """Where a generator stands."""
    if isinstance(stream, numpy.random.RandomState):
        return stream.get_state(legacy=False)
    return stream.bit_generator.state


def set_position(stream: Any, state: Any) -> None:
    """Let a generator stand there."""
    if isinstance(stream, numpy.random.RandomState):
        stream.set_state(state)
    else:
        stream.bit_generator.state = state
