"""Functions with ``functools.lru_cache`` in a program: where they are, and what makes them unfit for a graph.

A cached body runs once; a graph would run it each time or never. That is the same only if the body has no side effect
on the variables around it and nobody changes what the cache hands out. ``only_calculates`` reads a function's bytecode:
it may use its arguments, Python's own functions on numbers and containers, and functions that only calculate.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.guards.notes import Variable
from clew.capture.guards.variable_reads import unnoted
from clew.capture.patches import Patches, original_in, own_code
from clew.capture.state.memory import Memory, below
from clew.capture.state.reachable import attribute_names
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.ir.source import SourceLine

CACHED = type(functools.lru_cache(lambda: None))
Call = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""What a capture does with a call of a cached function: the function, its arguments."""


def install(
    patches: Patches, current: Callable[[], Call | None], functions: Iterable[Any], kinds: Iterable[type] = ()
) -> None:
    """Let cached functions that the program names, and cached methods, be called by a capture's own means."""
    make = functools.partial(_cache_proxy, current=current)
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


def _cache_proxy(cached: Any, current: Callable[[], Call | None]) -> Any:
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
    with unnoted():
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


# ---- functions that only calculate -----------------------------------------------------------------------------------

# Variables of closures are missing here: a function that has none of its own shares them only with those inside it.
_MISSING = object()
_OUTSIDE = frozenset(
    "STORE_GLOBAL DELETE_GLOBAL STORE_ATTR DELETE_ATTR IMPORT_NAME STORE_NAME DELETE_NAME "
    "LOAD_CLASSDEREF YIELD_VALUE SEND RETURN_GENERATOR LOAD_BUILD_CLASS".split()
)
_BUILTINS = frozenset(
    "len range list tuple dict set frozenset enumerate zip isinstance int float bool str min max sum abs sorted "
    "reversed all any divmod round map filter slice".split()
)
_METHODS = frozenset(
    "append extend insert pop items keys values get copy index count join split format startswith endswith".split()
)


@functools.lru_cache(maxsize=4096)
def only_calculates(function: Any) -> bool:
    """Whether a function is of this kind, as far as its code tells."""
    return _is_plain(function, frozenset())


def _is_plain(function: Any, above: frozenset[Any]) -> bool:
    if not isinstance(function, FunctionType) or function.__closure__ or function in above:
        return False
    return _is_plain_code(own_code(function), function.__globals__, above | {function})


def _is_plain_code(code: CodeType, names: dict[str, Any], above: frozenset[Any]) -> bool:
    for instruction in instructions_of(code):
        if instruction.opname in _OUTSIDE:
            return False
        if instruction.opname == "LOAD_METHOD" and instruction.argval not in _METHODS:
            return False
        if instruction.opname == "LOAD_GLOBAL" and not _is_plain_name(str(instruction.argval), names, above):
            return False
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return all(_is_plain_code(part, names, above) for part in inner)


def _is_plain_name(name: str, names: dict[str, Any], above: frozenset[Any]) -> bool:
    value = original_in(names, name, _MISSING)
    if value is _MISSING:
        known = original_in(vars(builtins), name)
        return name in _BUILTINS or (isinstance(known, type) and issubclass(known, BaseException))
    if isinstance(value, type):
        return issubclass(value, BaseException)
    return value is None or isinstance(value, (int, float, str)) or _is_plain(value, above)
