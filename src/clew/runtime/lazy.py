"""LazyGraph: captured at the first call, and again whenever the guards of all captures fail.

The result of a call that captures comes from that very run. A call whose guards fail leaves no mark: what it had
changed by then is put back before the next capture is tried. The capture that last fitted arguments like these is tried
first, and those whose guards at the entrance seem to fail are tried last. Calls of captures take no lock; one thread
captures at a time, and only while no other one runs a capture of the same program. Captures are saved with the lazy
graph, what each relied on by the paths of the program's parts; those that cannot be are captured again after loading.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import io
import pickle
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from threading import get_ident
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, NamedTuple

from clew.capture.captured import Pins
from clew.capture.current_capture import LOCK, StandsFor
from clew.capture.current_capture import current as recording
from clew.errors import CaptureError, GuardError
from clew.runtime.fast.module_fingerprint import Fingerprint, Parts
from clew.runtime.function import GraphFunction
from clew.runtime.interventions import Intervening, Intervention, is_active

# ---- lazy graphs -----------------------------------------------------------------------------------------------------

_PATIENCE = 120.0
"""For so many seconds a call waits while another thread captures."""
_DRAINING = 1.0
"""For so many seconds a capture waits for the calls that are under way in other threads."""
_COMPILER = "clew.runtime.torch_compile"
"""The file that knows what torch can be asked; it waits until torch is there."""
_PLAIN = frozenset({str, int, bool, float, type(None)})
_MOST_LIKED = 256
_NONE, _LATER = object(), object()
"""No capture fits; a capture is being made."""


def _nothing() -> Any:
    return None


_is_compiling: Callable[[], Any] = _nothing
_count_of_modes: Callable[[], Any] = _nothing
_is_tracing: Callable[[], Any] = _nothing
"""Whether torch's compiler reads this code, or something of torch's watches the call: they are shown the original."""


def _ask_torch() -> None:
    """Ask torch these things from now on, if it is there."""
    global _is_compiling, _count_of_modes, _is_tracing
    if _is_compiling is _nothing and sys.modules.get("torch") is not None:
        compiler = importlib.import_module(_COMPILER)
        _count_of_modes, _is_tracing = compiler.count_of_modes, compiler.is_tracing
        _is_compiling = compiler.is_compiling


class Entry:
    """A capture, and how the program stood that it holds for; most captures ask that themselves."""

    __slots__ = ("captured", "is_asked", "fingerprint")

    def __init__(self, captured: Any, fingerprint: Fingerprint) -> None:
        self.captured = captured
        self.fingerprint = fingerprint
        self.is_asked = isinstance(captured, GraphFunction) and captured._rely_on(fingerprint)

    def is_unchanged(self) -> bool:
        """Whether the program is unchanged, where the capture does not ask."""
        return self.is_asked or self.fingerprint.holds()


class Running:
    """What calls in all threads have in common: the captures, the threads that are in one, and whether one is made.

    It is an object of its own because attributes of a lazy graph are found slowly: it has the original's, too.
    """

    __slots__ = ("entries", "is_capturing", "liked", "threads")

    def __init__(self) -> None:
        self.entries: tuple[Entry, ...] = ()
        self.is_capturing = False
        self.liked: dict[Any, Entry] = {}
        self.threads: list[int] = []


class LazyGraph(StandsFor, Intervening):
    """A callable that captures itself as it is called. ``captures`` lists what it has.

    The second capture and those that follow keep sizes and numbers free where the first one relied on them. When it has
    ``limit`` captures and none of them fits, the original runs.
    """

    __slots__ = (
        "captures", "limit", "_capture", "_contexts", "_parts", "_running", "_warned", "__dict__", "__weakref__",
    )  # fmt: skip

    def __init__(self, fn: Any, capture: Callable[..., tuple[Any, ...]], limit: int = 16) -> None:
        if not isinstance(limit, int) or limit < 1:
            raise CaptureError(f"limit={limit!r} allows no capture", fixes=("give a number of captures, 1 or more",))
        self.fn = fn
        self.captures: list[Any] = []
        self.limit = limit
        self._capture = capture
        self._parts = Parts(fn)
        self._running = Running()
        self._warned = False
        self._contexts: tuple[Intervention, ...] = ()
        self._look_like_original()
        _ask_torch()

    def _look_like_original(self) -> None:
        functools.update_wrapper(self, self.fn, updated=())

    # ---- calls ---------------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _is_compiling() or recording.get() is not None or _count_of_modes() or _is_tracing():
            return self._call_original(args, kwargs)
        running = self._running
        known = running.entries
        if not known:
            return self._call_new(known, args, kwargs)
        thread = get_ident()
        running.threads.append(thread)
        try:
            if running.is_capturing:
                result = _LATER
            elif len(known) > 1:
                result = _call_one(running, known, args, kwargs)
            elif known[0].is_asked or known[0].is_unchanged():
                return known[0].captured(*args, **kwargs) if kwargs else known[0].captured(*args)
            else:
                result = _NONE
        except GuardError:
            result = _NONE
        finally:
            running.threads.remove(thread)
        if result is not _NONE and result is not _LATER:
            return result
        return self._call_new(known if result is _NONE else None, args, kwargs)

    def _call_new(self, known: tuple[Entry, ...] | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call that none of the ``known`` captures fits, or that has to wait for a capture first."""
        if not LOCK.acquire(timeout=_PATIENCE):
            return self._call_original(args, kwargs)
        try:
            has_others = self._running.entries is not known
            may_capture = not has_others and len(self._running.entries) < self.limit
            result = self._captured(args, kwargs) if may_capture else _NONE
        finally:
            LOCK.release()
        if result is not _NONE:
            return result
        if has_others:
            return self(*args, **kwargs)
        if not may_capture:
            self._warn(args, kwargs)
        return self._call_original(args, kwargs)

    def _call_original(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the original, which nothing can be changed or kept of."""
        if is_active(self._contexts):
            raise CaptureError(
                f"{self!r} runs its original here, where no value can be patched or recorded",
                why="it has as many captures as it may have, or another tool traces, compiles or watches it",
                fixes=("capture it with an example: clew.trace(fn, args)", "raise the limit: trace(fn, limit=...)"),
            )
        return self.fn(*args, **kwargs)

    def _captured(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call that is captured, by the thread that may; none if other calls do not come to an end."""
        self._running.is_capturing = True
        try:
            if not self._is_quiet():
                return _NONE
            _ask_torch()
            parts = self._parts.now()
            only_captures = is_active(self._contexts)  # the run that is captured has no interventions
            options = {"keep": False} if only_captures else {}
            captured, result, pins = self._capture(self.fn, args, kwargs, bool(self._running.entries), **options)
            self._add(Entry(captured, Fingerprint(self.fn, pins, self._parts, parts)))
        finally:
            self._running.is_capturing = False
        return captured(*args, **kwargs) if only_captures else result

    def _add(self, entry: Entry) -> None:
        for one in self._contexts:
            one.watch(entry.captured)
        self.captures.append(entry.captured)
        self._running.entries = (*self._running.entries, entry)

    def _captures_to_watch(self) -> list[Any]:
        return list(self.captures)

    def _watch_captures(self, one: Intervention, begins: bool) -> None:
        others = tuple(known for known in self._contexts if known is not one)
        self._contexts = (*others, one) if begins else others

    def _is_quiet(self) -> bool:
        """Whether no other thread runs a capture of this program: a new one works on the same objects."""
        own, end = get_ident(), time.monotonic() + _DRAINING
        while any(thread != own for thread in self._running.threads.copy()):
            if time.monotonic() > end:
                return False
            time.sleep(0.0005)
        return True

    def _warn(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Say once that the original runs, and why."""
        if self._warned:
            return
        self._warned = True
        failing = Counter(str(one) for one in (one.check(*args, **kwargs) for one in self.captures) if one)
        found = "; ".join(f"{text} ({count} of them)" for text, count in failing.most_common(3))
        warnings.warn(
            f"{self!r} has as many captures as it may have, and none of them fits this call: the original runs. "
            f"What the captures assume: {found or 'the same parts, hooks and values'}. Give what differs at each "
            "call as tensors or numbers, or raise the limit: clew.trace(fn, limit=...)",
            RuntimeWarning,
            stacklevel=4,
        )

    # ---- the original's attributes -------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        """What the original has, ``parameters()`` say, is the original's."""
        if name in _OWN:
            raise AttributeError(name)
        try:
            return getattr(self.fn, name)
        except AttributeError:
            if name not in _OF_CAPTURES:
                raise
        captures = object.__getattribute__(self, "captures")
        advice = f"lazy.captures[0].{name}" if captures else "it has none yet; call it, or give clew.trace an example"
        raise AttributeError(f"a lazy graph has no {name!r}, its captures have: {advice}")

    def __setattr__(self, name: str, value: Any) -> None:
        """What is set besides the attributes of a lazy graph is set in the original, which its captures work on."""
        is_own = name in _OWN or name.startswith("__")
        object.__setattr__(self, name, value) if is_own else setattr(self.fn, name, value)

    def __delattr__(self, name: str) -> None:
        is_own = name in _OWN or name.startswith("__")
        object.__delattr__(self, name) if is_own else delattr(self.fn, name)

    def __repr__(self) -> str:
        name = getattr(self.fn, "__name__", None) or type(self.fn).__name__
        return f"LazyGraph({name}, {len(self.captures)} captures)"

    # ---- copies ----------------------------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        name = getattr(self.fn, "__qualname__", None)
        if _named(getattr(self.fn, "__module__", None), name) is self:
            return name  # the decorated function of a module is found there again
        return _again, (type(self)._made_for, self.fn, self._capture, self.limit, self._saved())

    def _saved(self) -> list[Saved]:
        """The captures that can be saved and that hold for the program as it stands."""
        parts = self._parts.now()
        entries = [one for one in self._running.entries if one.fingerprint.then == parts]
        found = (saved(self.fn, one.captured, one.fingerprint.pins) for one in entries)
        return [one for one in found if one is not None]

    def __copy__(self) -> LazyGraph:
        twin = self._made_for(self.fn, self._capture, self.limit)
        for entry in self._running.entries:
            twin._add(entry)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> LazyGraph:
        twin = memo[id(self)] = self._made_for(copy.deepcopy(self.fn, memo), self._capture, self.limit)
        return twin

    @staticmethod
    def _made_for(fn: Any, capture: Any, limit: int) -> LazyGraph:
        """Another lazy graph of this kind."""
        return LazyGraph(fn, capture, limit)


_OF_CAPTURES = frozenset({"code", "graph", "guards", "view", "to_python", "node_of", "insert_after", "wrap_module"})
"""What people look for in a lazy graph, and each capture has."""
_OWN = frozenset({*LazyGraph.__slots__, *StandsFor.__slots__})


def _again(make: Callable[..., LazyGraph], fn: Any, capture: Any, limit: int, captures: list[Saved]) -> LazyGraph:
    lazy = make(fn, capture, limit)
    parts = lazy._parts.now()
    for one in captures:
        lazy._add(Entry(one.captured, Fingerprint(fn, loaded(fn, one), lazy._parts, parts)))
    return lazy


def _named(module: str | None, name: str | None) -> Any:
    """What stands under a dotted name in a module."""
    found: Any = sys.modules.get(module or "")
    for atom in (name or "").split("."):
        found = getattr(found, atom, None)
    return found


def _call_one(running: Running, known: tuple[Entry, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the first of several captures that fits."""
    key = _likeness(args, kwargs)
    for entry in _candidates(known, running.liked.get(key), args, kwargs):
        try:
            result = entry.captured(*args, **kwargs)
        except GuardError:
            continue
        if len(running.liked) >= _MOST_LIKED:
            running.liked.clear()
        running.liked[key] = entry  # it is tried first when the plain arguments are these again
        return result
    return _NONE


def _candidates(
    known: tuple[Entry, ...], liked: Entry | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[Entry]:
    """The captures that a call may fit: first those whose guards at the entrance hold."""
    if liked is not None and liked.is_unchanged() and liked.captured._may_fit(args, kwargs):
        yield liked
    doubtful = []
    for entry in reversed(known):
        if entry.fingerprint.holds():
            if not entry.captured._may_fit(args, kwargs):
                doubtful.append(entry)
            elif entry is not liked:
                yield entry
    yield from doubtful


def _likeness(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What tells calls apart at a glance: plain arguments, and the types of others."""
    key = (*[value if type(value) in _PLAIN else type(value) for value in args],)
    if not kwargs:
        return key
    return (key, *kwargs, *[value if type(value) in _PLAIN else type(value) for value in kwargs.values()])


# ---- captures without their original ---------------------------------------------------------------------------------


class SavedCaptures:
    """What a lazy graph had captured by the time it was saved: a call goes to the capture that it fits.

    The original is not there, so a call that none of them fits is refused.
    """

    captures: list[Any]

    def __init__(self, captures: list[Any], name: str) -> None:
        self.captures, self.__name__ = captures, name

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return call_fitting(self.captures, args, kwargs)

    def __repr__(self) -> str:
        return f"SavedCaptures({self.__name__}, {len(self.captures)} captures)"


def call_fitting(captures: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the first capture that a call fits."""
    doubtful = [one for one in captures if not one._may_fit(args, kwargs)]
    refused = []
    for captured in (*(one for one in captures if one not in doubtful), *doubtful):
        try:
            return captured(*args, **kwargs)
        except GuardError as error:
            refused.append(error.what)
    raise GuardError(
        f"none of the {len(captures)} captures that were saved fits this call: {'; '.join(dict.fromkeys(refused))}",
        why="a lazy graph that was loaded has no original that it could capture again",
        fixes=("call the lazy graph with such arguments before it is saved",),
    )


# ---- captures as they are saved --------------------------------------------------------------------------------------

Attribute = tuple[Any, str, Any]
"""An attribute that a capture relied on: the path of a part or a class, its name, its value."""


class Saved(NamedTuple):
    """A capture, and the attributes that it relied on."""

    captured: Any
    attributes: list[Attribute]


class _Trial(pickle.Pickler):
    """Finds out whether something can be pickled, the parts of a program aside, which are pickled anyway."""

    def __init__(self, parts: Mapping[int, Any]) -> None:
        super().__init__(io.BytesIO(), pickle.DEFAULT_PROTOCOL)
        self._ids = parts

    def persistent_id(self, value: Any) -> Any:
        return "part" if id(value) in self._ids else None


def saved(fn: Any, captured: Any, pins: Pins) -> Saved | None:
    """What to save of a capture; None if that cannot be."""
    if pins.held or pins.code or not pins.hold():
        return None
    parts = _parts(fn)
    attributes = [_by_path(parts, *pin) for pin in pins.attributes]
    found = Saved(captured, [one for one in attributes if one is not None])
    if len(found.attributes) < len(attributes):
        return None
    try:
        _Trial({id(part): part for part in (fn, *parts.values())}).dump(found)
    except Exception:  # whatever an object raises that does not want to be pickled
        return None
    return found


def loaded(fn: Any, one: Saved) -> Pins:
    """What a capture that was loaded relies on."""
    parts = _parts(fn)
    return Pins([(vars(parts[at] if type(at) is str else at), name, value) for at, name, value in one.attributes])


def _parts(fn: Any) -> dict[str, Any]:
    owner = getattr(fn, "__self__", fn)
    return dict(owner.named_modules()) if hasattr(owner, "named_modules") else {}


def _by_path(parts: Mapping[str, Any], holder: Any, name: str, value: Any) -> Attribute | None:
    """An attribute by the place of its holder; None if the holder is no part and no class of one."""
    if type(holder) is MappingProxyType:
        kinds = dict.fromkeys(kind for part in parts.values() for kind in type(part).__mro__)
        found: list[Any] = [kind for kind in kinds if name in vars(kind) and vars(kind)[name] is value]
    else:
        found = [path for path, part in parts.items() if vars(part) is holder]
    return (found[0], name, value) if len(found) == 1 else None


# ---- a Python module as a whole --------------------------------------------------------------------------------------
#
# Functions of the module and of the modules below it are replaced, each once. Classes, constants, and what the module
# has imported from elsewhere are the same objects as in the original, and so are the globals that its functions see.


def copy_with(module: ModuleType, replace: Callable[[Any], Any]) -> ModuleType:
    """A copy of ``module`` with ``replace(function)`` in the place of each of its functions."""
    return _copy(module, module.__name__, replace, {}, {})


def _copy(
    module: ModuleType,
    package: str,
    replace: Callable[[Any], Any],
    modules: dict[ModuleType, ModuleType],
    functions: dict[Any, Any],
) -> ModuleType:
    twin = modules[module] = ModuleType(module.__name__, module.__doc__)
    for name, value in vars(module).items():
        if isinstance(value, ModuleType) and _is_below(value.__name__, package):
            value = modules[value] if value in modules else _copy(value, package, replace, modules, functions)
        elif _is_traceable(value) and _is_below(value.__module__, package):
            if value not in functions:
                functions[value] = replace(value)
            value = functions[value]
        setattr(twin, name, value)
    return twin


def _is_below(name: str | None, package: str) -> bool:
    return name == package or (name or "").startswith(f"{package}.")


def _is_traceable(value: Any) -> bool:
    """A function that gives its result when it is called: generators and coroutines do not."""
    lazy = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return isinstance(value, FunctionType) and not any(is_lazy(value) for is_lazy in lazy)
