"""Work done in a forked child, so that it starts from what the parent has and leaves no mark on it.

In comes a function without arguments that gives plain data; out comes that data, or what became of the child: ended by
a signal, or past its time limit. Whatever the work changes (registries, log levels, weights, dtypes) ends with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

CHUNK = 1 << 16


def in_child(work: Callable[[], Any], seconds: float, failed: Callable[[str], Any]) -> Any:
    """What ``work`` gives in a child process; ``failed(why)`` where the child gave nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _work_and_end(work, writer)
    os.close(writer)
    try:
        text = _read(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if text is None:
        return failed(f"over {seconds:.0f} s")
    return json.loads(text) if text else failed(f"the process died (status {status})")


def serve(work: Callable[[Path], None]) -> None:
    """Do what each line of the standard input asks for, in a copy of this process; ``done`` is printed after each."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                work(Path(line.rstrip("\n")))
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        print("done", flush=True)


def _work_and_end(work: Callable[[], Any], writer: int) -> None:
    """In the child: work, tell the parent, and end without the parent's own farewells."""
    status = 1
    try:
        os.setpgid(0, 0)  # so that what it starts can be ended with it
        given = json.dumps(work()).encode()
        while given:
            given = given[os.write(writer, given) :]
        os.close(writer)
        status = 0
    finally:
        os._exit(status)


def _read(reader: int, end: float) -> bytes | None:
    """All that the child writes; None when the time is over."""
    parts: list[bytes] = []
    while select.select([reader], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(reader, CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None
