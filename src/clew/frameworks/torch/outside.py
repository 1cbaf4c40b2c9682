"""What a torch program does to the world outside of Python: files written, the environment changed, processes started.

No node of a graph does it again, and no capture can take it back, so it is refused before it happens. Python reports
such acts to audit hooks; the one here is added at the first capture and does nothing while none is recording.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from clew.frameworks.torch.clocks import is_importing
from clew.frameworks.torch.higher_order import refusal

Current = Callable[[], Any]

_ACTS = {
    "os.putenv": "a change of the environment",
    "os.unsetenv": "a change of the environment",
    "os.remove": "the removal of a file",
    "os.rename": "a file getting another name",
    "os.mkdir": "a folder being made",
    "os.rmdir": "the removal of a folder",
    "os.truncate": "a file being cut",
    "os.system": "a process being started",
    "os.posix_spawn": "a process being started",
    "subprocess.Popen": "a process being started",
    "socket.connect": "a connection being made",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_asked: list[Current] = []


def install(current: Current) -> None:
    """Let acts on the outside be refused while the capture that ``current`` names is recording."""
    if not _asked:
        _asked.append(current)
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event != "open" and event not in _ACTS:
        return
    recorder = _asked[0]()
    if recorder is None or not recorder.running or (event == "open" and not _is_writing(args)) or is_importing():
        return
    raise refusal(_ACTS.get(event, "a file being written"), "no call of the graph would do it again")


def _is_writing(args: tuple[Any, ...]) -> bool:
    """Whether an opened file can be written to; what has no name in a folder, a pipe say, counts as none."""
    path, mode, flags = args
    if isinstance(path, int) or os.fspath(path) in (os.devnull, os.devnull.encode()):
        return False
    return not set("wax+").isdisjoint(mode) if isinstance(mode, str) else bool((flags or 0) & _WRITING)
