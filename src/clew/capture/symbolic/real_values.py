"""What a trace must see besides proxies: work on real arrays, switched modes, changed state.

A framework registers how it is watched when it is imported; ``watching`` holds all watches for the time of one trace.
``warn`` tells the user, with the line, of an assumption that the graph will not check.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from clew.capture.patches import Patches
from clew.errors import TraceWarning, compose
from clew.ir.source import SourceLine, user_source

if TYPE_CHECKING:
    from clew.capture.symbolic.tracer import Tracer

Watch = Callable[["Tracer", Patches], AbstractContextManager[Any]]
_watches: dict[str, Watch] = {}


def register_watch(package: str, watch: Watch) -> None:
    """``watch(tracer, patches)`` gives the context manager that sees what ``package`` does during a trace."""
    _watches[package] = watch


@contextmanager
def watching(tracer: Tracer, patches: Patches) -> Iterator[None]:
    """Let all frameworks that are awake be watched."""
    with ExitStack() as stack:
        for watch in list(_watches.values()):
            stack.enter_context(watch(tracer, patches))
        yield


def warn(what: str, why: str, *fixes: str, place: SourceLine | None = None) -> None:
    """Tell the user of something that the graph holds as it was while tracing."""
    source = user_source() if place is None else place
    text = compose(what, "" if source is None else source.describe(), why, fixes)
    filename, line = (source.filename, source.lineno) if source is not None else ("<unknown>", 1)
    warnings.warn_explicit(text, TraceWarning, filename, line)
