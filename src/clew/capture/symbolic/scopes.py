"""Where in the program a node is made: the module being called, and the Python stack.

``Scope`` holds the path and class of the innermost module; ``stack_trace`` formats the user's frames of this moment.
"""

from __future__ import annotations

import sys
from typing import Any

from clew.ir.source import is_hidden, source_of_frame


class Scope:
    """The path from the root, and the class, of the module whose forward is running."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Makes ``current_scope`` the scope; leaving it puts the former one back."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope = scope
        self._before = (scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: object) -> None:
        self._scope.module_path, self._scope.module_type = self._before


def stack_trace() -> str:
    """The user's frames from the traced function inwards, innermost last."""
    frame = sys._getframe(1)
    entries: list[str] = []
    pending: list[str] = []
    while frame is not None:
        if not is_hidden(frame.f_code):
            pending.append(source_of_frame(frame).as_stack_trace())
        elif frame.f_code.co_name == "trace" and frame.f_globals.get("__name__", "").startswith("clew.capture"):
            entries = list(pending)
        frame = frame.f_back  # type: ignore[assignment]
    return "\n".join(reversed(entries or pending[:1]))
