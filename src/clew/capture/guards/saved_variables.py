"""Variables around a program in another process, where a saved graph is loaded.

A holder (module, class, function, closure) is found again by its path. What the variable held is saved as a
fingerprint: plain data that is equal for two values if a program that reads them does the same. Functions and classes
count by name, arrays by contents, objects by class and attributes.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import pickle
import sys
import threading
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from clew.capture.state.containers import LOGGERS, SIMPLE, contents, follows, look_up
from clew.ir.guests import guest_of
from clew.ir.pickling import home_of

_MOST = 20_000
_MOST_STEPS = 8
_NAMED = (type, FunctionType, BuiltinFunctionType)
_ALIKE = (object, type(threading.Lock()), type(threading.RLock()))
"""Classes of which one object does what any other does."""

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "<not in this process>"})()
"""Stands where the place of a variable does not exist in this process."""
_MAIN = "__main__"
_PROCESS = os.urandom(16).hex()
"""Tells this process from others: each has a main program of its own."""

# ---- where a variable is ---------------------------------------------------------------------------------------------


class HolderPath(NamedTuple):
    """Where the holder of a variable is found in any process."""

    kind: str
    where: Any

    def find(self) -> Any:
        """The holder; None where there is none. Nothing is imported for it."""
        if self.kind == "module":
            module = sys.modules.get(self.where)
            return None if module is None else vars(module)
        if self.kind == "main":
            return vars(sys.modules[_MAIN]) if self.where[0] == _PROCESS or self.where[1] == _main_file() else None
        if self.kind == "modules":
            return sys.modules
        if self.kind == "class":
            found = _found(*self.where)
            return found if isinstance(found, type) else None
        if self.kind == "nowhere":
            return None
        function = _function_at(self.where[:3])
        if self.kind == "function" or function is None:
            return function
        names = function.__code__.co_freevars
        return function.__closure__[names.index(self.where[3])] if self.where[3] in names else None


def path_of_holder(holder: Any, name: str) -> Any:
    """How the holder of a variable is found in another process; an object that belongs to no module goes there itself,
    and the variable of a closure whose function has no name is nowhere."""
    if isinstance(holder, dict):
        home = sys.modules.get(str(holder.get("__name__")))
        if home is not None and vars(home) is holder:
            is_main = home.__name__ == _MAIN
            return HolderPath("main", (_PROCESS, _main_file())) if is_main else HolderPath("module", home.__name__)
        return HolderPath("modules", None) if holder is sys.modules else holder
    if isinstance(holder, CellType):
        owner = next((one for one in _owners_of(holder) if _path_to(one) is not None), None)
        return HolderPath("nowhere", None) if owner is None else HolderPath("closure", (*(_path_to(owner) or ()), name))
    if isinstance(holder, FunctionType):
        path = _path_to(holder)
        return HolderPath("nowhere", None) if path is None else HolderPath("function", path)
    if isinstance(holder, type):
        return HolderPath("class", (holder.__module__, holder.__qualname__))
    return holder


def _main_file() -> str | None:
    """What tells the file of the main program from others, without naming it."""
    file = getattr(sys.modules.get(_MAIN), "__file__", None)
    return None if file is None else hashlib.sha256(os.path.abspath(file).encode()).hexdigest()


def _owners_of(cell: CellType) -> list[FunctionType]:
    """The functions that have a cell in their closures."""
    closures = [found for found in gc.get_referrers(cell) if type(found) is tuple]
    owners = [found for closure in closures for found in gc.get_referrers(closure) if type(found) is FunctionType]
    return [owner for owner in owners if owner.__closure__ is not None and cell in owner.__closure__]


def _path_to(function: FunctionType) -> tuple[str, str, int] | None:
    """The module and name under which a function is found, and how many wrappers lie around it there."""
    steps = _wrapped_at(function.__module__, function.__qualname__)
    place = next((place for place, found in enumerate(steps) if found is function), None)
    return None if place is None else (function.__module__, function.__qualname__, place)


def _function_at(path: tuple[str, str, int]) -> Any:
    steps = _wrapped_at(*path[:2])
    return steps[path[2]] if path[2] < len(steps) else None


def _found(module: str, name: str) -> Any:
    """What stands under a dotted name in a module that is loaded; None if nothing does."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = vars(found)[part] if isinstance(found, type) and part in vars(found) else getattr(found, part, None)
    return found


def _wrapped_at(module: str, name: str) -> list[Any]:
    """What stands under a name, and what that wraps, one in the other."""
    found = _found(module, name)
    steps: list[Any] = []
    while found is not None and len(steps) < _MOST_STEPS:
        found = getattr(found, "fget", None) or getattr(found, "__func__", found)
        steps.append(found)
        found = getattr(found, "__wrapped__", None)
    return steps


# ---- what it holds ---------------------------------------------------------------------------------------------------


class SavedValue(NamedTuple):
    """What a value was like, in plain data that says what a program can read of it, and whether arrays are in it."""

    fingerprint: Any
    has_arrays: bool
    is_shallow: bool = False
    """Whether it says nothing about what objects and containers hold."""


def saved(value: Any, is_shallow: bool = False) -> SavedValue:
    """What a value is like; if it is looked at from outside only, of which class it is, or which code."""
    if is_shallow and not isinstance(value, (*SIMPLE, *_NAMED, ModuleType)):
        return SavedValue(f"{type(value).__module__}.{type(value).__qualname__}", False, True)
    look = _Fingerprint()
    return SavedValue(look.of(value), look.has_arrays, is_shallow)


class _Fingerprint:
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
            home = home_of(value) if callable(value) else None
            if home is not None:  # a compiled function: code, too
                return home
            raise pickle.PicklingError(
                f"the graph relies on a variable that holds a {kind.__qualname__}, which cannot be saved"
            )
        return text

    def _key(self, key: Any) -> Any:
        return tuple([self._key(part) for part in key]) if type(key) is tuple else self.of(key)


def _digest(array: Any) -> tuple[str, ...]:
    """What tells arrays apart: their type, shape and numbers."""
    facts = str(array.dtype), str(tuple(array.shape)), str(getattr(array, "device", ""))
    known = guest_of(array)
    plain = array if known is None else known.as_numpy(array)
    return *facts, hashlib.sha256(plain.__array__().tobytes()).hexdigest()
