"""Layers and variables of Keras on its JAX backend, around a program: inputs and outputs of its graph.

A variable of Keras holds an array of JAX in an attribute. While a program is traced that is a tracer, which the layer
reads and replaces, statistics and seeds of random numbers too; the graph reads and sets the attribute itself. What else
a layer holds must be what it was. Layers must be built before the capture.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from clew.capture.guards.notes import Variable, require
from clew.capture.guards.variables import WatchedVariables, changed
from clew.capture.state.containers import SIMPLE, follows
from clew.capture.state.memory import Memory
from clew.capture.state.slots import Slot
from clew.capture.state.state import State
from clew.errors import CaptureError
from clew.ir.graph import Graph

_VALUE = "_value"
_TRAINABLE = "_trainable"


def _keras() -> Any:
    """Keras, if it is there and works on JAX."""
    keras = sys.modules.get("keras")
    return keras if hasattr(keras, "Layer") and keras.config.backend() == "jax" else None  # type: ignore[union-attr]


def is_of_keras(value: Any) -> bool:
    """True for layers, variables and whatever else of Keras holds variables."""
    keras = _keras()
    if keras is None:
        return False
    kinds = (keras.Layer, keras.Variable, keras.optimizers.Optimizer, keras.metrics.Metric, keras.random.SeedGenerator)
    return isinstance(value, kinds)


class Layers:
    """All of Keras that a program can reach."""

    def __init__(self, values: Iterable[Any], is_end: Callable[[Any], bool]) -> None:
        memory = Memory(lambda value: is_end(value) or is_of_keras(value))
        if _keras() is not None:
            for value in values:
                memory.remember(value, depth=5)
        found = [value for value in memory.ends.values() if is_of_keras(value)]
        self.layers = list({id(part): part for one in found for part in _parts(one)}.values())
        self.variables = list({id(one): one for value in found for one in _variables(value)}.values())

    def check_built(self) -> None:
        """Raise if a layer would make its variables while it is traced."""
        for layer in self.layers:
            if not layer.built:
                raise CaptureError(
                    f"the layer {layer.name} of Keras is not built",
                    why="it would make its variables as it runs, and a graph works on variables that are there",
                    fixes=("call the model once before it is captured",),
                )

    def slots(self) -> list[Slot]:
        """The places of the values of all variables."""
        return [Slot(Variable(variable, _VALUE), variable) for variable in self.variables]

    def watch(self, state: State) -> None:
        """Let changes of variables and of public attributes of layers be seen and undone."""
        for variable in self.variables:
            state.watch(variable, vars(variable), skip=frozenset(vars(variable)) - {_VALUE})
        for layer in self.layers:
            state.watch(layer, vars(layer), skip=frozenset(name for name in vars(layer) if name.startswith("_")))

    def is_own(self, slot: Slot) -> bool:
        """Whether a place is a private one of a layer, which is none of the program's."""
        is_layer = any(slot.owner is layer for layer in self.layers)
        return is_layer and slot.variable.name.startswith("_") and slot.variable.name != _TRAINABLE

    def check_losses(self) -> None:
        """Raise if a layer has kept a loss of this run."""
        for layer in self.layers:
            if getattr(layer, "_losses", None):
                layer._losses.clear()
                raise CaptureError(
                    f"the layer {layer.name} adds a loss as it runs",
                    why="the graph would not add it again",
                    fixes=("return the loss",),
                )

    def guard(self, graph: Graph, is_end: Callable[[Any], bool]) -> None:
        """What layers hold besides variables must be what it was."""
        for layer in self.layers:
            watched = WatchedVariables(is_end)
            for name, value in vars(layer).items():
                if name == _TRAINABLE or (not name.startswith("_") and _counts(value)):
                    watched.add(f"{layer.name}.{name}", layer, name, value)
            found = graph.call_function(changed, (watched,))
            graph.call_function(require, (found, None, f"the attributes of {layer.name} are unchanged"))


def _counts(value: Any) -> bool:
    return type(value) in SIMPLE or callable(value) or type(value) is tuple or follows(value)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, _keras().Layer):
        yield from value._flatten_layers()


def _variables(value: Any) -> list[Any]:
    if isinstance(value, _keras().Variable):
        return [value]
    if isinstance(value, _keras().random.SeedGenerator):
        return [value.state]
    return list(value.variables)
