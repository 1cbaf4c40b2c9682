"""Variables around a program in another process, where a saved graph is loaded: how they are found again, and what they
must hold there.

A variable of a module, of a closure or of a function is found by name. What it held is saved as a likeness: plain data
that two values share if a program that reads them does the same. Functions and classes are alike by their names, arrays
by what they hold, objects by their class and attributes.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import importlib
import pickle
import sys
import threading
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from clew.capture.example.contents import LOGGERS, SIMPLE, contents, follows, look_up

_MOST = 20_000
_MOST_STEPS = 8
_NAMED = (type, FunctionType, BuiltinFunctionType)
_ALIKE = (object, type(threading.Lock()), type(threading.RLock()))
"""Classes of which one object does what any other does."""

# ---- where a variable is ---------------------------------------------------------------------------------------------


def address_of(holder: Any, name: str) -> tuple[str, Any]:
    """How the holder of a variable is found in another process; anything else but code goes there itself."""
    if isinstance(holder, dict):
        home = sys.modules.get(str(holder.get("__name__")))
        if home is not None and vars(home) is holder:
            return "module", home.__name__
        return ("modules", None) if holder is sys.modules else ("itself", holder)
    if isinstance(holder, CellType):
        owner = next((one for one in _owners_of(holder) if _way_to(one) is not None), None)
        if owner is None:
            raise pickle.PicklingError(
                f"the graph relies on the variable {name!r} of a closure, whose function has no name of its own"
            )
        return "closure", (_way_to(owner), name)
    if isinstance(holder, FunctionType):
        way = _way_to(holder)
        if way is not None:
            return "function", way
    return "itself", holder


def holder_at(kind: str, place: Any) -> Any:
    """The holder of a variable that has this address."""
    if kind == "module":
        return vars(importlib.import_module(place))
    if kind == "modules":
        return sys.modules
    if kind == "function":
        return _function_at(place)
    if kind == "closure":
        function, name = _function_at(place[0]), place[1]
        return (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
    return place


def _owners_of(cell: CellType) -> list[FunctionType]:
    """The functions that have a cell in their closures."""
    closures = [found for found in gc.get_referrers(cell) if type(found) is tuple]
    owners = [found for closure in closures for found in gc.get_referrers(closure) if type(found) is FunctionType]
    return [owner for owner in owners if owner.__closure__ is not None and cell in owner.__closure__]


def _way_to(function: FunctionType) -> tuple[str, str, int] | None:
    """The module and name under which a function is found, and how many wrappers lie around it there."""
    try:
        steps = _wrapped_at(function.__module__, function.__qualname__)
    except (ImportError, AttributeError):
        return None
    place = next((place for place, found in enumerate(steps) if found is function), None)
    return None if place is None else (function.__module__, function.__qualname__, place)


def _function_at(way: tuple[str, str, int]) -> Any:
    return _wrapped_at(*way[:2])[way[2]]


def _wrapped_at(module: str, name: str) -> list[Any]:
    """What stands under a name, and what that wraps, one in the other."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = vars(found)[part] if isinstance(found, type) and part in vars(found) else getattr(found, part)
    steps: list[Any] = []
    while found is not None and len(steps) < _MOST_STEPS:
        found = getattr(found, "fget", None) or getattr(found, "__func__", found)
        steps.append(found)
        found = getattr(found, "__wrapped__", None)
    return steps


# ---- what it holds ---------------------------------------------------------------------------------------------------


class Saved(NamedTuple):
    """What a value was like, in plain data that says what a program can read of it, and whether arrays are in it."""

    likeness: Any
    has_arrays: bool


def saved(value: Any) -> Saved:
    """What a value is like."""
    look = _Likeness()
    return Saved(look.of(value), look.has_arrays)


class _Likeness:
    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, Any]] = {}
        self.has_arrays = False

    def of(self, value: Any) -> Any:
        """What one value is like; an object that comes again is the one that came first."""
        kind: Any = type(value)
        if kind in SIMPLE:
            return kind.__name__, repr(value)
        if isinstance(value, ModuleType):
            return "module", value.__name__
        if isinstance(value, _NAMED):
            return "code", getattr(value, "__module__", None), value.__qualname__
        known = self._seen.get(id(value))
        if known is not None:
            return "again", known[0]
        if len(self._seen) >= _MOST:
            raise pickle.PicklingError("the graph relies on a variable that holds too much to be saved")
        self._seen[id(value)] = (len(self._seen), value)
        return f"{kind.__module__}.{kind.__qualname__}", self._inside(value, kind)

    def _inside(self, value: Any, kind: Any) -> Any:
        if isinstance(value, MethodType):
            return self.of(value.__func__), self.of(value.__self__)
        if isinstance(value, functools.partial):
            return self.of(value.func), self.of(value.args), self.of(value.keywords)
        if isinstance(value, LOGGERS):
            return str(getattr(value, "name", ""))
        if hasattr(kind, "__array__"):
            self.has_arrays = True
            return _digest(value)
        if isinstance(value, (set, frozenset)):
            return sorted(map(repr, map(self.of, value)))
        if isinstance(value, tuple):
            return tuple([self.of(part) for part in value])
        if follows(value):
            return [(repr(self._key(key)), self.of(part)) for key, part in contents(value).items()]
        return self._unfollowed(value, kind)

    def _unfollowed(self, value: Any, kind: Any) -> Any:
        """What an object of the standard library or of a framework is like, if its class or its text tells."""
        wrapped = look_up(value, "__wrapped__")
        if wrapped is not None:
            return self.of(wrapped)
        if kind in _ALIKE:
            return ""
        text = repr(value)
        if kind.__repr__ is object.__repr__ or " at 0x" in text:
            raise pickle.PicklingError(
                f"the graph relies on a variable that holds a {kind.__qualname__}, which cannot be saved"
            )
        return text

    def _key(self, key: Any) -> Any:
        return tuple([self._key(part) for part in key]) if type(key) is tuple else self.of(key)


def _digest(array: Any) -> tuple[str, ...]:
    """What tells arrays apart: their type, shape and numbers."""
    facts = str(array.dtype), str(tuple(array.shape)), str(getattr(array, "device", ""))
    plain = array.detach().cpu() if hasattr(array, "detach") else array
    if str(array.dtype) == "torch.bfloat16":
        plain = plain.float()
    return *facts, hashlib.sha256(plain.__array__().tobytes()).hexdigest()
