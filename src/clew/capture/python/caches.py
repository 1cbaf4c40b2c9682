"""Functions with ``functools.lru_cache`` in a program: where they are, and what a capture makes of calls of them.

A cached body runs once; a graph would run it each time or never. That is the same only if the body has no side effect
and nobody changes what the cache hands out: ``CachedCalls`` sees to both, and each framework says whether the cache is
asked, or its body recorded. ``only_calculates`` reads a function's bytecode: it may use its arguments, Python's own
functions on numbers and containers, and functions that only calculate.
"""

from __future__ import annotations

import builtins
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from clew.capture.bytecode.instructions import instructions_of, variables_of
from clew.capture.bytecode.try_blocks import attempted_effect
from clew.capture.guards.notes import CHECKS
from clew.capture.patches import Patches, original_in, own_code
from clew.capture.python.callers import line_of_program
from clew.capture.python.random_numbers import DRAWS
from clew.capture.recording.opaque_calls import state_behind
from clew.capture.restart import Restart
from clew.capture.state.memory import Memory
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.ir.guests import Effect
from clew.ir.node import Node
from clew.ir.source import SourceLine, is_hidden

CACHED = type(functools.lru_cache(lambda: None))
_HOLDING = frozenset({CACHED, staticmethod, classmethod})
"""The kinds of values, besides functions, that are a cached function or may keep one in a closure."""
Place = tuple[Any, str]
"""Where a cached function is found: a dict of globals, a module or a class, and its name there."""


# ---- what becomes of a call ------------------------------------------------------------------------------------------


