"""Finds what the house style forbids in one file.

In comes a file's name and its text; out come sentences "file:line what", empty when all is well. The limits are the
hard ones: most code should stay well under them.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

MOST_LINES_IN_A_FILE = 850
MOST_LINES_IN_A_FUNCTION = 60

# Spelled in halves, so that this file does not report itself.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" "DO", "FIX" "ME", "XX" "X", "HA" "CK"]) + r")\b")
MACHINE_FOLDERS = ("home", "root", "Users", "work", "opt", "mnt", "farm")
# A folder at the very root of a disk: nothing that could be the rest of a longer path or an address stands before it.
MACHINE_PATH = re.compile(r"(?<![\w./~*}\])>$-])/(" + "|".join(MACHINE_FOLDERS) + r")/[\w.]")

BROAD = {"Exception", "BaseException"}


def too_long(name: str, source: str) -> list[str]:
    """The file, when it is too long, and each function in it that is."""
    found = []
    lines = len(source.splitlines())
    if lines > MOST_LINES_IN_A_FILE:
        found.append(f"{name}:{lines} the file has {lines} lines, more than {MOST_LINES_IN_A_FILE}")
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size > MOST_LINES_IN_A_FUNCTION:
                found.append(f"{name}:{node.lineno} {node.name} has {size} lines, more than {MOST_LINES_IN_A_FUNCTION}")
    return found


def without_docstring(name: str, source: str) -> list[str]:
    """The module, when it does not say what it is for."""
    return [] if ast.get_docstring(ast.parse(source, name)) else [f"{name}:1 the module has no docstring"]


def unfinished_marks(name: str, source: str) -> list[str]:
    """Comments and docstrings that put work off."""
    found = [(line, text.strip()) for line, text in _prose(name, source) if UNFINISHED.search(text)]
    return [f"{name}:{line} puts work off: {text}" for line, text in found]


def _prose(name: str, source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source, name)):
        text = ast.get_docstring(node, clean=False) if isinstance(node, documented) else None
        if text is not None:
            for offset, line in enumerate(text.splitlines()):
                yield node.body[0].lineno + offset, line


def swallowed_errors(name: str, source: str) -> list[str]:
    """Handlers of every error that do nothing about it."""
    found = []
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and all(map(_does_nothing, node.body)):
            found.append(f"{name}:{node.lineno} swallows every error")
        if isinstance(node, ast.Call) and _called(node) == "suppress" and any(map(_is_broad, node.args)):
            found.append(f"{name}:{node.lineno} swallows every error")
    return found


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_broad(kind: ast.expr | None) -> bool:
    if isinstance(kind, ast.Tuple):
        return any(map(_is_broad, kind.elts))
    return kind is None or getattr(kind, "id", getattr(kind, "attr", "")) in BROAD


def _does_nothing(statement: ast.stmt) -> bool:
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, (ast.Pass, ast.Continue))


def machine_paths(name: str, text: str) -> list[str]:
    """Lines of any text that name a folder of one particular machine."""
    found = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if MACHINE_PATH.search(line)]
    return [f"{name}:{number} names a path of a machine: {line.strip()}" for number, line in found]
