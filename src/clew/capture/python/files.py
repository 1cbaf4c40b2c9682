"""Files and folders: writing is refused, what is read is guarded.

No node writes a file again and no capture can take it back, so the functions that do it are replaced for the time of a
capture, in every module that holds one by name, and refuse. One held in a container or attribute cannot be replaced: a
program that holds one is refused. What was written to a file that the program holds open is truncated again. A file
that is read must hold the same at each call. (Audit hooks would report more, but stay for ever and slow ``id()``.)
"""

from __future__ import annotations

import _io
import builtins
import functools
import hashlib
import io
import linecache
import os
import sqlite3
import stat
import sys
import sysconfig
import tokenize
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from clew.capture.patches import Patches
from clew.capture.python import imported_names
from clew.capture.python.callers import asking_frame, is_importing, is_of_program, is_of_python
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import Listener, asked_listener, current, own_listener
from clew.capture.state.containers import ACTING
from clew.errors import CaptureError
from clew.ir.effects import pure
from clew.ir.source import is_hidden

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
}
ACTING.update(getattr(os, name) for name in _ACTS if hasattr(os, name))
ACTING.update((builtins.open, os.open, sys.setrecursionlimit))
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_WRITTEN = "a file being written"
_NOWHERE = (os.devnull, os.devnull.encode())
_PLACES = ("stat", "lstat", "access", "readlink")
_FOLDERS = ("listdir", "scandir")
_KIND_ONLY = frozenset("exists isfile isdir is_file is_dir".split())
"""Functions of Python's library that keep nothing else of what the system tells."""
_MOST_BYTES = 1 << 26
_CODE = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")})
_OTHER_NAMES = {"_builtin_open": builtins.open, "bltn_open": builtins.open}
"""Names under which modules of Python's library keep what it does with files."""
_open, _stat, _lstat, _scandir, _getcwd = io.open, os.stat, os.lstat, os.scandir, os.getcwd
"""As they are outside of captures."""


@pure
def file_contents(path: str) -> str | None:
    """A mark of what a file holds; None if there is none that could be read."""
    try:
        with _open(path, "rb") as file:
            return hashlib.sha1(file.read()).hexdigest()
    except OSError:
        return None


@pure
def file_status(path: str, follows: bool = True) -> tuple[int, ...] | None:
    """Kind and rights, size, owner and time of the last change of a file; None if there is none."""
    try:
        found = _stat(path) if follows else _lstat(path)
    except OSError:
        return None
    return found.st_mode, found.st_size, found.st_uid, found.st_gid, found.st_mtime_ns


@pure
def file_kind(path: str) -> int | None:
    """What a path leads to, a file or a folder; None if it leads nowhere."""
    found = file_status(path)
    return None if found is None else stat.S_IFMT(found[0])


@pure
def folder_contents(path: str) -> tuple[Any, ...] | None:
    """The entries of a folder, with what the system tells of each; None if there is no such folder."""
    try:
        with _scandir(path) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return None
    return tuple((name, file_status(os.path.join(path, name))) for name in names)


def install(patches: Patches) -> None:
    """Let what is done with files report to the listener."""
    for name in [name for name in _ACTS if hasattr(os, name)]:
        patches.in_dict(vars(os), name, noted(functools.partial(refusing, what=_ACTS[name]), True))
    for home in (builtins, io, _io):
        patches.in_dict(vars(home), "open", noted(_opening, True))
        patches.in_dict(vars(home), "FileIO", _file_class)
    patches.in_dict(vars(os), "open", noted(_opening, True))
    for name, original in _OTHER_NAMES.items():
        imported_names.also_named(name, original)
    for home, name in ((linecache, "getline"), (linecache, "getlines"), (tokenize, "open")):
        patches.in_dict(vars(home), name, noted(_asking_for_lines))
    patches.in_dict(vars(sqlite3), "connect", noted(functools.partial(refusing, what="a data base")))
    for name in _PLACES:
        patches.in_dict(vars(os), name, noted(_asking_for_status))
    for name in _FOLDERS:
        patches.in_dict(vars(os), name, noted(_asking_for_entries))