class CachedCalls:
    """The calls of cached functions in one run, and what the caches have handed out.

    ``arrays`` are those that caches hold, each with the cached function: a write to one would be seen by the next one
    who asks the cache.
    """

    kind: type[CaptureError] = CaptureError
    """The error for a call that a graph cannot make as the program does."""
    ends: tuple[type, ...] = ()
    """Classes of values that are followed by other means."""
    switches: tuple[Any, ...] = ()
    """Targets of nodes that switch something for a while, and back."""

    def __init__(self, is_end: Callable[[Any], bool]) -> None:
        self.arrays: list[tuple[Any, Any]] = []
        self._handed_out = Memory(is_end)
        self._owner: Any = None

    def call(self, cached: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the program gets for a call of a cached function."""
        raise NotImplementedError

    @contextmanager
    def without_effects(self, cached: Any, given: tuple[Any, ...] = ()) -> Iterator[None]:
        """The body runs inside: refuse one that changes something around it, or among the arguments."""
        before = state_behind(cached, given, self.ends)
        yield
        if changed := before.changed():
            raise self.refusal(cached, f"its body changes {changed}, only when the cache has no result yet")

    def check_recorded(self, cached: Any, nodes: Iterable[Node]) -> None:
        """The nodes that the body has made must give the same for the same arguments, always; the body may write to
        what it has made itself."""
        made: set[Any] = set()
        for node in nodes:
            made.add(node)
            if not self._stays_inside(node, made):
                raise self.refusal(cached, f"{node.name} in its body acts only when the cache has no result yet")
            if any(source.op == "get_attr" for source in node.all_input_nodes):
                raise self.refusal(cached, "it reads arrays that may change while its cache stays as it is")

    def _stays_inside(self, node: Any, made: set[Any]) -> bool:
        """Whether a node does nothing that could be seen outside of the body that has ``made`` some values, and gives
        the same at each call."""
        if any(node.target is function for function in DRAWS):
            return False
        effect = attempted_effect(node)
        if effect is Effect.NONE or node.target in CHECKS or node.target in self.switches:
            return True
        return effect is Effect.WRITE and not node.kwargs and bool(node.args) and node.args[0] in made

    def hand_out(self, cached: Any, result: Any) -> None:
        """Nobody shall change this result."""
        self._owner = cached
        self._handed_out.remember(result)

    def check(self) -> None:
        """Raise if somebody has."""
        if self._handed_out.has_changed():
            self._handed_out.put_back()
            code = self._owner.__wrapped__.__code__
            line = SourceLine(code.co_filename, code.co_firstlineno, code.co_name).describe()
            why = "the program changes what its cache holds, and the next call would see it"
            raise self.refusal(self._owner, why, line)

    def check_written(self, array: Any, share_memory: Callable[[Any, Any], bool]) -> None:
        """An array is written to: raise if a cache holds it."""
        for kept, cached in self.arrays:
            if share_memory(array, kept):
                raise self.refusal(cached, "the program writes to what its cache holds, and the next call would see it")

    def line(self) -> str:
        """The line of the program that is being run."""
        return line_of_program()

    def refusal(self, cached: Any, why: str, where: str = "") -> CaptureError:
        """The error for a cached function that a graph cannot call as the program does."""
        name = getattr(cached.__wrapped__, "__name__", type(cached.__wrapped__).__name__)
        return self.kind(
            f"{name}, a function with a cache, cannot be captured",
            where=where or self.line(),
            why=why,
            fixes=(
                "take the cache away",
                "call it before the program and pass the result",
                'keep the function that calls it as one call: clew.wrap("its_name") at module level',
            ),
        )


Current = Callable[[], CachedCalls | None]
"""The calls of the run that is recording right now, in this context."""


def _reporting(cached: Any, current: Current) -> Callable[..., Any]:
    @functools.wraps(cached)
    def call(*args: Any, **kwargs: Any) -> Any:
        calls = current()
        return cached(*args, **kwargs) if calls is None else calls.call(cached, args, kwargs)

    for name in ("cache_info", "cache_clear", "cache_parameters"):
        setattr(call, name, _refusing(cached, getattr(cached, name), current))
    _proxies.add(call)
    return call


_proxies: weakref.WeakSet[Any] = weakref.WeakSet()
"""All replacements, which have what they stand for in a closure, too."""


def _refusing(cached: Any, original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A question about the cache itself, which the graph does not use."""

    def ask() -> Any:
        calls = current()
        if calls is not None:
            raise calls.refusal(cached, "the program asks how its cache stands")
        return original()

    return ask


_proxy_of = functools.lru_cache(maxsize=1024)(_reporting)
"""The replacement of a cached function; made once, since every capture of a program needs the same."""


# ---- where cached functions are --------------------------------------------------------------------------------------


def install(
    patches: Patches,
    current: Current,
    surroundings: Surroundings | None,
    kinds: Iterable[type],
    functions: Iterable[FunctionType] = (),
    met: Iterable[Place] = (),
) -> None:
    """Let cached functions report to the run that ``current`` names: those that the program names, those in these
    classes, those that other ``functions`` name, and those that an earlier run has met."""
    make = functools.partial(_proxy_of, current=current)
    for holder, name in met:
        if isinstance(holder, type):
            patches.on_class(holder, name, make)
        else:
            patches.in_dict(vars(holder) if isinstance(holder, ModuleType) else holder, name, make)
    for kind in kinds:
        for name, value in [item for item in vars(kind).items() if _may_hold(item[1])]:
            if _is_cached(value):
                patches.on_class(kind, name, make)
            else:
                _in_closure(patches, value, make)
    if surroundings is not None:
        used = surroundings.derived(_all_spelled)
        for names in surroundings.namespaces.values():
            _in_namespace(patches, names, used.intersection(names), make)  # which goes over the few names of the module
        for function in surroundings.derived(_with_closures):
            _in_closure(patches, function, make)
    for function in functions:
        _in_namespace(patches, function.__globals__, _spelled(function.__code__) & function.__globals__.keys(), make)


def _in_namespace(patches: Patches, names: dict[str, Any], used: Iterable[str], make: Callable[[Any], Any]) -> None:
    for name in used:
        value = names[name]
        if not _may_hold(value):
            continue
        if _is_cached(value):
            patches.in_dict(names, name, make)
        else:
            _in_closure(patches, value, make)


def _may_hold(value: Any) -> bool:
    """Whether a value is a cached function, or may keep one in a closure."""
    kind = type(value)
    return value.__closure__ is not None if kind is FunctionType else kind in _HOLDING


def _is_cached(value: Any) -> bool:
    return type(value) is CACHED and _is_users(value)


def _is_users(cached: Any) -> bool:
    code = getattr(cached.__wrapped__, "__code__", None)
    return code is not None and not is_hidden(code)


def _all_spelled(functions: Iterable[FunctionType]) -> frozenset[str]:
    return frozenset(name for function in functions for name in _spelled(function.__code__))


def _with_closures(functions: Iterable[FunctionType]) -> list[FunctionType]:
    return [function for function in functions if function.__closure__]


@functools.lru_cache(maxsize=16384)
def _spelled(code: CodeType) -> frozenset[str]:
    """All names and texts in a function and in those inside it: what it can ask another module for."""
    inner = [_spelled(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    texts = [constant for constant in code.co_consts if isinstance(constant, str)]
    return frozenset({*code.co_names, *texts}).union(*inner)


def _in_closure(patches: Patches, value: Any, make: Callable[[Any], Any]) -> None:
    """A decorator of the user's may keep the cached function in a variable of its own."""
    inner = value if type(value) is FunctionType else getattr(value, "__func__", None)
    if type(inner) is not FunctionType or inner.__closure__ is None or inner in _proxies:
        return
    for cell in inner.__closure__:
        held = _contents(cell)
        if _is_cached(held):
            patches.in_cell(cell, make)


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def check_hash(met: list[Place], frame: FrameType) -> None:
    """A traced number is hashed in this frame: start over if a cache does it of which the capture did not know.

    Those are functions of packages that the program merely uses. ``met`` learns them.
    """
    known = {(id(holder), name) for holder, name in met}
    found = [(holder, name) for holder, name in _cached_in(frame) if (id(holder), name) not in known]
    if found:
        met += found
        raise Restart


def _cached_in(frame: FrameType) -> Iterator[Place]:
    """The cached functions that the code of a frame names: variables, and attributes of what its variables hold."""
    names = frame.f_code.co_names
    owners = [*variables_of(frame).values(), *(frame.f_globals[name] for name in names if name in frame.f_globals)]
    holders: dict[int, Any] = {id(frame.f_globals): frame.f_globals}
    for owner in owners:
        kind = owner if isinstance(owner, type) else type(owner)
        holders |= {id(holder): holder for holder in ((owner,) if isinstance(owner, ModuleType) else kind.__mro__)}
    for holder in holders.values():
        held = holder if isinstance(holder, dict) else vars(holder)
        yield from ((holder, name) for name in names if isinstance(held.get(name), CACHED) and _is_users(held[name]))


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
