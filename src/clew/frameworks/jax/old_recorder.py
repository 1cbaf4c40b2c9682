"""The recorder of a JAX capture: which tracer belongs to which node, and which numbers became arrays.

Tracers stand for arrays while the program runs. Inputs of the jaxpr are the arrays among the arguments in the order in
which they enter, then the stand-ins that JAX took. One that nobody foresaw is noted, and the run is made once more.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy

from clew.capture.guards import notes
from clew.capture.recording.inputs import Inputs
from clew.capture.recording.recorder import Recorder
from clew.errors import CaptureError
from clew.frameworks.jax.kinds import type_of_aval
from clew.frameworks.jax.layers import is_of_keras
from clew.frameworks.jax.scalars import as_constant, host_array, number
from clew.ir.node import Node


class JaxRecorder(Recorder):
    """Records one run of a JAX program."""

    def __init__(self) -> None:
        super().__init__()
        self.tracers: list[Any] = []
        self.pool: dict[int, Any] = {}
        self.taken: dict[int, Any] = {}
        self.standing: list[Any] = []
        self._entered = 0

    def is_array(self, value: Any) -> bool:
        """True for arrays of JAX, tracers included; not for stand-ins, whose class only claims to be another."""
        return issubclass(type(value), jax.Array) or isinstance(value, jax.core.Tracer)

    def note_type(self, node: Node, array: Any) -> None:
        """Note the type that an array had in the example on its node."""
        if node.value_type is None and isinstance(array, jax.Array):
            object.__setattr__(node, "value_type", type_of_aval(jax.typeof(array)))

    def argument(self, value: Any) -> Any:
        """What a node holds for a value; the stand-in of a NumPy array is the array itself."""
        if type(value).__name__ == "HostArray" and hasattr(type(value), "serial"):
            return self.resolve(value.place)
        return super().argument(value)

    def next_serial(self) -> int:
        """A number for a stand-in, the same one in each run of a program."""
        return len(self.standing) + 1

    def next_tracer(self, array: Any) -> Any:
        """The tracer for the array that enters next; before the program is traced, the array itself."""
        if not self.tracers:
            return array
        self._entered += 1
        return self.tracers[self._entered - 1]

    def tracer_of(self, standing: Any) -> Any:
        """The tracer of a stand-in that JAX takes."""
        if not self.open:
            raise CaptureError("a value of a capture that has ended was used in another one")
        self.taken.setdefault(standing.serial, standing)
        found = self.pool.get(standing.serial)
        return as_constant(standing) if found is None else found


class JaxInputs(Inputs):
    """Arguments and state of a JAX program: arrays enter as tracers, NumPy's as stand-ins."""

    recorder: JaxRecorder

    def __init__(self, recorder: JaxRecorder, static: frozenset[str]) -> None:
        super().__init__(recorder, lambda value, place: number(value, place, recorder), static)
        self.hosts: list[tuple[Any, Any]] = []
        self.numbers: list[tuple[Any, Any]] = []

    def enter(self, value: Any, place: Any, name: str) -> Any:
        """The value as the program shall see it."""
        if self.recorder.is_array(value):
            tracer = self.recorder.next_tracer(value)
            self.recorder.track(tracer, place)
            self.arrays.append((value, place))
            return tracer
        if type(value) in (int, float, bool) and self.takes_number(value, name):
            self.numbers.append((value, place))
            return self.wrap_number(value, place)
        if isinstance(value, (numpy.ndarray, numpy.generic)) and not value.dtype.hasobject:
            self.hosts.append((value, place))
            made = host_array(value, place, self.recorder)
            self.recorder.objects[id(made)] = (made, place)  # a program that gives it back gives the array itself
            return made
        return super().enter(value, place, name)

    def resolve_all(self) -> None:
        """Make the nodes of all that has entered now, before the nodes of what the program does."""
        for _, place in (*self.arrays, *self.hosts, *self.numbers):
            self.recorder.resolve(place)

    def constant(self, value: Any, place: Any, name: str) -> Any:
        """A value that is the same in every call; dtypes are compared."""
        if is_of_keras(value):
            raise CaptureError(
                f"the argument {name!r} holds a {type(value).__name__} of Keras",
                why="its variables would have to be followed, which they are around a program only",
                fixes=("let the program use it as a variable around it, and pass arrays",),
            )
        if isinstance(value, (numpy.dtype, complex)):
            self.checks.append((notes.require, place, value))
            return value
        return super().constant(value, place, name)
