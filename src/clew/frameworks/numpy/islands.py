"""Islands: functions that the capture cannot follow, and that therefore stay one call of the graph.

When a value would leave what is recorded, into a C library say, the outermost function of an installed package on the
way there becomes an island, or else the innermost function of the user's that others find by its name; the capture
starts over. An island runs for real at each call, so nothing in it is frozen. Where there is none, the error stands.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Container, Iterator
from types import FrameType, FunctionType, ModuleType
from typing import Any

from clew.capture.example.islands import CannotFollow
from clew.capture.symbolic.patches import Patches
from clew.capture.symbolic.wrap import install_for
from clew.ir.source import is_hidden, user_source

_INSTALLED = "-packages"


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
    return _INSTALLED in frames[-1].f_code.co_filename


def find_island(error: BaseException, root: Any, known: Container[Any]) -> Any:
    """The function that shall stay one call, so that the program need not be followed there; None if there is none."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if not is_hidden(frame.f_code)]
    installed = [frame for frame in frames if _INSTALLED in frame.f_code.co_filename]
    own = [frame for frame in reversed(frames) if _INSTALLED not in frame.f_code.co_filename]
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
    if not islands:
        return
    holders = [function.__globals__ for function in (*functions, *islands)]
    holders += [vars(module) for island in islands for module in _modules_of(island)]
    for names in {id(holder): holder for holder in holders}.values():
        install_for(patches, names, islands, beside="__")


def _modules_of(function: Any) -> Iterator[ModuleType]:
    """The loaded modules of the package of a function."""
    package = function.__module__.partition(".")[0]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package and isinstance(module, ModuleType):
            yield module