def refusing(original: Callable[..., Any], what: str) -> Callable[..., Any]:
    """The same function, refused where a program calls it."""

    @functools.wraps(original)
    def act(*args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is not None:
            listener.refuse_act(what, sys._getframe(1))
        return original(*args, **kwargs)

    return act


@functools.cache
def _opening(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that opens a file: refused if the file can be written to, guarded on what it holds otherwise."""

    @functools.wraps(original)
    def open(file: Any, *args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is not None:
            if _is_writing(file, args[0] if args else kwargs.get("mode", kwargs.get("flags", "r"))):
                listener.refuse_act(_WRITTEN, sys._getframe(1))
            elif _is_data(file) and _is_of_program(listener, sys._getframe(1)) and not is_importing():
                _note_contents(listener, _absolute(file))
        return original(file, *args, **kwargs)

    return open


@functools.cache
def _file_class(original: Any) -> Any:
    """The replacement of ``io.FileIO``: opens files like the function, and is the class otherwise."""

    class FileClass(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, original)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return _opening(original)(*args, **kwargs)

    return FileClass("FileIO", (original,), {})


def _is_writing(file: Any, mode: Any) -> bool:
    """Whether an opened file can be written to; what has no name in a folder, a pipe say, counts as none."""
    if isinstance(file, int) or (isinstance(file, (str, bytes, os.PathLike)) and os.fspath(file) in _NOWHERE):
        return False
    return not set("wax+").isdisjoint(mode) if isinstance(mode, str) else bool((mode or 0) & _WRITING)


def _is_data(file: Any) -> bool:
    """Whether a file is named that may hold data: neither code, nor one that is open already."""
    return not isinstance(file, int) and os.fspath(file) not in _NOWHERE and not _absolute(file).startswith(_CODE)


def _absolute(path: Any) -> str:
    """A path from the root on; that of the working folder is asked for past its replacement."""
    given = os.fsdecode(path)
    return os.path.normpath(given if os.path.isabs(given) else os.path.join(_getcwd(), given))


def _is_of_program(listener: Listener, frame: FrameType | None) -> bool:
    """Whether a file is read for the program: by its own code, or by a framework that it has called for that."""
    found = asking_frame(frame, listener.through)
    while found is not None and is_hidden(found.f_code):
        found = asking_frame(found.f_back, listener.through)
    return is_of_program(found)


def _note_contents(listener: Listener, path: str) -> None:
    """Guard what a file holds; of what is no plain file, or too large, nobody can tell whether it is the same."""
    status = file_status(path)
    is_plain = status is None or (stat.S_ISREG(status[0]) and not path.startswith(("/proc/", "/sys/")))
    if not is_plain or (status is not None and status[1] > _MOST_BYTES):
        raise listener.refusal(f"reading {path}", "it may give something else at another call")
    listener.note(file_contents, (path,), f"the file {path} holds what it held")


def _asking_for_status(original: Callable[..., Any]) -> Callable[..., Any]:
    """A question of the system about one file."""

    @functools.wraps(original)
    def ask(path: Any, *args: Any, **kwargs: Any) -> Any:
        listener = None if isinstance(path, int) else asked_listener()
        if listener is not None and not is_importing():
            if kwargs.get("dir_fd") is not None:
                raise listener.refusal(f"os.{original.__name__} of a file in a folder that is open")
            place = _absolute(path)
            follows = original.__name__ not in ("lstat", "readlink") and kwargs.get("follow_symlinks", True)
            if follows and _only_asks_for_kind(sys._getframe(1)):
                listener.note(file_kind, (place,), f"{place} is there, or not, as it was")
            else:
                listener.note(file_status, (place, bool(follows)), f"the file {place} is unchanged")
        return original(path, *args, **kwargs)

    return ask


def _only_asks_for_kind(frame: FrameType | None) -> bool:
    """Whether Python's library asks only whether a path leads to a file, or a folder."""
    while frame is not None and is_of_python(frame.f_code):
        if frame.f_code.co_name in _KIND_ONLY:
            return True
        frame = frame.f_back
    return False


def _asking_for_lines(original: Callable[..., Any]) -> Callable[..., Any]:
    """Lines of a file, by means that Python reads code with: what else reads code by them is none of the program's."""

    @functools.wraps(original)
    def ask(filename: Any, *args: Any, **kwargs: Any) -> Any:
        listener = own_listener()
        if listener is not None:
            place = _absolute(filename)
            listener.note(file_contents, (place,), f"the file {place} holds what it held")
        return original(filename, *args, **kwargs)

    return ask


def _asking_for_entries(original: Callable[..., Any]) -> Callable[..., Any]:
    """A question of the system about all files of a folder."""

    @functools.wraps(original)
    def ask(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        listener = None if isinstance(path, int) else asked_listener()
        if listener is not None and not is_importing():
            place = _absolute("." if path is None else path)
            listener.note(folder_contents, (place,), f"the folder {place} holds what it held")
        return original(path, *args, **kwargs)

    return ask


class OpenFiles:
    """The files that a program holds, as they were before it ran."""

    def __init__(self, held: Iterable[Any]) -> None:
        files = [one for one in held if isinstance(one, io.IOBase) and one not in (sys.stdout, sys.stderr)]
        self._files = [(file, file.tell()) for file in files if not file.closed and file.writable() and file.seekable()]

    def check(self) -> None:
        """Raise if one was written to."""
        if any(not file.closed and file.tell() != end for file, end in self._files):
            raise CaptureError(
                "the program writes to a file that it holds",
                why="no call of the graph would do it again",
                fixes=('keep the function that writes as one call: clew.wrap("its_name") at module level',),
            )

    def put_back(self) -> None:
        """Take away what was written."""
        for file, end in self._files:
            if not file.closed and file.tell() != end:
                file.seek(end)
                file.truncate()


def refuse_held(functions: Iterable[Any], line: Callable[[], str]) -> None:
    """Raise for a function that acts on the outside, or asks it, and is held where it cannot be replaced."""
    found = next(iter(functions), None)
    if found is not None:
        does = "acts on the world outside" if found in ACTING else "gives another value at each call"
        raise CaptureError(
            f"the program holds {found.__qualname__}, which {does}, in a container or an attribute",
            where=line(),
            why="the capture could neither record nor refuse a call of it",
            fixes=(f"call {found.__qualname__} by its name",),
        )
