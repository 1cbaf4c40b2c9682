"""Whether the program only shows a value: prints or logs it, or puts it into the message of an error.

The frame that turns a value into text comes in; its source statement decides. A text that is only shown does not steer
the program and needs no guard; any other use of it gets one, and so does a log that a user's own handler keeps.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import re
import sysconfig
from collections.abc import Hashable, Iterator
from types import FrameType, FunctionType
from typing import Any

from clew.capture.bytecode.instructions import variables_of
from clew.capture.python.callers import is_of_program
from clew.capture.python.loggers import own_handlers
from clew.capture.python.screens import is_redirected
from clew.capture.state.containers import look_up
from clew.ir.source import PACKAGE_FOLDER

_SHOWING = frozenset(
    "print pprint debug info warning warning_once warning_advice error exception critical log warn write".split()
)
CHECKING: set[str] = set()
"""Functions that take a condition and, after it, what an error shall say; frameworks add theirs."""


def is_only_shown(frame: FrameType | None, raises: bool = True) -> bool:
    """True when the statement that ``frame`` executes prints, logs, warns or raises, and does nothing else.

    With ``raises=False`` an error counts for something: the graph raises it again.
    """
    if frame is None:
        return False
    filename, place = frame.f_code.co_filename, _position(frame)
    statement = _statement_at(filename, *place)
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        uses = _uses_of_message(filename, *place)
        return bool(uses) and all(_shows(frame, use, raises) for use in uses)
    return _shows(frame, statement, raises)


def _shows(frame: FrameType, statement: ast.stmt | None, raises: bool) -> bool:
    """Whether a statement of the function that runs in ``frame`` prints, logs, warns or raises."""
    if isinstance(statement, ast.Raise):
        return raises
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    called = statement.value.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    conditions = statement.value.args[:1]
    if is_of_program(frame) and _is_recorded(frame, statement.value):
        return False  # the graph tells it
    if name in _SHOWING and (_is_kept(statement.value, name) or _is_users(frame, called) or is_redirected()):
        return False
    return name in _SHOWING or (name in CHECKING and bool(conditions) and not _makes_text(conditions[0]))


def is_printed(frame: FrameType) -> bool:
    """Whether a text that is made by the statement which ``frame`` executes is printed, logged or warned of, goes
    nowhere else, and nothing looks into it on its way there."""
    filename, place = frame.f_code.co_filename, _position(frame)
    statement = _statement_at(filename, *place)
    uses: tuple[ast.stmt | None, ...] = (statement,)
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        uses = _uses_of_message(filename, *place)
        is_longer = isinstance(statement, ast.Assign) or isinstance(statement.op, ast.Add)
        if not is_longer or not _is_piece(statement.value):
            return False
    return bool(uses) and all(_is_message(frame, use) for use in uses)


def _is_message(frame: FrameType, statement: ast.stmt | None) -> bool:
    """Whether a statement is a call that tells people something, and puts texts together without a look at them."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not _is_recorded(frame, call):
        return False
    options = {one.arg: one.value for one in call.keywords}
    return (
        options.keys() <= _OPTIONS and not any(map(_handles_text, options.values())) and all(map(_is_piece, call.args))
    )


_OPTIONS = frozenset({"sep", "end", "flush", "file", "category", "stacklevel", "extra"})
RECORDED: set[Any] = set()
"""Functions whose calls by the program's own code are calls of the graph that tell people something."""


def _is_recorded(frame: FrameType, call: ast.Call) -> bool:
    """Whether a call is one that the graph makes again, of a function that only tells people something."""
    files = [one.value for one in call.keywords if one.arg == "file"]
    if any(ast.unparse(file) not in ("sys.stdout", "sys.stderr") for file in files):
        return False
    if isinstance(call.func, ast.Name) and call.func.id == "print":
        return _called(frame, call.func) in (None, print)
    found = _called(frame, call.func)
    function = getattr(found, "__func__", found)
    return isinstance(function, Hashable) and not RECORDED.isdisjoint(
        (function, getattr(function, "__wrapped__", None))
    )


