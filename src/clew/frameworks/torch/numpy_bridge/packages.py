"""NumPy inside installed packages that a torch program uses: when a capture looks there too, and at what.

Packages are large and most of them have nothing to do with NumPy, so at first none is looked into. If a run comes to an
array that nobody saw being made, to a number that NumPy wants in the code of a package, or to a generator of random
numbers that a package keeps, the capture starts over, and NumPy's calls in the modules of that package are recorded
like those of the program. A package that cannot be followed so is left alone again.
"""

from __future__ import annotations

import functools
import random
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy

from clew.capture.bytecode.call_sites import original_of
from clew.capture.bytecode.instructions import called_at, variables_of
from clew.capture.guards.notes import Variable
from clew.capture.restart import Restart
from clew.capture.state.containers import look_up
from clew.capture.state.reachable import attribute_names, global_names, methods_of, package_of, variables
from clew.frameworks.numpy.opaque_calls import is_package
from clew.frameworks.numpy.recorder import STREAMS
from clew.ir.source import is_installed, is_installed_file

_STANDARD = sysconfig.get_path("stdlib")
_STREAMS = (*STREAMS, random.Random)


class Packages:
    """The packages whose use of NumPy is followed."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.is_left = False
        """Whether the packages could not be followed: they are left alone from then on."""

    def meet(self, names: Iterable[str]) -> None:
        """A run has come to NumPy in these packages: start over, if they were not followed till now."""
        found = set(names) - self.names
        if found and not self.is_left:
            self.names |= found
            raise Restart

    def leave(self) -> bool:
        """A run that followed packages has failed: follow none of them from now on; whether any was followed."""
        was_followed = bool(self.names)
        self.names, self.is_left = set(), True
        return was_followed

    def check_number(self, frame: FrameType, is_numpy: bool = False) -> None:
        """A number is asked for its value in a frame: raise if NumPy wants it, or has given it, in a package."""
        if not self.is_left:
            asking = _asking_frame(frame, is_numpy)
            if asking is not None:
                self.meet([_home(asking)])

    def check_tensor(self, frame: FrameType) -> None:
        """A tensor is made a plain number in a frame: raise if that is a package's, where NumPy may get it next."""
        if not self.is_left:
            asking = _asking_frame(frame, is_numpy=True)
            if asking is not None and any(_names(asking, name) for name in global_names(asking.f_code)):
                self.meet([_home(asking)])

    def check_error(self, error: BaseException, functions: Iterable[FunctionType], has_arrays: bool) -> None:
        """A run has failed: raise if what it came to may be an array that a package has made."""
        frames = [step for step in _steps_of(error) if is_installed(step[0].f_code)]
        if self.is_left or not (has_arrays or any(_calls_numpy(*step) for step in frames)):
            return
        near = {_home(frame) for frame, _ in frames} | used_by(functions)
        self.meet([name for name in near if is_package(name) and _modules_of(name, *_standing(name))])

    def functions(self) -> list[FunctionType]:
        """The functions in which NumPy's calls are recorded."""
        return [one for name in sorted(self.names) for one in _functions_of(name, *_standing(name))]

    def variables(self) -> list[Variable]:
        """The variables of these packages that hold arrays and generators of random numbers."""
        modules = [module for name in sorted(self.names) for module in _modules_of(name, *_standing(name))]
        return [Variable(vars(module), name) for module in modules for name in _held_in(vars(module))]


def used_by(functions: Iterable[FunctionType]) -> frozenset[str]:
    """The packages that some of the user's functions name something of."""
    files = [(function, function.__code__.co_filename) for function in functions]
    users = [function for function, file in files if not is_installed_file(file) and not file.startswith(_STANDARD)]
    values = [value for function in users for _, _, value in variables(function)]
    named = [value if isinstance(value, (FunctionType, type, ModuleType)) else type(value) for value in values]
    return frozenset(name for name in {package_of(value) for value in named} if is_package(name))


def streams_of(names: Iterable[str]) -> list[tuple[str, Any]]:
    """The generators of random numbers that packages keep, in variables of their modules or in objects there."""
    found = []
    for package in names:
        now = [(name, holder.get(name)) for holder, name in _may_hold_streams(package, *_standing(package))]
        held = [(name, value) for name, value in now if value is not None]
        objects = [(name, value) for name, value in held if _is_object_of(value, package)]
        held += [(name, part) for name, value in objects for part in list(vars(value).values())]
        found += [(name, value) for name, value in held if isinstance(value, _STREAMS)]
    return found


@functools.lru_cache(maxsize=64)
def _may_hold_streams(package: str, home: Any, count: int) -> list[tuple[dict[str, Any], str]]:
    """The variables of a package that hold a generator, an object of its own, or nothing yet."""
    held = [(vars(module), name, value) for module in _loaded(package) for name, value in list(vars(module).items())]
    return [
        (holder, name)
        for holder, name, value in held
        if value is None or isinstance(value, _STREAMS) or _is_object_of(value, package)
    ]


def _is_object_of(value: Any, package: str) -> bool:
    kind: Any = type(value)
    return str(kind.__module__).partition(".")[0] == package and isinstance(look_up(value, "__dict__"), dict)


def _home(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _standing(package: str) -> tuple[Any, int]:
    """What tells that other modules of a package are loaded than before."""
    return sys.modules.get(package), len(sys.modules)


def _loaded(package: str) -> list[ModuleType]:
    found = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == package]
    return [module for module in found if isinstance(module, ModuleType)]


