"""Every option and environment variable of Clew, in one place.

``CLEW_DEBUG`` is the one dial for looking inside: 0 is silent, 1 tells what was compiled, 2 prints generated code.
"""

from __future__ import annotations

import os


def debug_level() -> int:
    """The value of ``CLEW_DEBUG``, 0 if it is unset or no number."""
    value = os.environ.get("CLEW_DEBUG", "0")
    return int(value) if value.isdigit() else 0
