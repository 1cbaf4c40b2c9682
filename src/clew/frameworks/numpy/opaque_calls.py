"""Other packages that a program calls: those that only hand on to NumPy are looked through, all others are one call.

einops and the array API's wrappers are written in Python and call NumPy, so their own functions are treated like the
program's: builtins such as ``type(x)`` are led to the capture, and caches are passed. What any other installed package
does with an array is its own affair: a call of one of its functions stays one call of the graph.
"""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Container, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy

from clew.capture.patches import Patches
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.symbolic.wrap import install_for
from clew.ir.source import is_hidden, is_installed, is_installed_file, user_source

NUMPY_FOLDER = os.path.dirname(numpy.__file__) + os.sep
"""NumPy reads and writes files for whoever calls it."""
_LOOKED_THROUGH = ("einops", "array_api_compat", "array_api_extra")
_OWN_WAYS = frozenset({"numpy", "ml_dtypes", "clew", "torch", "jax", "tensorflow", "keras", *_LOOKED_THROUGH})


def is_one_call(value: Any) -> bool:
    """Whether a function or class belongs to an installed package whose inside is not looked at."""
    return is_package(str(getattr(value, "__module__", None) or ""))


@functools.lru_cache(maxsize=1024)
def is_package(name: str) -> bool:
    """Whether a module of this name belongs to an installed package, none of the frameworks."""
    package = name.partition(".")[0]
    if package in _OWN_WAYS or package in sys.stdlib_module_names or package not in sys.modules:
        return False
    module = sys.modules[package]
    return is_installed_file(str(getattr(module, "__file__", None) or list(getattr(module, "__path__", ()))))


def functions() -> list[FunctionType]:
    """The functions of the packages that are looked through, as far as these are loaded."""
    names = tuple(name for name in sys.modules if name.partition(".")[0] in _LOOKED_THROUGH)
    return _functions(names) if names else []


@functools.lru_cache(maxsize=4)
def _functions(names: tuple[str, ...]) -> list[FunctionType]:
    found: dict[FunctionType, None] = {}
    for name in names:
        module = sys.modules.get(name)
        if isinstance(module, ModuleType):
            found.update(dict.fromkeys(_functions_in(vars(module), 2)))
    return list(found)


def _functions_in(names: Any, depth: int) -> Iterator[FunctionType]:
    for value in list(names.values()):
        value = getattr(value, "__wrapped__", None) or getattr(value, "__func__", value)
        package = str(getattr(value, "__module__", "")).partition(".")[0]
        if package not in _LOOKED_THROUGH:
            continue
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, type) and depth:
            yield from _functions_in(vars(value), depth - 1)


def where() -> str:
    """The user's line that runs now."""
    source = user_source()
    return "" if source is None else source.describe()


def cannot_follow(what: str) -> CannotFollow:
    """The refusal of something that would have to be guessed."""
    return CannotFollow(
        f"{what} cannot be captured",
        where=where(),
        why="what leaves the functions that are recorded would be frozen in the graph",
        fixes=('keep the function that does it as one call: clew.wrap("its_name") at module level',),
    )


def is_raised_inside(error: BaseException) -> bool:
    """Whether an error comes from the code of a library, and not from a line of the user's."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return is_installed(frames[-1].f_code)


def find_island(error: CannotFollow, root: Any, known: Container[Any]) -> Any:
    """The function that shall stay one call, so that the program need not be followed there; None if there is none."""
    if error.island is not None:
        return None if error.island in known else error.island
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if not is_hidden(frame.f_code)]
    installed = [frame for frame in frames if is_installed(frame.f_code)]
    own = [frame for frame in reversed(frames) if not is_installed(frame.f_code)]
    for frame in [*installed, *own]:
        found = _function_of(frame)
        is_other = found is not root and found is not getattr(root, "__func__", None)
        if found is not None and is_other and found not in known:
            return found
    return None


def _function_of(frame: FrameType) -> FunctionType | None:
    """The function that runs in a frame, if it is one that other functions find by its name."""
    found = frame.f_globals.get(frame.f_code.co_name)
    while found is not None and isinstance(found, FunctionType) and not _runs(found, frame):
        found = getattr(found, "__wrapped__", None)
    return found if isinstance(found, FunctionType) else None


def _runs(function: FunctionType, frame: FrameType) -> bool:
    """Whether a frame runs a function, or what stood for its code during the capture."""
    ours, theirs = function.__code__, frame.f_code
    return (ours.co_filename, ours.co_firstlineno) == (theirs.co_filename, theirs.co_firstlineno)


def install(patches: Patches, islands: list[Any], functions: list[Any]) -> None:
    """Let calls of the islands be recorded as calls, from wherever they can be reached by name."""
    islands = [one for one in islands if isinstance(one, FunctionType)]  # others are known where they are called
    if not islands:
        return
    holders = [function.__globals__ for function in (*functions, *islands)]
    holders += [vars(module) for island in islands for module in _modules_of(island)]
    for names in {id(holder): holder for holder in holders}.values():
        install_for(patches, names, islands, beside="__")


def _modules_of(function: Any) -> Iterator[ModuleType]:
    """The loaded modules of the package of a function."""
    package = str(function.__module__).partition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package and isinstance(module, ModuleType):
            yield module
