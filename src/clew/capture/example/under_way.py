"""Which capture is under way in this context: what everybody may ask without loading what captures need."""

from __future__ import annotations

import contextvars
from typing import Any

current: contextvars.ContextVar[Any] = contextvars.ContextVar("clew_state", default=None)
"""The state that the capture under way keeps; None if there is none."""
