"""The current capture: what everybody may ask without importing what captures need.

A capture patches what all threads see, so there is one at a time. A callable that captures another one runs the
original while a capture is under way in its context.
"""

from __future__ import annotations

import contextvars
import threading
from typing import Any

current: contextvars.ContextVar[Any] = contextvars.ContextVar("clew_state", default=None)
"""The state that the current capture keeps; None if there is none."""

LOCK = threading.RLock()
"""Held by the thread that captures."""


class StandsFor:
    """Something that is called in the place of ``fn``."""

    __slots__ = ("fn",)
    fn: Any


def original_of(value: Any) -> Any:
    """What a value stands for, which is itself for most."""
    while isinstance(value, StandsFor):
        value = value.fn
    return value
