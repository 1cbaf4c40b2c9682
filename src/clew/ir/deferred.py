"""Guards on computed values whose answers come later, because nothing may wait for the device now.

While a user records a CUDA graph, and inside of ``deferring()``, a guard on the truth of an array does not look at it:
it keeps the array. ``confirm`` looks at all that were kept and raises the error of the first guard that does not hold.
A guard waits only if all that follows it can be computed whatever it says (``can_wait``): nothing writes, and nothing
indexes, allocates or loops by a value. All others are checked at once, as ever.
"""

from __future__ import annotations

import contextvars
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from clew.ir.effects import effect_of
from clew.ir.graph import Graph
from clew.ir.guards import Guard, guard_of, is_guard
from clew.ir.guests import Effect, present
from clew.ir.nested import bodies_of
from clew.ir.node import Node
from clew.ir.types import ArrayType

_asked_for: contextvars.ContextVar[bool] = contextvars.ContextVar("clew_deferring", default=False)


@contextmanager
def deferring() -> Iterator[None]:
    """Calls of captured programs inside of this block keep what their guards on arrays say for ``confirm``."""
    token = _asked_for.set(True)
    try:
        yield
    finally:
        _asked_for.reset(token)


def is_deferring() -> bool:
    """Whether a guard that can wait perhaps has to: ``Waiting`` knows for which array."""
    return _asked_for.get() or any(guest.must_not_wait() for guest in present())


is_deferring._dynamo_marked_constant = True  # type: ignore[attr-defined]  # torch's compiler asks while it reads


class _Kept(NamedTuple):
    """What a guard has kept: the array that tells whether it holds; each run of a CUDA graph writes that anew."""

    guard: Guard
    flag: Any
    is_written_again: bool


_kept: weakref.WeakKeyDictionary[Graph, list[_Kept]] = weakref.WeakKeyDictionary()


class Waiting:
    """A guard on the truth of an array that can wait."""

    def __init__(self, node: Node) -> None:
        self.guard = guard_of(node)
        self._graph = weakref.ref(node.graph)

    def require(self, array: Any) -> None:
        """Keep the array for ``confirm`` where nothing may wait for it; else raise unless the guard holds."""
        graph = self._graph()
        is_written_again = any(guest.must_not_wait(array) for guest in present())
        if graph is None or not (is_written_again or _asked_for.get()):
            self.guard.require(bool(array))
        else:
            _kept.setdefault(graph, []).append(_Kept(self.guard, array, is_written_again))


def confirm(graph: Graph) -> None:
    """Raise the error of the first guard of a graph that has waited and does not hold.

    Of a CUDA graph this is about its latest run, which must be over; what was kept elsewhere is looked at once.
    """
    kept = _kept.pop(graph, [])
    _kept[graph] = [one for one in kept if one.is_written_again]
    for one in kept:
        one.guard.require(bool(one.flag))


# ---- which guards can wait -------------------------------------------------------------------------------------------


def can_wait(check: Node, root: Any = None) -> bool:
    """Whether a guard of a whole program, and of no branch or loop in it, asks for the truth of one array, and all that
    follows can be computed whatever it says. ``root`` has the modules that the program calls."""
    truth = check.args[0]
    if not isinstance(truth, Node) or truth.target is not bool or len(truth.users) != 1 or check.kwargs:
        return False
    array = truth.args[0]
    return isinstance(array, Node) and isinstance(array.value_type, ArrayType) and _rest_is_total(check, root)


def _rest_is_total(check: Node, root: Any) -> bool:
    node = check._next
    while node.op not in ("root", "output"):
        if not (is_guard(node) or _is_total(node, root)):
            return False
        node = node._next
    return True


def _is_total(node: Node, root: Any) -> bool:
    if node.op in ("placeholder", "get_attr"):
        return True
    if bodies_of(node) or effect_of(node, root) not in (Effect.NONE, Effect.RANDOM):
        return False
    return any(guest.is_total(node, root) for guest in present())