@functools.lru_cache(maxsize=64)
def _modules_of(package: str, home: Any, count: int) -> list[ModuleType]:
    """The modules of a package that know NumPy; ``home`` is its own module, and ``count`` modules are loaded: when
    that changes, they are looked at again."""
    return [module for module in _loaded(package) if any(map(_is_of_numpy, list(vars(module).values())))]


def _is_of_numpy(value: Any) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else look_up(value, "__module__")
    return home == "numpy" or (type(home) is str and home.startswith("numpy."))


@functools.lru_cache(maxsize=64)
def _functions_of(package: str, home: Any, count: int) -> list[FunctionType]:
    found: dict[FunctionType, None] = {}
    for module in _modules_of(package, home, count):
        names = vars(module)
        found.update(dict.fromkeys(one for one in _functions_in(names) if one.__globals__ is names))
    return list(found)


def _functions_in(names: dict[str, Any]) -> Iterator[FunctionType]:
    for value in list(names.values()):
        if isinstance(value, type):
            yield from (function for _, functions in methods_of(value) for function in functions)
            continue
        while value is not None and not isinstance(value, (ModuleType, type)):
            if isinstance(value, FunctionType):
                yield value
            value = look_up(value, "__wrapped__")


def _held_in(names: dict[str, Any]) -> list[str]:
    """The variables that hold an array, a generator of random numbers, or an object with such a one."""
    package = str(names.get("__name__", "")).partition(".")[0]
    return [name for name, value in names.items() if _holds(value) or _is_holder(value, package)]


def _is_holder(value: Any, package: str) -> bool:
    return _is_object_of(value, package) and any(map(_holds, list(vars(value).values())))


def _holds(value: Any) -> bool:
    return type(value) is numpy.ndarray or isinstance(value, STREAMS)


def _asking_frame(frame: FrameType | None, is_numpy: bool) -> FrameType | None:
    """The frame of a package in which NumPy was called that wants a number in ``frame``; None if it was not NumPy."""
    while frame is not None and _home(frame) in ("numpy", "clew"):
        is_numpy = is_numpy or _home(frame) == "numpy"
        frame = frame.f_back
    if frame is None or not is_installed(frame.f_code) or not is_package(_home(frame)):
        return None
    return frame if is_numpy or _calls_numpy(frame, frame.f_lasti) else None


def _steps_of(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames that an error went through, and where each was."""
    steps, step = [], error.__traceback__
    while step is not None:
        steps.append((step.tb_frame, step.tb_lasti))
        step = step.tb_next
    return steps


def _calls_numpy(frame: FrameType, offset: int) -> bool:
    """Whether what a frame calls is a function of NumPy's, as far as the code tells by its places."""
    return any(_names(frame, name) for name in called_at(frame.f_code, offset))


def _names(frame: FrameType, name: str) -> bool:
    """Whether a variable of this name in a frame is NumPy, or something of it."""
    return _is_of_numpy(variables_of(frame).get(name, frame.f_globals.get(name)))


_BUILTINS = frozenset("len int float max min bool".split())
_WITH_PLAIN_NUMBERS = frozenset({"np", "numpy"})
_MOST_ROUNDS = 3


class MetFunctions:
    """The functions of packages that earlier runs have met."""

    def __init__(self) -> None:
        self.functions: dict[FunctionType, None] = {}
        self._seen: set[tuple[CodeType, int]] = set()
        self._known = 0
        self._rounds = 0

    def note(self, frame: FrameType | None) -> None:
        """A number is made plain in a frame, or in what it has called of Clew's."""
        while frame is not None and _is_between(frame.f_globals.get("__name__", "")):
            frame = frame.f_back
        if frame is None or (frame.f_code, frame.f_lasti) in self._seen:
            return
        self._seen.add((frame.f_code, frame.f_lasti))
        code = original_of(frame.f_code)
        if not is_installed(code) or code is not frame.f_code:
            return
        if _BUILTINS.isdisjoint(called_at(code, frame.f_lasti)) or attribute_names(code) & _WITH_PLAIN_NUMBERS:
            return
        function = _function_of(frame, code) if is_package(frame.f_globals.get("__name__", "")) else None
        if function is not None:
            self.functions[function] = None

    def check(self) -> None:
        """Start over if a run has met functions that it did not know, so that the next one does."""
        if len(self.functions) > self._known and self._rounds < _MOST_ROUNDS:
            self._known, self._rounds = len(self.functions), self._rounds + 1
            raise Restart


def _is_between(name: str) -> bool:
    """Whether a module stands between Python, which asks, and the capture, which answers."""
    return name in ("torch._tensor", "torch.overrides") or name.partition(".")[0] == "clew"


def _function_of(frame: FrameType, code: CodeType) -> FunctionType | None:
    """The function whose code a frame runs, or has inside of it, found by the names that lead to it."""
    found: Any = None
    names = code.co_qualname.partition(".<locals>")[0].split(".")
    for place, name in enumerate(names):
        found = frame.f_globals.get(name) if place == 0 else look_up(found, name)
    while found is not None:
        found = look_up(found, "__func__", found)
        if isinstance(found, FunctionType) and _holds_builtin(original_of(found.__code__), code):
            return found
        found = look_up(found, "__wrapped__")
    return None


def _holds_builtin(outer: CodeType, code: CodeType) -> bool:
    inner = [constant for constant in outer.co_consts if isinstance(constant, CodeType)]
    return outer is code or outer == code or any(_holds_builtin(one, code) for one in inner)
