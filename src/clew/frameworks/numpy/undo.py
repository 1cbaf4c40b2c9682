"""Putting arrays, random states and settings back after a capture.

An array from outside is copied when something that shares its memory is about to be written to, and not before. A
change of one that nobody announced cannot be in the graph and is refused.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy

from clew.capture.bytecode.try_blocks import attempt, attempt_method, attempted_effect
from clew.capture.control_flow.body_recorder import Support
from clew.capture.guards.notes import CHECKS
from clew.capture.state.memory import Memory
from clew.codegen.with_blocks import blocks_of
from clew.errors import CaptureError, GuardError
from clew.frameworks.numpy.array_proxy import TracedArray, is_traced
from clew.frameworks.numpy.facts import is_data
from clew.ir.arguments import all_nodes, bodies_of
from clew.ir.effects import FIRST_WRITE, effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import NumpyRecorder


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
        for array, saved in self._saved.values():
            if array.flags.writeable:
                array[...] = saved
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


def set_position(stream: Any, position: Any) -> None:
    """Let a generator stand there."""
    if isinstance(stream, numpy.random.RandomState):
        stream.set_state(position)
    else:
        stream.bit_generator.state = position


class Rewinding:
    """Arrays, generators and settings as they are before a piece of the program runs."""

    def __init__(self, recorder: NumpyRecorder) -> None:
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

    recorder: NumpyRecorder
    opens_loops = True

    def __init__(self, recorder: NumpyRecorder) -> None:
        self.recorder = recorder

    def is_array(self, value: Any) -> bool:
        """True for arrays and their proxies."""
        return type(value) is TracedArray or type(value) is numpy.ndarray

    def fresh(self, array: Any) -> Any:
        """The array itself: its proxy will be another."""
        return array

    def kind(self, value: Any) -> Any:
        """The class of a number; class, dtype and rank of an array."""
        plain = value.plain if is_traced(value) else value
        return (type(plain), plain.dtype, plain.ndim) if self.recorder.is_array(plain) else type(plain)

    def is_data(self, value: Any) -> bool:
        """True for arrays, and for numbers that come out of them."""
        if not is_traced(value):
            return isinstance(value, numpy.ndarray)  # a number of NumPy's was made of constants alone
        recorder = self.recorder
        return value.recorder is recorder and (
            recorder.options.dynamic or is_data(recorder.resolve(value.place), recorder)
        )

    def is_measured(self, value: Any) -> bool:
        """Whether a value follows from sizes, ranks, dtypes or numbers given."""
        return is_traced(value) and value.recorder is self.recorder and self.recorder.open

    def is_node_of_data(self, node: Any) -> bool:
        """Whether the value of a node depends on what arrays hold, or changes from round to round."""
        return is_data(node, self.recorder)

    def rows(self, array: Any) -> list[Any]:
        """The items of an array in the example."""
        return list(self.recorder.concrete(array))

    def listed(self, arrays: Sequence[Any]) -> None:
        """Items of arrays of one axis are numbers, which do not follow what is written to the array later."""
        self.recorder.listed += [array.plain for array in arrays if is_traced(array)]

    def truth(self, value: Any) -> bool:
        """The truth of an array or number in the example; where there is none, the error is the program's."""
        if is_traced(value) and not isinstance(value, TracedArray):
            self.recorder.rely_on_memory(value)
        return bool(self.recorder.perform(bool, (value,), {}))

    @contextmanager
    def rewinding(self) -> Iterator[None]:
        """Put arrays, random states and settings back at the end."""
        recorder = self.recorder
        expected, before = recorder.streams.expected, Rewinding(recorder)
        states = recorder.streams.now()
        try:
            yield
            if recorder.streams.moved_unseen():
                raise CaptureError("random numbers are drawn in a way that cannot be recorded")
        finally:
            recorder.streams.expected = expected
            before.rewind()
            recorder.streams.put(states)

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
            recorder.streams.expected = recorder.streams.now()


def _put_back(array: Any, copy: Any) -> None:
    if array.flags.writeable:
        array[...] = copy


_STREAMS = (numpy.random.Generator, numpy.random.RandomState)


_RAISING = (*CHECKS, attempt, attempt_method)
"""Functions of a graph by which a guard may fail."""


def acts_early(graph: Graph) -> bool:
    """Whether a graph does anything before its last guard."""
    blocks = blocks_of(graph.nodes)
    undone = {*blocks.ends, *blocks.closing, *blocks.inline}  # a ``with`` block undoes itself when an error leaves it
    acted = False
    for node in graph.nodes:
        is_check = node.op == "call_function" and node.target in CHECKS
        is_raising = node.op == "call_function" and node.target in _RAISING
        inner = any(part.target in _RAISING for body in bodies_of(node) for part in all_nodes(body))
        acts = node.op not in ("placeholder", "output") and node not in undone and not is_check
        acts = acts and attempted_effect(node) is not Effect.NONE
        if (is_raising or inner) and (acted or acts):  # an attempt that fails may have begun to act
            return True
        acted = acted or acts
    return False


def writes_late(graph: Graph) -> bool:
    """Whether the graph sets state at its end: an error of the program's own then leaves state unset that was set."""
    return any(node.meta.get(FIRST_WRITE) for node in all_nodes(graph))


def acts_before_writes(graph: Graph) -> bool:
    """Whether the graph does anything before it sets the state; a body that sets it may have acted before."""
    for node in graph.nodes:
        if node.meta.get(FIRST_WRITE):
            return False
        acts = node.op not in ("placeholder", "output") and node.target not in CHECKS
        if acts and effect_of(node) is not Effect.NONE:
            return True
    return False


class Kept:
    """Arrays, containers and generators in ``values``, as they are now; objects of the classes ``ends`` are left."""

    def __init__(self, values: Any, ends: tuple[type, ...] = ()) -> None:
        self._memory = Memory(lambda value: isinstance(value, (numpy.ndarray, *_STREAMS, *ends)))
        self._memory.remember(values)
        found = list(self._memory.ends.values())
        self._arrays = [(end, end.copy()) for end in found if isinstance(end, numpy.ndarray)]
        self._streams = [(end, copy.deepcopy(position(end))) for end in found if isinstance(end, _STREAMS)]
        self._states = numpy.random.get_state(), random.getstate(), numpy.geterr()

    def put_back(self) -> None:
        """Let all of it be as it was."""
        for array, before in self._arrays:
            if array.flags.writeable and array.shape == before.shape:
                array[...] = before
        for stream, state in self._streams:
            set_position(stream, state)
        self._memory.put_back()
        numpy.random.set_state(self._states[0])
        random.setstate(self._states[1])
        numpy.seterr(**self._states[2])


@contextmanager
def protected(values: Any) -> Iterator[None]:
    """If a guard fails inside, arrays, containers and generators in ``values`` and the random state are put back."""
    kept = Kept(values)
    try:
        yield
    except GuardError:
        kept.put_back()
        raise
