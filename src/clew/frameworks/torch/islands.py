"""Islands: parts of a program that the capture cannot follow, and that therefore stay one call.

When a run meets something that it cannot record (NumPy on a tensor's data, an object of a C library), the innermost
function or module around that place which can be called as a whole becomes an island, and the capture starts over. The
function runs for real at each call of the graph, so nothing in it is frozen. Where there is none, the error stands.
"""

from __future__ import annotations

import traceback
from collections.abc import Container
from types import FrameType, FunctionType
from typing import Any

import torch

from clew.capture.symbolic.patches import Patches
from clew.capture.symbolic.wrap import install_for
from clew.ir.source import is_hidden


def find_island(error: BaseException, root: Any, parts: Container[Any], known: Container[Any]) -> Any:
    """The innermost function or module, between the program and the place of the error, that can stay one call."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if not is_hidden(frame.f_code)]
    for frame in reversed(frames):
        for found in (_module_of(frame), _function_of(frame)):
            is_part = found in parts if isinstance(found, torch.nn.Module) else found is not None
            if is_part and found is not root and found is not getattr(root, "__func__", None) and found not in known:
                return found
    return None


def _module_of(frame: FrameType) -> Any:
    """The module whose ``forward`` runs in a frame."""
    owner = frame.f_locals.get("self")
    if not isinstance(owner, torch.nn.Module):
        return None
    forward = getattr(type(owner).forward, "__wrapped__", type(owner).forward)
    return owner if isinstance(forward, FunctionType) and _runs(forward, frame) else None


def _function_of(frame: FrameType) -> FunctionType | None:
    """The function that runs in a frame, if it is one that other functions find by its name."""
    found = frame.f_globals.get(frame.f_code.co_name)
    return found if isinstance(found, FunctionType) and _runs(found, frame) else None


def _runs(function: FunctionType, frame: FrameType) -> bool:
    """Whether a frame runs a function, or what stood for its code during the capture."""
    ours, theirs = function.__code__, frame.f_code
    return (ours.co_filename, ours.co_firstlineno, ours.co_name) == (
        theirs.co_filename,
        theirs.co_firstlineno,
        theirs.co_name,
    )


def install(patches: Patches, islands: list[Any], functions: list[Any]) -> None:
    """Let calls of the functions among the islands be recorded as calls."""
    wanted = [island for island in islands if isinstance(island, FunctionType)]
    around = (*functions, *wanted) if wanted else ()
    for names in {id(function.__globals__): function.__globals__ for function in around}.values():
        install_for(patches, names, wanted, beside="__")
