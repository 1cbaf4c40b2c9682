"""The guards at the entrance of a captured JAX program: checked before the graph does anything.

A jaxpr holds for one shape, dtype and weak type of every array that comes in, and for the settings of JAX it was traced
under. What the program took from around itself must still be so.
"""

from __future__ import annotations

import os
from types import CodeType
from typing import Any

import jax
import numpy

from clew.capture.guards import notes
from clew.capture.guards.notes import expression_of
from clew.capture.guards.variable_reads import Reads
from clew.capture.guards.variables import VariableGuards
from clew.capture.state.containers import SIMPLE, follows
from clew.capture.state.reachable import attribute_names, compares_objects
from clew.capture.state.state import State
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.frameworks.jax.kinds import kind_of, number_kind
from clew.frameworks.jax.layers import Layers, is_of_keras
from clew.frameworks.jax.recorder import JaxInputs, JaxRecorder
from clew.ir.effects import pure
from clew.ir.node import Node

_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep

SETTINGS = {
    "jax_enable_x64": "False",
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_default_matmul_precision": "None",
    "jax_default_prng_impl": "threefry2x32",
    "jax_threefry_partitionable": "True",
    "jax_enable_custom_prng": "False",
    "jax_debug_nans": "False",
    "jax_debug_infs": "False",
    "jax_disable_jit": "False",
    "jax_numpy_index_dtype": "None",
}
"""The settings that change what a program computes, and what each is if nobody sets it."""


def is_code_of_jax(value: Any) -> bool:
    """Whether a value is what a transformation of JAX has made of a function: code, like the function itself."""
    return callable(value) and type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


@pure
def settings() -> tuple[str, ...]:
    """The settings of JAX in this context that are not what they are if nobody sets them."""
    found = {name: getattr(jax.config, name, usual) for name, usual in SETTINGS.items()}
    texts = {name: str(getattr(value, "value", value)) for name, value in found.items()}
    return tuple(f"{name}={text}" for name, text in texts.items() if text != SETTINGS[name])


class EntryGuards:
    """Writes the entry guards of one capture into its graph."""

    def __init__(
        self, recorder: JaxRecorder, inputs: JaxInputs, surroundings: Surroundings, state: State, layers: Layers
    ) -> None:
        self.recorder = recorder
        self.graph = recorder.graph
        self.inputs = inputs
        self.surroundings = surroundings
        self.state = state
        self.layers = layers

    def write(self, after: Node, wanted: str = "read") -> None:
        """Put all guards right after the node ``after``, the last of those that take the arguments apart; ``wanted``
        says which of those on variables."""
        with self.graph.inserting_before(after._next):
            self._settings()
            self.recorder.outside_reads.write(self.graph)
            self._values()
            self._objects()
            if wanted != "none":
                self._variables(Reads() if wanted == "read" else None)
            self.layers.guard(self.graph, self.recorder.is_end)

    def _values(self) -> None:
        for value, place in (*self.inputs.arrays, *self.inputs.hosts):
            self._require(kind_of, place, kind_of(value), "{} is {}")
        for value, place in self.inputs.numbers:
            self._require(number_kind, place, type(value).__name__, "type({}) is {}")

    def _require(self, reader: Any, place: Any, expected: str, words: str) -> None:
        node = self.recorder.resolve(place)
        found = self.graph.call_function(reader, (node,))
        self.graph.call_function(notes.require, (found, expected, words.format(expression_of(node), expected)))

    def _objects(self) -> None:
        """A program that compares objects was shown different ones for different arguments, and must be again."""
        if not any(map(compares_objects, self._codes())):
            return
        arrays = [*self.inputs.arrays, *self.inputs.hosts]
        if len({id(value) for value, _ in arrays}) != len(arrays):
            raise CaptureError(
                "the program compares objects, and the example has one array in two places",
                why="the graph cannot tell which arrays are the same",
                fixes=("pass different arrays", "compare values, not objects"),
            )
        if len(arrays) > 1:
            nodes = tuple(self.recorder.resolve(place) for _, place in arrays)
            different = self.graph.call_function(notes.are_distinct, nodes)
            text = "the arrays among the arguments are different objects"
            self.graph.call_function(notes.require, (different, True, text))

    def _settings(self) -> None:
        found = self.graph.call_function(settings)
        text = f"the settings of JAX that somebody has set are {settings()}"
        self.graph.call_function(notes.require, (found, settings(), text))

    def _variables(self, reads: Reads | None) -> None:
        """What stands in variables, attributes and classes around the program must be what it was."""
        lifted = {entry.slot.key for entry in self.state.entries}
        self.variables = VariableGuards(self.graph, self.surroundings, self.state, self.recorder.is_end, reads)
        self.variables.write(self._codes(), lambda value: is_code_of_jax(value) or isinstance(value, numpy.generic))
        for holder, name, value in self.state.pins():
            owner = next((group.owner for group in self.state._groups if group.holder is holder), None)
            if is_of_keras(owner):
                continue
            if not name.startswith("__") and (id(owner), name) not in lifted:
                self._variable(holder, name, value)
        names = {name for function in self.surroundings.functions for name in attribute_names(function.__code__)}
        for kind in self.surroundings.classes_of(dict.fromkeys(self.surroundings.functions)):
            for name in sorted(names & vars(kind).keys()):
                value = vars(kind)[name]
                is_plain = type(value) in SIMPLE or (follows(value) and not callable(value))
                is_plain = is_plain and not name.startswith("__") and self.surroundings.may_vary(kind)
                if is_plain and (id(kind), name) not in lifted:
                    self._variable(kind, name, value, f"{kind.__name__}.{name}")

    def _codes(self) -> set[CodeType]:
        """The code of the program; not that which Python has made, for dataclasses say."""
        codes = {function.__code__ for function in self.surroundings.functions}
        return {code for code in codes if not code.co_filename.startswith((_STANDARD_LIBRARY, "<string>"))}

    def _variable(self, holder: Any, name: str, value: Any, label: str = "") -> None:
        if not isinstance(value, numpy.generic):
            self.variables.whole(notes.Variable(holder, name), value, label or name)
