"""What the user's program is doing with a value right now, read from its source: is it only being shown?

A value that is printed, logged, or put into the message of an error does not steer the program, so turning it into text
for that needs no guard. Any other use of the text might, and gets one.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import operator
import sys
import sysconfig
import warnings
from contextvars import ContextVar
from types import FrameType, FunctionType
from typing import Any

from clew.capture.example.loggers import keepers

_SHOWING = frozenset(
    "print pprint debug info warning warning_once warning_advice error exception critical log warn write".split()
)
_CHECKING = frozenset({"_check", "_check_with", "torch_compilable_check"})
"""Functions that take a condition and, after it, what an error shall say."""


def is_only_shown(frame: FrameType | None, raises: bool = True) -> bool:
    """True when the statement that ``frame`` executes prints, logs, warns or raises, and does nothing else.

    With ``raises=False`` an error counts for something: the graph raises it again.
    """
    if frame is None:
        return False
    statement = _statement_at(frame.f_code.co_filename, *_position(frame))
    if isinstance(statement, ast.Raise):
        return raises
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    conditions = statement.value.args[:1]
    if name in _SHOWING and (_is_kept(statement.value, name) or _is_users(frame, called) or _is_redirected()):
        return False
    return name in _SHOWING or (name in _CHECKING and bool(conditions) and not _makes_text(conditions[0]))


screens: ContextVar[tuple[Any, ...] | None] = ContextVar("clew_screens", default=None)
"""Where printed text and warnings go, as it was when a capture began."""


def look_at_screens() -> None:
    """Note where printed text goes now."""
    screens.set(_ways_out())


def _ways_out() -> tuple[Any, ...]:
    shown = (vars(warnings).get(name) for name in ("showwarning", "_showwarnmsg_impl"))
    return sys.stdout, sys.stderr, *shown


def _is_redirected() -> bool:
    """Whether the program has turned printed text elsewhere, where it may read it."""
    known = screens.get()
    return known is not None and not all(map(operator.is_, _ways_out(), known))


def _is_users(frame: FrameType, called: ast.expr) -> bool:
    """Whether a function that is called like one that shows things is of the user's own making: it may keep them."""
    names = ast.unparse(called).split(".")
    value: Any = frame.f_locals.get(names[0], frame.f_globals.get(names[0]))
    for name in names[1:]:
        if value is not None and keepers(value):  # a logger that tells it to what the user has made
            return True
        value = inspect.getattr_static(value, name, None)
    function = getattr(value, "__func__", value)
    return isinstance(function, FunctionType) and not function.__code__.co_filename.startswith(_LIBRARIES)


_LIBRARIES = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<frozen")


def _is_kept(call: ast.Call, name: str) -> bool:
    """Whether a text goes to a file that the program may read again: any but those that people look at."""
    files = [keyword.value for keyword in call.keywords if keyword.arg in ("file", "stream")]
    if name == "write" and isinstance(call.func, ast.Attribute):
        files.append(call.func.value)
    return any(ast.unparse(file).rpartition(".")[2] not in ("stdout", "stderr", "tqdm") for file in files)


def _makes_text(condition: ast.expr) -> bool:
    """Whether a text may be made for a condition itself."""
    return any(isinstance(part, (ast.JoinedStr, ast.Call)) and _is_text(part) for part in ast.walk(condition))


def _is_text(part: ast.JoinedStr | ast.Call) -> bool:
    if isinstance(part, ast.JoinedStr):
        return True
    called = part.func
    return not isinstance(called, ast.Attribute) or called.attr in ("format", "__str__", "__repr__", "__format__")


def _position(frame: FrameType) -> tuple[int, int]:
    """The line and the column that a frame has come to; a column of -1 where its code does not tell."""
    found = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None, None, None, None))
    return frame.f_lineno, -1 if found[0] != frame.f_lineno or found[2] is None else found[2]


@functools.lru_cache(maxsize=512)
def _statement_at(filename: str, lineno: int, column: int) -> ast.stmt | None:
    """The innermost statement that covers a place in a file; the last one on the line if the column is not known."""
    found: ast.stmt | None = None
    tree = _tree(filename)
    if tree is None:
        return _print_in(linecache.getline(filename, lineno))
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and _covers(node, lineno, column):
            found = node if found is None or node.lineno >= found.lineno else found
    return found


def _covers(node: ast.stmt, lineno: int, column: int) -> bool:
    if column < 0:
        return node.lineno <= lineno <= (node.end_lineno or node.lineno)
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return (node.lineno, node.col_offset) <= (lineno, column) < end


def _print_in(line: str) -> ast.stmt | None:
    """The statement of a line that is nothing but a ``print``, in a file that is no Python as a whole."""
    try:
        statements = ast.parse(line.strip()).body
    except SyntaxError:
        return None
    return statements[0] if len(statements) == 1 and line.strip().startswith("print(") else None


@functools.lru_cache(maxsize=64)
def _tree(filename: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return None
