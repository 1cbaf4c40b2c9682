"""What stands between the brackets of a subscript.

An index comes in, a slice or a tuple with slices among others; out comes how a colleague would write it.
"""

from __future__ import annotations

from typing import Any

from clew.codegen.scope import Scope


def subscript(index: Any, scope: Scope) -> str:
    """What stands between the brackets: ``:, 0`` rather than ``(slice(None, None, None), 0)``."""
    if isinstance(index, slice):
        ends = (index.start, index.stop, index.step)
        start, stop, step = ("" if end is None else scope.spell(end) for end in ends)
        return f"{start}:{stop}" + (f":{step}" if step else "")
    if type(index) is tuple and index:
        parts = [scope.spell(part) if isinstance(part, tuple) else subscript(part, scope) for part in index]
        inner = ", ".join(parts)
        return f"{inner}," if len(index) == 1 else inner
    return scope.spell(index)
