"""Whose code asks Python for something: the program's, a package's, a framework's or Python's own.

Python's library often stands between (``pathlib`` opens files, ``uuid`` asks for entropy): it acts for its caller, and
so do the packages that a framework names.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from types import CodeType, FrameType

from clew.ir.source import PACKAGE_FOLDER, is_hidden, is_installed, is_installed_file, source_of_frame

_STANDARD = sysconfig.get_path("stdlib") + os.sep
_READING_CODE = frozenset({"linecache", "tokenize", "inspect", "importlib.metadata"})


def is_of_python(code: CodeType) -> bool:
    """Whether code is of Python's own library."""
    return is_file_of_python(code.co_filename)


def is_file_of_python(file: str) -> bool:
    """Whether a file of code is of Python's own library."""
    return file.startswith("<frozen") or (file.startswith(_STANDARD) and not is_installed_file(file))


def is_of_program(frame: FrameType | None) -> bool:
    """Whether the code that runs in a frame is a program's own: of no framework and of no package."""
    if frame is None or is_hidden(frame.f_code) or is_of_python(frame.f_code):
        return False
    return not is_installed(frame.f_code)


def asking_frame(frame: FrameType | None, through: tuple[str, ...] = ()) -> FrameType | None:
    """The innermost frame from this one on that is neither Python's nor Clew's, nor lies in the folders ``through``.

    None if Python reads code there, as it does to tell a line of source.
    """
    folders = (PACKAGE_FOLDER, *through)
    while frame is not None and (is_of_python(frame.f_code) or frame.f_code.co_filename.startswith(folders)):
        if frame.f_globals.get("__name__") in _READING_CODE:
            return None
        frame = frame.f_back
    return frame


def line_of_program() -> str:
    """The line of the program that runs now, whatever library it has called; empty if there is none."""
    found = frame_of_program()
    return "" if found is None else source_of_frame(found).describe()


def frame_of_program(frame: FrameType | None = None) -> FrameType | None:
    """The innermost frame of the program, from this one on or that of now, or, if there is none, the innermost one that
    is no framework's."""
    frame = frame or sys._getframe(1)
    last: FrameType | None = None
    while frame is not None and not is_of_program(frame):
        if last is None and not is_hidden(frame.f_code):
            last = frame
        frame = frame.f_back
    return frame or last


def is_importing() -> bool:
    """Whether a Python module is being imported: what it makes is made once."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib._bootstrap"):  # or _bootstrap_external
            return True
        frame = frame.f_back
    return False
