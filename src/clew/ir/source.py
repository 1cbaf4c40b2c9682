"""Where a node comes from: the user's file, line, function and source text.

A source line is found while tracing by walking out of Clew's own and the framework's frames, and is shared between
all nodes of one place, so that keeping it on every node is cheap. The text is read only when somebody looks.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType
from typing import Any

PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = "-packages" + os.sep


class SourceLine:
    """One place in a user's program: ``filename``, ``lineno``, ``function``; ``text`` reads the line itself."""

    __slots__ = ("filename", "function", "lineno", "_variable")

    def __init__(self, filename: str, lineno: int, function: str = "") -> None:
        self.filename = filename
        self.lineno = lineno
        self.function = function
        self._variable: str | None = None  # what the result of this place is assigned to, once a capture has looked

    @property
    def place(self) -> tuple[str, int]:
        """The file and the line."""
        return self.filename, self.lineno

    @property
    def text(self) -> str:
        """The source text of the line, stripped; empty when the file cannot be read."""
        return linecache.getline(self.filename, self.lineno).strip()

    def describe(self) -> str:
        """``model.py:12, in forward: x = self.linear(x)``, for messages."""
        place = f"{self.filename}:{self.lineno}"
        if self.function:
            place += f", in {self.function}"
        return f"{place}: {self.text}" if self.text else place

    def as_stack_trace(self) -> str:
        """The line in the form in which Python prints one entry of a traceback."""
        entry = f'File "{self.filename}", line {self.lineno}, in {self.function or "<module>"}'
        return f"{entry}\n    {self.text}" if self.text else entry

    def __repr__(self) -> str:
        return f"SourceLine({self.filename}:{self.lineno})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SourceLine):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, int, str]:
        return self.filename, self.lineno, self.function

    def __reduce__(self) -> tuple[type[SourceLine], tuple[str, int, str]]:
        return SourceLine, self._key()


_hidden_folders: list[str] = [PACKAGE_FOLDER, "<frozen "]
_hidden_code: dict[int, bool] = {}
_lines: dict[tuple[int, int], SourceLine] = {}
_kept_code: dict[int, CodeType] = {}
"""All code that is known here by its identity, which therefore stays its own; its hash would be of all it holds."""


_forgotten: list[dict[Any, Any]] = [_hidden_code]


def forgotten_with_folders(known: dict[Any, Any]) -> None:
    """What is known here depends on which folders are hidden: it is forgotten when one more is."""
    _forgotten.append(known)


def hide_folder(folder: str) -> None:
    """Frames of files under ``folder`` are no user's: a framework names its own folder here when it wakes."""
    if folder not in _hidden_folders:
        _hidden_folders.append(folder)
        for known in _forgotten:
            known.clear()


def is_hidden(code: CodeType) -> bool:
    """True for code of Clew and of the frameworks that have woken."""
    known = _hidden_code.get(id(code))  # asked for several frames at each recorded call
    if known is None:
        known = _hidden_code[id(code)] = code.co_filename.startswith(tuple(_hidden_folders))
        _kept_code[id(code)] = code
    return known


def is_of_framework(code: CodeType) -> bool:
    """True for code of the frameworks that have woken."""
    return is_hidden(code) and not code.co_filename.startswith(PACKAGE_FOLDER)


def is_hidden_file(filename: str) -> bool:
    """True for a file of Clew or of a framework that has woken."""
    return filename.startswith(tuple(_hidden_folders))


def is_installed(code: CodeType) -> bool:
    """Whether code is of an installed package, not the user's own."""
    return _INSTALLED in code.co_filename


def is_installed_file(filename: str) -> bool:
    """Whether a file is of an installed package: it lies in ``site-packages`` or ``dist-packages``."""
    return _INSTALLED in filename


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame on the stack that belongs to the user, or None."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        hidden = _hidden_code.get(id(code))
        if hidden is None:
            hidden = is_hidden(code)
        if not hidden:
            return frame
        frame = frame.f_back
    return None


def source_of_frame(frame: FrameType) -> SourceLine:
    """The shared source line of the place where ``frame`` stands now."""
    code = frame.f_code
    key = (id(code), frame.f_lasti)
    line = _lines.get(key)
    if line is None:
        _kept_code[id(code)] = code
        line = _lines[key] = SourceLine(code.co_filename, frame.f_lineno, code.co_name)
    return line


def user_source(depth: int = 2) -> SourceLine | None:
    """The source line of the innermost frame of the user, or None outside any."""
    frame = user_frame(depth)
    return None if frame is None else source_of_frame(frame)