def _is_piece(value: ast.expr) -> bool:
    """Whether texts inside of an expression become parts of its text as they are."""
    if not _handles_text(value):
        return True
    if isinstance(value, ast.JoinedStr):
        return all(map(_is_plain_field, value.values))
    if isinstance(value, ast.BinOp):
        is_sum = isinstance(value.op, ast.Add) and _is_piece(value.left)
        return _is_piece(value.right) if is_sum else _is_filled(value.left, "%") and not _handles_text(value.right)
    if isinstance(value, (ast.List, ast.Tuple)):
        return all(map(_is_piece, value.elts))
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        around = [part for one in value.generators for part in (one.iter, *one.ifs)]
        return _is_piece(value.elt) and not any(map(_handles_text, around))
    if isinstance(value, ast.Starred):
        return _is_piece(value.value)
    return isinstance(value, ast.Call) and _is_text_call(value)


def _is_plain_field(part: ast.expr) -> bool:
    """Whether a part of an f-string is text, or a value with a width and precision that are written out."""
    if not isinstance(part, ast.FormattedValue):
        return isinstance(part, ast.Constant)
    if part.conversion >= 0 and part.format_spec is not None:  # the text of the value is widened
        return False
    spec = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
    return not _handles_text(part.value) and all(isinstance(one, ast.Constant) for one in spec)


def _is_text_call(call: ast.Call) -> bool:
    """Whether a call makes one text of values: ``str(x)``, ``"{}".format(x)``, ``", ".join(map(str, xs))``."""
    if call.keywords or isinstance(call.func, ast.Attribute):
        given = [*call.args, *(one.value for one in call.keywords)]
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name == "join" and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant):
            return all(map(_is_piece, given))
        return name == "format" and _is_filled(call.func.value, "{") and not any(map(_handles_text, given))  # type: ignore[attr-defined]
    name, given = call.func.id if isinstance(call.func, ast.Name) else "", list(call.args)
    if name == "map" and given and isinstance(given[0], ast.Name) and given[0].id in _TEXT_MAKERS:
        del given[0]
    elif name not in _TEXT_MAKERS:
        return False
    return not any(map(_handles_text, given))


_TEXT_MAKERS = frozenset({"str", "repr"})
_TEXT_METHODS = frozenset({"format", "join", "__str__", "__repr__", "__format__"})
_WIDE = {"%": re.compile(r"%[^%a-zA-Z]"), "{": re.compile(r"\{[^{}]*\{")}
"""Fields of templates that cut or widen a text that is there, or whose width is a value."""


def _is_filled(template: ast.expr, mark: str) -> bool:
    """Whether an expression is a text whose fields take values as they are."""
    is_text = isinstance(template, ast.Constant) and isinstance(template.value, str)
    return is_text and _WIDE[mark].search(template.value) is None  # type: ignore[attr-defined]


def _handles_text(value: ast.expr) -> bool:
    """Whether an expression makes texts, or does more than compute a value."""
    return any(map(_is_of_text, ast.walk(value)))


def _is_of_text(part: ast.AST) -> bool:
    if isinstance(part, ast.Name):
        return part.id in (*_TEXT_MAKERS, "format", "ascii")
    if isinstance(part, ast.Attribute):
        return part.attr in _TEXT_METHODS
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod):
        return isinstance(part.left, ast.Constant) and isinstance(part.left.value, str)
    return isinstance(part, (ast.JoinedStr, ast.NamedExpr, ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom))


@functools.lru_cache(maxsize=512)
def _uses_of_message(filename: str, lineno: int, column: int) -> tuple[ast.stmt, ...]:
    """The statements that use a text, if the one at this place puts it together and keeps it in a local variable.

    Nothing comes out where the variable may be used elsewhere too.
    """
    statement, tree = _statement_at(filename, lineno, column), _tree(filename)
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    value = getattr(statement, "value", None)
    if tree is None or len(targets) != 1 or not isinstance(targets[0], ast.Name) or not _is_text_only(value):
        return ()
    covering = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and _covers(node, lineno, column)]
    if not covering or any(isinstance(node, (ast.Global, ast.Nonlocal)) for node in ast.walk(covering[-1])):
        return ()
    used = {node.id for node in ast.walk(covering[-1]) if isinstance(node, ast.Name)}
    if not used.isdisjoint(("locals", "vars", "eval", "exec")):
        return ()
    return tuple(_statements_with(covering[-1], targets[0].id))


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _statements_with(function: ast.stmt, name: str) -> Iterator[ast.stmt]:
    """The innermost statements of a function that read a variable."""
    for node in ast.walk(function):
        if isinstance(node, ast.stmt):
            inner = [part for part in ast.iter_child_nodes(node) if not isinstance(part, ast.stmt)]
            names = [use for part in inner for use in ast.walk(part) if isinstance(use, ast.Name) and use.id == name]
            if any(isinstance(use.ctx, ast.Load) for use in names):
                yield node


