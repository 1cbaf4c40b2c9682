"""A Python module of settings, as programs of the ledger import one; ``reset`` gives all of them their first values."""

from __future__ import annotations

import contextvars
import os
import threading
from typing import Any

VARIABLE = "CLEW_LEDGER_SCALE"
MISSING_VARIABLE = "CLEW_LEDGER_MISSING"

scale = 2.0
calls = 0
table: dict[str, list[float]] = {}
chosen: contextvars.ContextVar[float] = contextvars.ContextVar("chosen", default=2.0)
local = threading.local()


class Options:
    """Settings in an object, and one for all objects of the class."""

    shared = 2.0

    def __init__(self) -> None:
        self.scale = 2.0


options = Options()


def reset() -> None:
    """Let everything be as it was at the start."""
    global scale, calls
    scale, calls = 2.0, 0
    table.clear()
    table.update(gains=[1.0, 2.0])
    options.scale = Options.shared = 2.0
    chosen.set(2.0)
    local.scale = 2.0
    os.environ[VARIABLE] = "1"
    os.environ.pop(MISSING_VARIABLE, None)


def change(**values: Any) -> None:
    """Set variables of this module by name."""
    globals().update(values)
