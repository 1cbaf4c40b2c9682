"""Other processes, machines and people: what a program starts, sends or is told by them.

None of it can be taken back or done again by a graph, so it is refused. Facts of this process that may differ in the
next (its number, working folder, machine name) are guarded.
"""

from __future__ import annotations

import builtins
import functools
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from clew.capture.patches import Patches
from clew.capture.python.callers import is_importing
from clew.capture.python.files import refusing
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import asked_listener
from clew.capture.state.containers import ACTING
from clew.ir.effects import pure

_STARTING, _CONNECTING = "a process being started", "a connection being made"
_ACTS = dict.fromkeys(("fork", "system", "posix_spawn", "posix_spawnp"), _STARTING) | {"kill": "a signal being sent"}
ACTING.update(getattr(os, name) for name in _ACTS if hasattr(os, name))
_FACTS = {
    "os.getcwd": os.getcwd,
    "os.getpid": os.getpid,
    "os.getppid": os.getppid,
    "socket.gethostname": socket.gethostname,
    "sys.argv": lambda: tuple(sys.argv),
}
"""Questions about this process and this machine, as they are outside of captures."""
_TYPED, _TOLD = "what people type in", "it is something else at another call"


@pure
def process_fact(name: str) -> Any:
    """What Python tells of this process: ``os.getcwd`` say."""
    return _FACTS[name]()


def install(patches: Patches) -> None:
    """Let processes, connections and questions to people report to the listener."""
    for name in [name for name in _ACTS if hasattr(os, name)]:
        patches.in_dict(vars(os), name, noted(functools.partial(refusing, what=_ACTS[name]), True))
    patches.on_class(subprocess.Popen, "__init__", functools.partial(refusing, what=_STARTING))
    for name in ("connect", "connect_ex", "bind"):
        make = functools.partial(refusing, what=_CONNECTING)
        patches.on_class(socket.socket, name, make, inherited=True)
    for path in _FACTS.keys() - {"sys.argv"}:
        home = socket if path.startswith("socket.") else os
        patches.in_dict(vars(home), path.partition(".")[2], noted(functools.partial(_asking, path=path)))
    patches.in_dict(vars(builtins), "input", noted(_typing))


def install_for_people(patches: Patches) -> None:
    """Let reads of what is typed in report to the listener; where it comes from is another object now and then."""
    if sys.stdin is not None:
        patches.in_dict(vars(sys), "stdin", noted(_keyboard))


def _asking(original: Callable[[], Any], path: str) -> Callable[[], Any]:
    @functools.wraps(original)
    def ask() -> Any:
        listener = asked_listener()
        if listener is not None and not is_importing():
            listener.note(process_fact, (path,), f"{path}() ==")
        return original()

    return ask


def _typing(original: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(original)
    def ask(*args: Any) -> str:
        listener = asked_listener()
        if listener is not None:
            raise listener.refusal(_TYPED, _TOLD)
        return original(*args)

    return ask


@functools.lru_cache(maxsize=8)
def _keyboard(original: Any) -> _Keyboard:
    """What stands for ``sys.stdin``, the same for each capture."""
    return _Keyboard(original)


class _Keyboard:
    """Stands for ``sys.stdin``: whoever reads from it in a program is refused."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        self._check()
        return getattr(self._original, name)

    def __iter__(self) -> Any:
        self._check()
        return iter(self._original)

    def _check(self) -> None:
        listener = asked_listener(3)
        if listener is not None:
            raise listener.refusal(_TYPED, _TOLD)
