"""From a capture of a NumPy or JAX program to a callable: a function with the original's signature.

A guard that fails leaves no mark: where the graph acts before its last guard, what it had done is undone before the
error is raised. Constants are the arrays that the program uses, so that what it writes to them is seen outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from clew.capture.guards.notes import Variable
from clew.capture.state.writes import refused_when_raising
from clew.frameworks.numpy.undo import acts_before_writes, acts_early, protected, writes_late
from clew.ir.arguments import leaves
from clew.runtime.function import PlainCapture, Protection


class ArrayCapture(PlainCapture):
    """A NumPy program captured from an example."""

    framework = "numpy"

    def _protection(self) -> Protection | None:
        """What lets a call whose guard fails leave no mark, where a call needs it at all."""
        early, late, _ = self._plan()
        return self._protected if early else _refusing if late else None

    @contextmanager
    def _protected(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        _, late, variables = self._plan()
        held = [variable.get() for variable in variables]
        with protected([args, kwargs, vars(self.root), held]), refused_when_raising() if late else nullcontext():
            yield

    def _plan(self) -> tuple[bool, bool, list[Variable]]:
        """What the graph may do before its last guard; worked out once for each state of the code."""
        code = self.recompile()
        known = self.__dict__.get("_early")
        if known is None or known[0] is not code:
            found = [leaf for node in self.graph.nodes for leaf in leaves(node.args) if isinstance(leaf, Variable)]
            late = writes_late(self.graph)
            plan = (acts_early(self.graph) or (late and acts_before_writes(self.graph)), late, found)
            known = self.__dict__["_early"] = (code, plan)
        return known[1]  # type: ignore[no-any-return]


def _refusing(args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractContextManager[None]:
    """What surrounds a call that does nothing before it sets state at its end."""
    return refused_when_raising()


class JaxCapture(ArrayCapture):
    """A JAX program captured from an example."""

    framework = "jax"
