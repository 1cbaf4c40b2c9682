"""The guards at the entrance of a captured JAX program: checked before the graph does anything.

Arrays must be of the dtype, weak type and rank that they were, as far as the program could see them; sizes are free
unless it relied on them. The
settings of JAX that change what is computed must be what they were; the rest is as for a NumPy program.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy

from clew.capture.guards import notes
from clew.capture.guards.notes import expression_of
from clew.capture.recording.alternatives import Kind
from clew.frameworks.jax.layers import is_of_keras
from clew.frameworks.jax.types import array_kind, class_kind, ranked_kind
from clew.frameworks.numpy import entry_guards
from clew.frameworks.numpy.facts import Reliance
from clew.ir.effects import pure
from clew.ir.graph import Graph
from clew.ir.node import Node

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
_FOLLOWED = ("jax_default_matmul_precision",)
"""Of these, those that the calls of a graph ask for themselves, unless they were set when it was captured: then JAX may
have written them into what it traced."""

_KINDS = {
    Reliance.NOTHING: array_kind,
    Reliance.NUMBERS: array_kind,
    Reliance.RANK: ranked_kind,
    Reliance.DTYPE: class_kind,
}
"""What is guarded of an array, by what the program could see of it."""


@pure
def settings(*left_out: str) -> tuple[str, ...]:
    """The settings of JAX in this context that are not what they are if nobody sets them, but for some."""
    found = {name: getattr(jax.config, name, usual) for name, usual in SETTINGS.items() if name not in left_out}
    texts = {name: str(getattr(value, "value", value)) for name, value in found.items()}
    return tuple(f"{name}={text}" for name, text in texts.items() if text != SETTINGS[name])


@pure
def is_number_or_array(value: Any) -> bool:
    """Whether a value is a number of Python's or NumPy's, or an array of JAX."""
    return type(value) in _NUMBERS or isinstance(value, (numpy.number, jax.Array))


_NUMBERS = frozenset({bool, int, float, complex})


class EntryGuards(entry_guards.EntryGuards):
    """Writes the guards of one capture."""

    def write(self, after: Node, owners: list[Any], reliance: Reliance, least_ranks: dict[int, int]) -> None:
        """Put the guards behind the node ``after``."""
        of_jax = [(value, place) for value, place in self.inputs.arrays if isinstance(value, jax.Array)]
        with self.graph.inserting_before(after._next):
            now = settings(*_FOLLOWED)
            left_out = () if now != settings() else _FOLLOWED
            found = self.graph.call_function(settings, left_out)
            now = settings(*left_out)
            self._require(found, now, f"the settings of JAX that somebody has set are {now}")
            for value, place in of_jax:
                node = self.recorder.resolve(place)
                if _is_of_keras_variable(node):
                    continue
                asked = _KINDS[reliance]
                kind = self.graph.call_function(asked, (node,))
                self._require(kind, asked(value), f"{expression_of(node)} is {asked(value)}")
            if self.recorder.identity.of_objects:
                self._same_objects(of_jax)
                self._different_objects(of_jax)
            is_free = reliance < Reliance.DTYPE and not self.recorder.has_seen_class  # type: ignore[attr-defined]
            for value, place in self.inputs.numbers:
                self._number(value, self.recorder.resolve(place), is_free)
        self.inputs.numbers.clear()
        self.inputs.arrays[:] = [one for one in self.inputs.arrays if not isinstance(one[0], jax.Array)]
        super().write(after, owners, reliance, least_ranks)

    def _number(self, value: Any, node: Node, is_free: bool, graph: Graph | None = None) -> None:
        """A number may be one of another class, or an array, if the program has not seen of which it is."""
        graph = self.graph if graph is None else graph
        if not is_free:
            entry_guards.number_guards(graph, value, node, Reliance.DTYPE)
            return
        found = graph.call_function(is_number_or_array, (node,))
        text = f"{expression_of(node)} is a number or an array of JAX"
        graph.call_function(notes.require, (found, True, text))

    def _chosen(self, graph: Graph, value: Any, node: Node, reliance: Reliance, least_ranks: dict[int, int]) -> None:
        """Guard what the program relies on of a number or array that may be of another kind."""
        if isinstance(value, jax.Array):
            asked = _KINDS[reliance]
            text = f"{expression_of(node)} is {asked(value)}"
            graph.call_function(notes.require, (graph.call_function(asked, (node,)), asked(value), text))
        elif self.recorder.is_array(value):
            super()._chosen(graph, value, node, reliance, least_ranks)
        else:
            is_free = reliance < Reliance.DTYPE and not self.recorder.has_seen_class  # type: ignore[attr-defined]
            self._number(value, node, is_free, graph)


_GUESSES = (
    lambda arrays: arrays[0].shape,
    lambda arrays: arrays[0].shape[-1:],
    lambda arrays: arrays[-1].shape,
    lambda arrays: (1,) * arrays[0].ndim,
)
"""Shapes of an array that a program might take besides those that it is given."""


@pure
def is_array_of_jax(value: Any) -> bool:
    """Whether a value is an array of JAX."""
    return isinstance(value, jax.Array)


def item_kind(value: Any, reliance: int) -> Any:
    """Of which kind an item of a list is, as far as a program relies on it; None for what a list may not hold."""
    if isinstance(value, jax.Array):
        return _KINDS[Reliance(reliance)](value)
    if type(value) is dict:
        kinds = tuple([(key, item_kind(one, reliance)) for key, one in value.items()])
        return None if any(kind is None for _, kind in kinds) else kinds
    if type(value) is tuple:
        found = tuple([item_kind(one, reliance) for one in value])
        return None if None in found else found
    return entry_guards.item_kind(value, reliance)


@pure
def items_are(values: Any, kind: str, reliance: int) -> bool:
    """Whether all items of a list are of a kind."""
    return all(repr(item_kind(value, reliance)) == kind for value in values)


class JaxInputs(entry_guards.NumpyInputs):
    """What enters a capture."""

    items_are = staticmethod(items_are)
    item_kind = staticmethod(item_kind)

    def check_number(self, value: Any, place: Any) -> None:
        """Guard at the end what a traced number must be: a truth may be an array, too."""
        if self.recorder.identity.is_asked:
            super().check_number(value, place)
        else:
            self.numbers.append((value, place))

    def number_kind(self, value: Any = 1.0) -> Kind:
        """A number."""
        return Kind("number", is_plain_number, (), value)

    def array_kind(self, name: str, tries: int) -> Kind | None:
        """An array that might do for an argument of this name."""
        examples = [one for one in self.examples if isinstance(one, jax.Array)]
        if not examples or tries >= len(_GUESSES):
            return None
        kind = bool if "mask" in name else examples[0].dtype
        return Kind("array", is_array_of_jax, (), jax.numpy.ones(_GUESSES[tries](examples), kind))

    def own_array_kind(self, value: Any) -> Kind | None:
        """The kind of an array that the example gives."""
        is_own = isinstance(value, jax.Array)
        return Kind("array", is_array_of_jax, (), value) if is_own else super().own_array_kind(value)


@pure
def is_plain_number(value: Any) -> bool:
    """Whether a value is a number of Python's or NumPy's, and no truth."""
    return type(value) in (int, float, complex) or isinstance(value, numpy.number)


def _is_of_keras_variable(node: Node) -> bool:
    """Whether a node reads the value of a variable of Keras, which keeps its dtype and shape."""
    return node.target is notes.read_variable and is_of_keras(node.args[0].holder)  # type: ignore[union-attr]
