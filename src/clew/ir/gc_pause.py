"""A pause of Python's garbage collector, for code that makes very many objects which all stay.

The collector looks at young objects again and again in the hope of finding garbage; while a large graph is built,
copied or written there is none, and the search can take longer than the work. Whatever happens inside, the collector
is afterwards as it was before. Pauses may be nested and overlap in several threads: it starts again after the last.
"""

from __future__ import annotations

import gc
import threading
from types import TracebackType

_lock = threading.Lock()
_pauses = 0
_was_enabled = False


class CollectorPaused:
    """``with CollectorPaused():`` lets the garbage collector rest; it starts again only if it was running before."""

    __slots__ = ()

    def __enter__(self) -> None:
        global _pauses, _was_enabled
        with _lock:
            if _pauses == 0:
                _was_enabled = gc.isenabled()
                gc.disable()
            _pauses += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        global _pauses
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()
