"""Captured programs under torch's own compiler, which reads the Python that it compiles.

It reads generated code well, but not the code that makes it. ``prepared`` is therefore called while the compiler reads,
instead of being read, and what it has made is read then. Older compilers hand it nothing but constants, so it is given
the identity of the program. Importing this file imports torch.
"""

from __future__ import annotations

import sys
import weakref
from enum import IntEnum
from types import MethodType
from typing import Any

import torch

from clew.capture.guards.notes import Variable, require_variable
from clew.errors import CompiledGuardError, GuardError
from clew.frameworks.torch.unchanged import Unchanged, settings
from clew.ir.graph import Graph
from clew.ir.guards import Attribute, Call, Guard, evaluate, leaves_of
from clew.ir.node import Node
from clew.runtime.build import compile_function
from clew.runtime.fast.module_fingerprint import HOOKS

is_compiling = torch.compiler.is_dynamo_compiling
count_of_modes = torch._C._len_torch_dispatch_stack
"""How many modes watch the calls that are made, ``make_fx`` or an export for instance."""
is_tracing = torch._C._is_tracing
"""Whether ``torch.jit.trace`` is at work."""
ALIVE: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Captured programs, and modules of graphs, by their identities."""


class Way(IntEnum):
    """How a compiler may take a call."""

    READ = 0
    LOOK = 1
    """It reads the code, after a look at what the program relies on outside of itself."""
    LEAVE = 2
    """Not at all: the call may have to be undone."""
    READ_INSIDE = 3
    """It reads code that checks nothing outside of the program: that was done just now."""


def prepared(identity: int) -> int:
    """Make the code of the captured program with this identity, and tell how a compiler may take a call of it."""
    callee = ALIVE[identity]
    callee._made_code()
    if _takes_all():
        try:
            return int(_prepare_whole(callee))
        except GuardError as error:
            raise CompiledGuardError(error.what, where=error.where, why=error.why, fixes=error.fixes) from None
    if callee._protection() is not None or vars(callee).get("_fingerprint") is not None:
        return int(Way.LEAVE)
    return int(Way.LOOK if _objects_outside(callee) else Way.READ)


def _takes_all() -> bool:
    """Whether the compiler that is reading now was asked for one graph."""
    translator: Any = sys.modules["torch._dynamo.symbolic_convert"].InstructionTranslator
    return bool(getattr(translator.current_tx(), "one_graph", False))


def _prepare_whole(callee: Any) -> Way:
    """A compiler that must take all as one graph reads the code in any case. It is told now if something outside of the
    program has changed and will not look again; a guard that fails later does not undo what was done."""
    fingerprint = vars(callee).get("_fingerprint")
    if fingerprint is not None:
        fingerprint.check()
    if isinstance(callee, torch.nn.Module) and any(vars(callee)[hooks] for hooks in HOOKS):
        return Way.READ
    guards = callee.graph.guards.entry
    for one in (*callee.graph._code_guards, *guards):
        if _is_outside(one):
            one.require(evaluate(one.subject, {}, callee))
    for one in guards:
        if isinstance(one.expected, Unchanged):
            one.require(evaluate(one.subject, {}, callee))
    _compile_for_reading(callee, tuple(one for one in guards if not _is_outside(one)))
    return Way.READ_INSIDE


def _compile_for_reading(callee: Any, guards: tuple[Guard, ...]) -> None:
    """Make the function that a compiler reads; a compiler that begins anew must find the one that it has read."""
    code = callee.graph.python_code("self", guards=guards)
    known, names = vars(callee).get(READ_BY_COMPILER), dict(code.globals)
    if known is not None and known.made_of[:2] == (code.src, guards) and _are_same(known.made_of[2], names):
        return
    for name, value in list(code.globals.items()):
        one = getattr(value, "__self__", None)
        if isinstance(one, Guard):
            code.globals[name] = _comparing(one, callee) if isinstance(one.expected, Unchanged) else _readable(one)
    function: Any = compile_function(code, f"{type(callee).__name__}.compiled")
    function.made_of = code.src, guards, names
    vars(callee)[READ_BY_COMPILER] = function


def _are_same(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether names mean the same objects; bound methods, of guards say, are made anew each time."""
    return before.keys() == now.keys() and all(
        value is now[name] or (isinstance(value, (MethodType, torch.device)) and value == now[name])
        for name, value in before.items()
    )


