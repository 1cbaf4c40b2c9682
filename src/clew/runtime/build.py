"""Generated source becomes a function, whose tracebacks show its lines.

The text is put into ``linecache`` under a name of its own and taken out again when the function is gone.
"""

from __future__ import annotations

import itertools
import linecache
import sys
import weakref
from types import FunctionType
from typing import Any

from clew.capture.symbolic.wrap import is_wrapped, register, unregister
from clew.codegen.python import PythonCode
from clew.config import debug_level
from clew.errors import CodegenError
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
