"""Generated source becomes a function, whose tracebacks show its lines and lead to the user's own.

The text is put into ``linecache`` under a name of its own and taken out again when the function is gone. When such code
fails, ``note_origin`` adds a note to the error: which line failed, and where the captured program has it. The error
itself stays the user's, unchanged.
"""

from __future__ import annotations

import itertools
import linecache
import sys
import weakref
from types import FunctionType, TracebackType
from typing import Any

from clew.capture.symbolic.wrap import is_wrapped, register, unregister
from clew.codegen.python import PythonCode
from clew.config import debug_level
from clew.errors import CodegenError, GuardError
from clew.ir.graph import Graph
from clew.ir.source import SourceLine

_numbers = itertools.count()


def compile_function(code: PythonCode, label: str, source: SourceLine | None = None) -> FunctionType:
    """The function that ``code`` defines; ``source`` is where the traced program stands."""
    origin = "" if source is None else f" from {source.filename}:{source.lineno} in {source.function}"
    filename = f"<clew {label} {next(_numbers)}{origin}>"
    # No __name__ among the globals: tools such as torch.compile would look for a module of that name on disk.
    names: dict[str, Any] = dict(code.globals)
    level = debug_level()
    if level >= 1:
        print(f"# {filename}" if level == 1 else f"# {filename}\n{code.src}", file=sys.stderr)
    try:
        compiled = compile(code.src, filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise CodegenError(
            f"the code of {label} is no valid Python: {error}",
            where=f"line {error.lineno}: {error.text}",
            why="an overridden CodeGen or a code transformer wrote it, or a graph that lint would refuse",
            fixes=["look at graph.python_code('self').src and run graph.lint()"],
        ) from error
    exec(compiled, names)
    function: FunctionType = names.pop(code.name)
    function.__module__ = "clew.generated"
    linecache.cache[filename] = (len(code.src), None, code.src.splitlines(keepends=True), filename)
    weakref.finalize(function, linecache.cache.pop, filename, None)
    for name, value in code.globals.items():
        if callable(value) and is_wrapped(value):
            register(function.__globals__, name)
            weakref.finalize(function, unregister, id(function.__globals__), name)
    return function


def note_origin(error: Exception, name: str, graph: Graph, code: PythonCode | None, function: Any) -> None:
    """Add to ``error`` the place in the user's program from which the failing line of ``function`` comes.

    ``code`` is what the function was made of; None, when the graph has changed since, means that nothing is known.
    """
    filename = getattr(getattr(function, "__code__", None), "co_filename", None)
    line = _line_in(error.__traceback__, filename)
    if code is None or line is None or isinstance(error, GuardError):  # which says all of that itself
        return
    text = code.src.split("\n")[line - 1].strip()
    note = f"In the generated {code.name} of {name}, line {line}: {text}"
    place = (code._lineno_map or {}).get(line - code._prologue_start)
    node = None if place is None else next((n for i, n in enumerate(graph.nodes) if i == place), None)
    source = code._origins.get(line - code._prologue_start) or (None if node is None else node.source)
    if source is not None:
        note += f"\n  which comes from {source.describe()}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _line_in(trace: TracebackType | None, filename: str | None) -> int | None:
    """The line of the innermost frame of a file in a traceback."""
    found = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
