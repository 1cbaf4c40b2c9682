"""Functions with ``functools.lru_cache`` in a program: where they are found, and what makes them unfit for a graph.

A cached body runs once, a graph would run it each time or never. That is the same only if the body has no effect on
the variables around it, and if nobody changes what the cache hands out, because the next one would get it changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from clew.capture.example.guards import Variable
from clew.capture.example.memory import Memory, below
from clew.capture.example.reach import attribute_names
from clew.capture.example.surroundings import Surroundings
from clew.capture.symbolic.patches import Patches
from clew.errors import CaptureError
from clew.ir.source import SourceLine

CACHED = type(functools.lru_cache(lambda: None))
Call = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""What a capture does with a call of a cached function: the function, its arguments."""


def install(
    patches: Patches, current: Callable[[], Call | None], functions: Iterable[Any], kinds: Iterable[type] = ()
) -> None:
    """Let cached functions that the program names, and cached methods, be called by a capture's own means."""
    make = functools.partial(_standing, current=current)
    for function in functions:
        for name in attribute_names(function.__code__) & function.__globals__.keys():
            if isinstance(function.__globals__[name], CACHED):
                patches.in_dict(function.__globals__, name, make)
        for cell in function.__closure__ or ():
            if isinstance(Variable(cell, "").get(), CACHED):
                patches.in_cell(cell, make)
    for kind in kinds:
        for name in [name for name, value in vars(kind).items() if isinstance(value, CACHED)]:
            patches.on_class(kind, name, make)


def _standing(cached: Any, current: Callable[[], Call | None]) -> Any:
    @functools.wraps(cached)
    def call(*args: Any, **kwargs: Any) -> Any:
        how = current()
        return cached(*args, **kwargs) if how is None else how(cached, args, kwargs)

    return call


class CachedResults:
    """What the caches of a program have handed out in one run."""

    def __init__(self, is_end: Callable[[Any], bool]) -> None:
        self._memory = Memory(is_end)
        self._owner: Any = None

    def remember(self, cached: Any, result: Any) -> None:
        """Nobody shall change this result."""
        self._owner = cached
        self._memory.remember(result)

    def check(self) -> None:
        """Raise if somebody has."""
        if self._memory.has_changed():
            self._memory.put_back()
            raise refusal(self._owner, "the program changes what its cache holds, and the next call would see it")


@contextmanager
def without_effects(cached: Any, is_end: Callable[[Any], bool]) -> Iterator[None]:
    """Refuse a cached function whose body changes something around it: it does so only when its cache has no answer."""
    seen = list(_around(cached.__wrapped__, is_end))
    yield
    changed = next((variable for variable in seen if not variable.is_as_before()), None)
    if changed is not None:
        raise refusal(cached, f"its body changes {changed.name}, only when the cache has no result yet")


def _around(function: Any, is_end: Callable[[Any], bool]) -> Iterator[Variable]:
    """The variables that a function can reach, with what they hold."""
    if not isinstance(function, FunctionType):
        return
    for holder, name in Surroundings([function]).everything():
        value = Variable(holder, name).get()
        held = None if is_end(value) else below(value, is_end)
        yield Variable(holder, name, value, held)


def refusal(cached: Any, why: str) -> CaptureError:
    """The error for a cached function that a graph cannot call as the program does."""
    code = cached.__wrapped__.__code__
    return CaptureError(
        f"the program calls {cached.__wrapped__.__name__}, a function with a cache",
        where=SourceLine(code.co_filename, code.co_firstlineno, code.co_name).describe(),
        why=why,
        fixes=("take the cache away", "call it before the program and pass the result"),
    )
