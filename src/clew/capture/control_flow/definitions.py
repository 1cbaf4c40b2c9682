"""The definition in the source that a code object was made of, and new code for it.

In comes a code object; out comes its syntax tree, if the file still holds what the code was compiled from, or another
code compiled in the same surroundings: the same free variables, and a class of the same name.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from types import CodeType
from typing import Any

from clew.capture.bytecode.call_sites import original_of
from clew.capture.control_flow.list_escape import FileFunctions

OWN = "clew_"
"""How the names of functions begin that stand for bodies."""


def bare(given: ast.arguments | None) -> ast.arguments:
    """Parameters by name alone: their defaults and annotations are the function's, not its code's."""
    if given is None:
        return ast.arguments([], [], None, [], [], None, [])
    plain = [[ast.arg(one.arg) for one in part] for part in (given.posonlyargs, given.args, given.kwonlyargs)]
    starred = [None if one is None else ast.arg(one.arg) for one in (given.vararg, given.kwarg)]
    return ast.arguments(plain[0], plain[1], starred[0], plain[2], [None] * len(plain[2]), starred[1], [])


def tree_of(filename: str) -> ast.Module | None:
    """The source of a file; None if it is no Python as a whole."""
    return _parsed("".join(linecache.getlines(filename)))


@functools.lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=64)
def functions_of(tree: ast.Module | None) -> FileFunctions:
    """The functions that a source defines."""
    return FileFunctions(tree)


def _block(filename: str, line: int) -> ast.Module | None:
    """The source of the one function that begins at a line: of a document, say, that holds pieces of Python."""
    lines = linecache.getlines(filename)[line - 1 :]
    try:
        block = ast.parse(textwrap.dedent("".join(inspect.getblock(lines)))) if lines else None
    except (SyntaxError, ValueError):
        return None
    return block and ast.increment_lineno(block, line - 1)


@functools.lru_cache(maxsize=256)
def _definitions(tree: ast.Module | None) -> dict[tuple[int, str], list[Any]]:
    """The functions in a source by first line and name."""
    if tree is None:
        return {}
    found: dict[tuple[int, str], list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            line = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found.setdefault((line, node.name), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
    return found


def definition_of(code: CodeType) -> Any:
    """The definition in the source that a code was made of; None if there is none."""
    linecache.checkcache(code.co_filename)
    tree = tree_of(code.co_filename)
    if tree is None:
        tree = _block(code.co_filename, code.co_firstlineno)
    found = _definitions(tree).get((code.co_firstlineno, code.co_name), [])
    fitting = [node for node in found if _is_source_of(node, code)]
    return fitting[0] if fitting else None


def _is_source_of(definition: Any, code: CodeType) -> bool:
    """Whether this is what the code was made of, and not what somebody has written to the file since."""
    body = definition.body
    if isinstance(definition, ast.Lambda):
        body = [ast.copy_location(ast.Return(body), definition)]
    compiled = compiled_body(definition, body, code)
    return compiled is not None and is_made_of(original_of(code), compiled)


def compiled_body(definition: Any, body: list[ast.stmt], code: CodeType) -> CodeType | None:
    """The new body compiled in the same surroundings: with the same free variables, in a class of the same name."""
    name = f"{OWN}lambda" if isinstance(definition, ast.Lambda) else definition.name
    inner: ast.stmt = ast.FunctionDef(name, bare(definition.args), body, [], None)
    ast.copy_location(inner, definition)
    inner.lineno = code.co_firstlineno  # that of the first decorator: all lines are counted from there
    path = code.co_qualname.split(".")
    owner = path[-2] if len(path) > 1 and path[-2] != "<locals>" else ""
    if owner:
        inner = ast.ClassDef(owner, [], [], [inner], [])
    free = [one for one in code.co_freevars if one != "__class__" or not owner]
    assigned: list[ast.stmt] = [ast.Assign([ast.Name(one, ast.Store())], ast.Constant(None)) for one in free]
    outer = ast.FunctionDef(f"{OWN}surroundings", bare(None), [*assigned, inner], [], None)
    try:
        module = ast.fix_missing_locations(ast.Module([outer], []))
        compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    found = next(_codes_inside(compiled, name))
    return found.replace(co_name=code.co_name, co_qualname=code.co_qualname, co_firstlineno=code.co_firstlineno)


def _codes_inside(code: CodeType, name: str) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_name == name:
                yield part
            yield from _codes_inside(part, name)


# ---- whether code was compiled from a piece of source ----------------------------------------------------------------

_NAMES = ("co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount")
_SILENT = frozenset({"CACHE", "PUSH_NULL", "NOP", "EXTENDED_ARG", "PRECALL"})
_ALIKE = {"LOAD_METHOD": "LOAD_ATTR", "LOAD_SUPER_METHOD": "LOAD_SUPER_ATTR"}
_JUMPS = frozenset({*dis.hasjrel, *dis.hasjabs})


def is_made_of(loaded: CodeType, compiled: CodeType) -> bool:
    """Whether the loaded code does what the compiled one does."""
    if any(getattr(loaded, name) != getattr(compiled, name) for name in _NAMES):
        return False
    return _same(loaded.co_consts, compiled.co_consts) and _steps(loaded) == _steps(compiled)


@functools.lru_cache(maxsize=256)
def _steps(code: CodeType) -> tuple[tuple[str, Any], ...]:
    """The instructions by name, each with what it names or the place of its constant; jumps without their length."""
    return tuple(
        (_ALIKE.get(step.opname, step.opname), None if step.opcode in _JUMPS else _operand(step))
        for step in dis.get_instructions(code)
        if step.opname not in _SILENT
    )


def _operand(step: dis.Instruction) -> Any:
    return step.argval if isinstance(step.argval, str) else step.arg


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return one.co_name == other.co_name and is_made_of(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and (one == other if isinstance(one, frozenset) else repr(one) == repr(other))
