"""What a capture from an example gives, whatever the framework: the graph, its constants, what else it relied on.

And the example itself, remembered without being kept alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from clew import tree
from clew.capture.guards.notes import Variable
from clew.capture.state.containers import ContentsSnapshot, same_part
from clew.ir.graph import Graph
from clew.ir.types import Type, type_of

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
            if not reading.is_as_before():
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


_PLAIN = (int, float, bool, complex, str, bytes, type(None))


class Example:
    """The arguments of one call. Arrays and other objects are held weakly, with their types; plain values as they are.

    While the user still has the arrays they are the example; afterwards arrays of these types can be made instead.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        leaves, self._structure = tree.flatten((args, kwargs))
        self._leaves = [leaf if isinstance(leaf, _PLAIN) else (_reference(leaf), type_of(leaf)) for leaf in leaves]

    def call(self, make: Callable[[Type], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments again; ``make`` gives a value of a type in the place of one that is gone."""
        leaves = [self._leaf(leaf, make) if isinstance(leaf, tuple) else leaf for leaf in self._leaves]
        args, kwargs = tree.unflatten(leaves, self._structure)
        return args, kwargs

    @staticmethod
    def _leaf(leaf: tuple[Callable[[], Any], Type], make: Callable[[Type], Any]) -> Any:
        found = leaf[0]()
        return make(leaf[1]) if found is None else found


def _reference(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # a value that cannot be held weakly is small
        return lambda: value
