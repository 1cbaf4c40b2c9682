"""What a capture from an example gives, whatever the framework: the graph, its constants, what else it relied on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from clew.capture.guards.notes import Variable
from clew.capture.state.containers import ContentsSnapshot, same_part
from clew.ir.graph import Graph

CONSTANT = "_constant"
"""How the names of tensors begin that a capture has made constants."""
Pin = tuple[Any, str, Any]
"""An attribute that a capture relied on: the dict that holds it, its name, its value."""


class Pins(NamedTuple):
    """What a capture relied on besides its guards: attributes, what containers and objects among them held, and the
    variables that hold its functions."""

    attributes: Sequence[Pin] = ()
    held: Sequence[ContentsSnapshot] = ()
    code: Sequence[Variable] = ()

    def hold(self) -> bool:
        """Whether all of it is unchanged."""
        for holder, name, value in self.attributes:
            now = holder.get(name, Pins)
            if now is not value and not same_part(now, value):
                return False
        for reading in self.held:
            if type(reading.value) is not reading.kind or not reading.is_as_before():
                return False
        return all(variable.get() is variable.expected for variable in self.code) if self.code else True


class Captured(NamedTuple):
    """A recorded program: the graph, what its attributes are found in, and the result of the run that was recorded."""

    module: Any
    """The module that was captured; None for a function."""
    constants: dict[str, Any]
    """Values that the graph reads as attributes of its root and that the module does not have."""
    graph: Graph
    result: Any = None
    state: Sequence[str] = ()
    """Paths of the module's attributes that the graph changes."""
    pins: Pins = Pins()
    several_paths: bool = False
    """Whether the program was run for several paths: then no run counts, and the graph gives the result."""
