"""Captured programs under torch's own compiler, which reads the Python that it compiles.

It reads generated code well, but not the code that makes it. ``prepared`` is therefore called while the compiler reads,
instead of being read, and what it has made is read then. Older compilers hand it nothing but constants, so it is given
the identity of the program. Importing this file imports torch.
"""

from __future__ import annotations

import weakref
from enum import IntEnum
from typing import Any

import torch

from clew.capture.example.guards import Variable, require_variable
from clew.ir.guards import leaves_of

is_compiling = torch.compiler.is_dynamo_compiling
count_of_modes = torch._C._len_torch_dispatch_stack
"""How many modes watch the calls that are made, ``make_fx`` or an export for instance."""
tracing_state = torch._C._get_tracing_state
"""What ``torch.jit.trace`` keeps; None if it is not at work."""
ALIVE: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Captured programs, and modules of graphs, by their identities."""


class Way(IntEnum):
    """How a compiler may take a call."""

    READ = 0
    LOOK = 1
    """It reads the code, after a look at what the program relies on outside of itself."""
    LEAVE = 2
    """Not at all: the call may have to be undone."""


def prepared(identity: int) -> int:
    """Make the code of the captured program with this identity, and tell how a compiler may take a call of it."""
    callee = ALIVE[identity]
    callee.recompile()
    if callee._protection() is not None:
        return int(Way.LEAVE)
    return int(Way.LOOK if _objects_outside(callee) else Way.READ)


# What the decorators of torch.compiler do, but for loading the compiler, which takes longer than most captures.
prepared._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _objects_outside(callee: Any) -> list[Variable]:
    """The variables outside of a program whose contents, or some item of these, count too."""
    found = [leaf for one in callee.graph.guards.entry for leaf in leaves_of(one.subject) if isinstance(leaf, Variable)]
    return [variable for variable in found if variable.held is not None or type(variable) is not Variable]


@torch._disable_dynamo  # a captured program looks at objects outside of itself before each call
def look(callee: Any) -> None:
    """Raise the error of a guard if such contents have changed: a compiler reads past them."""
    for variable in _objects_outside(callee):
        require_variable(variable, variable.name, f"{variable!r} is what it was")


@torch._disable_dynamo  # a captured program that changes state may have to be undone
def outside(call: Any, *args: Any, **kwargs: Any) -> Any:
    """A call that the compiler leaves alone: one that may have to be undone."""
    return call(*args, **kwargs)
