"""A function's loops and branches become calls of a runtime, each body a function of its own inside.

In comes a code object of the user's; out comes another that does the same, line by line, but hands each loop, branch
and condition to the runtime, as ``bodies_written`` says. Nothing is changed here, and a function whose source is not at
hand, or that does what no inner function can do, is left alone.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from types import CodeType
from typing import Any

from clew.capture.control.bodies_written import OWN, RUNTIME, BodyWriter, bare, copy_of
from clew.capture.control.origins import is_made_of
from clew.capture.control.sight import Functions, Sight, opening_lines
from clew.capture.example.call_sites import original_of

_BLIND = frozenset({"locals", "vars", "exec", "eval", "dir", "_getframe", "currentframe"})
"""Functions that see which function they are called in."""
_GENERATORS = 0x20 | 0x80 | 0x200  # flags of code objects that can be suspended


def rewritten(code: CodeType, runtime: Any) -> CodeType | None:
    """The code with its control flow handed to ``runtime``; None if that cannot be done, or there is none."""
    definition = None if code.co_flags & _GENERATORS else _definition_of(code)
    if definition is None or not _BLIND.isdisjoint(code.co_names):
        return None
    writer = BodyWriter(definition, _functions(_tree(code.co_filename)))
    body = writer.body_of(definition)
    compiled = _compiled(definition, body, code) if writer.count else None
    if compiled is None or compiled.co_freevars != code.co_freevars:
        return None
    return _with_runtime(compiled, runtime)


def is_one_expression(code: CodeType) -> bool:
    """Whether a function does nothing but return the value of an expression."""
    definition = None if code.co_flags & _GENERATORS else _definition_of(code)
    body = getattr(definition, "body", [])
    return isinstance(body, list) and len(body) == 1 and isinstance(body[0], ast.Return)


@functools.lru_cache(maxsize=1024)
def lines_of_loops(code: CodeType) -> frozenset[int]:
    """The lines of a function on which a loop begins, or a list that may have any length."""
    definition = None if code.co_flags & _GENERATORS else _definition_of(code)
    body = [] if definition is None else [definition.body] if isinstance(definition, ast.Lambda) else definition.body
    body = copy_of(body)
    return frozenset(opening_lines(body, Sight(body, _functions(_tree(code.co_filename)))))


def replaced_inside(code: CodeType, changes: dict[CodeType, CodeType]) -> CodeType:
    """The code with others in the place of those of functions that are made inside of it."""
    if code in changes:
        return changes[code]
    constants = tuple([replaced_inside(one, changes) if isinstance(one, CodeType) else one for one in code.co_consts])
    same = all(new is old for new, old in zip(constants, code.co_consts, strict=True))
    return code if same else code.replace(co_consts=constants)


def _with_runtime(code: CodeType, runtime: Any, around: str = "") -> CodeType:
    """The code with the runtime in it; bodies bear the name of the function that they are a part of."""
    name = around if code.co_name.startswith(OWN) else code.co_name
    constants = [_with_runtime(part, runtime, name) if isinstance(part, CodeType) else part for part in code.co_consts]
    constants = [runtime if isinstance(part, str) and part == RUNTIME else part for part in constants]
    return code.replace(co_consts=tuple(constants), co_name=name)


# ---- finding and compiling -------------------------------------------------------------------------------------------


def _tree(filename: str) -> ast.Module | None:
    """The source of a file; None if it is no Python as a whole."""
    return _parsed("".join(linecache.getlines(filename)))


@functools.lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


@functools.lru_cache(maxsize=64)
def _functions(tree: ast.Module | None) -> Functions:
    """The functions that a source defines."""
    return Functions(tree)


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


def _definition_of(code: CodeType) -> Any:
    """The definition in the source that a code was made of; None if there is none."""
    linecache.checkcache(code.co_filename)
    tree = _tree(code.co_filename)
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
    compiled = _compiled(definition, body, code)
    return compiled is not None and is_made_of(original_of(code), compiled)


def _compiled(definition: Any, body: list[ast.stmt], code: CodeType) -> CodeType | None:
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
