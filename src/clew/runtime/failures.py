"""When generated code fails, the error gets a note that leads to the user's own line.

The traceback shows the generated lines as they are; the note tells which node the failing line is, and where the
program that was captured has it. The error itself stays the user's, unchanged.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from clew.codegen.python import PythonCode
from clew.errors import GuardError
from clew.ir.graph import Graph


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