def _readable(one: Guard) -> Any:
    """What requires a guard to hold, for a compiler, which cannot read how an error is made."""
    identity = id(one)
    _guards[identity] = one

    def require(value: Any = one.subject) -> None:
        if not one.holds(value):
            refuse(identity)

    def require_true(value: Any) -> None:
        if not value:  # the compiler says of data that it cannot ask for them, but not of what they are equal to
            refuse(identity)

    def require_false(value: Any) -> None:
        if value:
            refuse(identity)

    if isinstance(one.subject, Node) and type(one.expected) is bool:
        return require_true if one.expected else require_false
    return require


def _comparing(one: Guard, callee: Any) -> Any:
    """What requires a tensor, which holds the right numbers now, to hold them at each call of what is compiled, too."""
    now = evaluate(one.subject, {}, callee).detach()
    before, message = _bits(now).clone(), f"the graph assumed {one.expression}, but it holds other numbers"

    def require(value: Any) -> None:
        torch._assert_async((_bits(value.detach()) == before).all(), message)

    return require


_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The memory of a tensor as integers, of which nan and the zeros are equal to themselves alone."""
    return tensor.contiguous().reshape(-1).view(_WORDS.get(tensor.element_size(), torch.int64))


_guards: weakref.WeakValueDictionary[int, Guard] = weakref.WeakValueDictionary()


def refuse(identity: int) -> None:
    """Raise the error of the guard with this identity, which does not hold for what is being compiled."""
    one = _guards[identity]
    raise CompiledGuardError(
        f"the graph assumed {one.expression}, which does not hold for what is compiled now",
        where="" if one.source is None else one.source.describe(),
        why=one.reason or "the captured program took a path that depends on it",
        fixes=one.advice,
    )


READ_BY_COMPILER = "_read_by_compiler"


def _is_outside(one: Guard) -> bool:
    """Whether a guard is on something outside of the program that only Clew's own objects can find, or on torch's
    settings, at a change of which a compiler reads again."""
    found = list(leaves_of(one.subject))
    if isinstance(one.subject, Call) and one.subject.function is settings:
        return True
    if any(isinstance(leaf, (Node, Attribute)) for leaf in found):
        return False
    return any(type(leaf).__module__.partition(".")[0] == "clew" for leaf in found)


# What the decorators of torch.compiler do, but for loading the compiler, which takes longer than most captures.
prepared._dynamo_marked_constant = refuse._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _objects_outside(callee: Any) -> list[Variable]:
    """The variables outside of a program whose contents, or some item of these, count too."""
    found = [leaf for one in callee.graph.guards.entry for leaf in leaves_of(one.subject) if isinstance(leaf, Variable)]
    return [variable for variable in found if variable.held is not None or type(variable) is not Variable]


@torch._disable_dynamo  # a captured program looks at objects outside of itself before each call
def look(callee: Any) -> None:
    """Raise the error of a guard if such contents have changed: a compiler reads past them, at each call."""
    graph = callee.graph
    guards, variables = _looked_at.get(graph, ((), ()))
    if guards is not graph._guards:
        guards, variables = _looked_at[graph] = graph._guards, tuple(_objects_outside(callee))
    for variable in variables:
        if not variable.is_as_before():
            require_variable(variable, variable.name, f"{variable!r} is unchanged")


_looked_at: weakref.WeakKeyDictionary[Graph, tuple[Any, tuple[Variable, ...]]] = weakref.WeakKeyDictionary()
"""The guards of a graph, as they were when its variables were looked for, and those."""


@torch._disable_dynamo  # a captured program that changes state may have to be undone
def outside(call: Any, *args: Any, **kwargs: Any) -> Any:
    """A call that the compiler leaves alone: one that may have to be undone."""
    return call(*args, **kwargs)
