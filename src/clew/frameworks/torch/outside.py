"""What a torch program does to the world outside of Python: files written, the environment changed, processes started.

No node of a graph does it again, and no capture can take it back, so it is refused before it happens. The functions
that do it are replaced for the time of a capture, in every module that holds one of them under its own name. (Python's
audit hooks would report more, but they stay for ever, and make each ``id()`` in the process ten times as slow.)
"""

from __future__ import annotations

import _io
import builtins
import functools
import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch

from clew.capture.example.contents import ACTING
from clew.capture.symbolic.patches import Patches
from clew.frameworks.torch.by_name import noted
from clew.frameworks.torch.clocks import is_importing
from clew.frameworks.torch.refusals import refusal

Current = Callable[[], Any]

_ACTS = {
    "putenv": "a change of the environment",
    "unsetenv": "a change of the environment",
    "remove": "the removal of a file",
    "unlink": "the removal of a file",
    "rename": "a file getting another name",
    "replace": "a file getting another name",
    "mkdir": "a folder being made",
    "rmdir": "the removal of a folder",
    "truncate": "a file being cut",
    "ftruncate": "a file being cut",
    "link": "a file getting another name",
    "symlink": "a file getting another name",
    "chdir": "a change of the working folder",
    "fchdir": "a change of the working folder",
    "umask": "a change of the rights of new files",
    "chmod": "a change of the rights of a file",
    "chown": "a change of the owner of a file",
    "utime": "a file being written",
    "mkfifo": "a pipe being made",
    "kill": "a signal being sent",
    "fork": "a process being started",
    "system": "a process being started",
    "posix_spawn": "a process being started",
    "posix_spawnp": "a process being started",
}
ACTING.update(getattr(os, name) for name in _ACTS if hasattr(os, name))
ACTING.update((builtins.open, os.open, sys.setrecursionlimit))
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


def install(patches: Patches, current: Current) -> None:
    """Let acts on the outside be refused while the capture that ``current`` names is recording."""
    for name in [name for name in _ACTS if hasattr(os, name)]:
        patches.in_dict(vars(os), name, noted(functools.partial(_refusing, what=_ACTS[name], current=current), True))
    for home in (builtins, io, _io):
        patches.in_dict(vars(home), "open", noted(functools.partial(_opening, current=current), True))
        patches.in_dict(vars(home), "FileIO", functools.partial(_file_class, current=current))
    saving = functools.partial(_refusing, what="a file being written", current=current)
    patches.on_class(torch.serialization._open_zipfile_writer_file, "__init__", saving)
    patches.in_dict(vars(os), "open", noted(functools.partial(_opening, current=current), True))
    starting, connecting = "a process being started", "a connection being made"
    patches.on_class(subprocess.Popen, "__init__", functools.partial(_refusing, what=starting, current=current))
    for name in ("connect", "connect_ex"):
        make = functools.partial(_refusing, what=connecting, current=current)
        patches.on_class(socket.socket, name, make, inherited=True)


def _refuse(what: str, current: Current) -> None:
    """Refuse an act of a program that is being recorded; what a module does as it is imported is done once."""
    recorder = current()
    if recorder is not None and recorder.running and not is_importing():
        raise refusal(what, "no call of the graph would do it again")


def _refusing(original: Callable[..., Any], what: str, current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def act(*args: Any, **kwargs: Any) -> Any:
        _refuse(what, current)
        return original(*args, **kwargs)

    return act


@functools.cache
def _opening(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """A function that opens a file: refused if the file can be written to."""

    @functools.wraps(original)
    def open(file: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_writing(file, args[0] if args else kwargs.get("mode", kwargs.get("flags", "r"))):
            _refuse("a file being written", current)
        return original(file, *args, **kwargs)

    return open


@functools.cache
def _file_class(original: Any, current: Current) -> Any:
    """What stands for ``io.FileIO``: opens files like the function, and is the class otherwise."""

    class Standing(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, original)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return _opening(original, current)(*args, **kwargs)

    return Standing("FileIO", (original,), {})


def _is_writing(file: Any, mode: Any) -> bool:
    """Whether an opened file can be written to; what has no name in a folder, a pipe say, counts as none."""
    if isinstance(file, int) or (isinstance(file, (str, bytes, os.PathLike)) and os.fspath(file) in _NOWHERE):
        return False
    return not set("wax+").isdisjoint(mode) if isinstance(mode, str) else bool((mode or 0) & _WRITING)


_NOWHERE = (os.devnull, os.devnull.encode())
