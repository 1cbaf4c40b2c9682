"""A guard that fails leaves no mark: what the graph had done by then is undone.

Most graphs check all their guards before they act, and need nothing. For the others everything that the call is given,
and the constants of the graph, is copied before the call.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy

from clew.capture.bytecode.try_blocks import attempt, attempt_method
from clew.capture.guards.notes import CHECKS
from clew.capture.state.memory import Memory
from clew.capture.state.writes import FIRST_WRITE
from clew.codegen.with_blocks import blocks_of
from clew.errors import GuardError
from clew.frameworks.numpy.undo import position, set_position
from clew.ir.arguments import all_nodes, bodies_of
from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guests import Effect

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
        acts = acts and effect_of(node) is not Effect.NONE
        if (acted and (is_raising or inner)) or (inner and acts):
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