def _is_text_only(value: ast.AST | None) -> bool:
    """Whether an expression does nothing but put a text together, of texts and of values that are at hand."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return _is_text_only(value.left) and _is_text_only(value.right)
    if isinstance(value, ast.JoinedStr):
        return not any(map(_may_look_up, ast.walk(value)))
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _may_look_up(part: ast.AST) -> bool:
    """Whether a text that is made inside of an expression may decide what its value is."""
    if isinstance(part, ast.Subscript):
        return not isinstance(part.slice, ast.Constant)
    return isinstance(part, (ast.Call, ast.IfExp))


def is_for_errors(frame: FrameType | None) -> bool:
    """Whether the statement that ``frame`` executes is a call that uses the texts it is given only for its errors."""
    statement = None if frame is None else _statement_at(frame.f_code.co_filename, *_position(frame))
    if frame is None or not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    found = _called(frame, call.func)
    function = look_up(found, "__func__", found)
    if not isinstance(function, FunctionType) or any(isinstance(value, ast.Starred) for value in call.args):
        return False
    names = inspect.signature(found).parameters
    given = [*zip(names, call.args, strict=False), *((keyword.arg, keyword.value) for keyword in call.keywords)]
    texts = [name for name, value in given if _makes_text(value)]
    code = function.__code__
    return bool(texts) and _raised_parameters(code.co_filename, code.co_firstlineno, code.co_name).issuperset(texts)


@functools.lru_cache(maxsize=512)
def _raised_parameters(filename: str, lineno: int, name: str) -> frozenset[str | None]:
    """The parameters of a function that it uses only on the way to an error."""
    tree = _tree(filename)
    for node in () if tree is None else ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name and min(_first_lines(node)) == lineno:
            parameters = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            harmless = {id(use) for raising in _raising(node) for use in ast.walk(raising)}
            used = {use.id for use in ast.walk(node) if isinstance(use, ast.Name) and id(use) not in harmless}
            return frozenset(parameter.arg for parameter in parameters if parameter.arg not in used)
    return frozenset()


def _first_lines(function: ast.FunctionDef) -> list[int]:
    return [function.lineno, *(decorator.lineno for decorator in function.decorator_list)]


def _raising(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The statements of a function that stand in a block which ends with an error, and the messages of assertions."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and node.msg is not None:
            yield node.msg
        for suite in (getattr(node, field, None) for field in ("body", "orelse")):
            if isinstance(suite, list) and suite and isinstance(suite[-1], ast.Raise):
                yield from suite


def _is_users(frame: FrameType, called: ast.expr) -> bool:
    """Whether a function that is called like one that shows things is of the user's own making: it may keep them."""
    value = _called(frame, called)
    if value is _KEEPING:
        return True
    function = getattr(value, "__func__", value)
    if isinstance(function, FunctionType) and function.__code__.co_filename.startswith(PACKAGE_FOLDER):
        function = getattr(function, "__wrapped__", None)  # what this capture has put in its place
    return isinstance(function, FunctionType) and not function.__code__.co_filename.startswith(_LIBRARIES)


_KEEPING = object()


def _called(frame: FrameType, called: ast.expr) -> Any:
    """What an expression names in a frame, as far as names and attributes lead; a mark for loggers that keep texts."""
    names = ast.unparse(called).split(".")
    value: Any = variables_of(frame).get(names[0], frame.f_globals.get(names[0]))
    for name in names[1:]:
        if value is not None and own_handlers(value):  # a logger that tells it to what the user has made
            return _KEEPING
        value = inspect.getattr_static(value, name, None)
    return value


_LIBRARIES = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<frozen")


def _is_kept(call: ast.Call, name: str) -> bool:
    """Whether a text goes to a file that the program may read again: any but those that people look at."""
    files = [keyword.value for keyword in call.keywords if keyword.arg in ("file", "stream")]
    if name == "write" and isinstance(call.func, ast.Attribute):
        files.append(call.func.value)
    return any(ast.unparse(file).rpartition(".")[2] not in ("stdout", "stderr", "tqdm") for file in files)


def _makes_text(value: ast.expr) -> bool:
    """Whether a text may be made for a value, by formatting, by a call or by ``%``."""
    return any(map(_is_text, ast.walk(value)))


def _is_text(part: ast.AST) -> bool:
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) and isinstance(part.left, ast.Constant):
        return isinstance(part.left.value, str)
    if not isinstance(part, ast.Call):
        return isinstance(part, ast.JoinedStr)
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
