"""Worker processes that each take one task after the other, so that imports are paid once.

In come names and a function of a worker; out comes one row for each name, as soon as it is there. A worker that dies or
runs past the time limit is ended and replaced, and its task gets a row that says so.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

Row = dict[str, Any]
_spawn = multiprocessing.get_context("spawn")
TASKS_OF_ONE_WORKER = 120


def _serve(connection: Connection, prepare: Callable[[], Callable[[str], Row]]) -> None:
    work = prepare()
    while True:
        name = connection.recv()
        connection.send(work(name))


class _Worker:
    """One process, and the task that it has in hand."""

    def __init__(self, prepare: Callable[[], Callable[[str], Row]]) -> None:
        self.connection, child = _spawn.Pipe()
        self.process = _spawn.Process(target=_serve, args=(child, prepare), daemon=True)
        self.process.start()
        child.close()
        self.name = ""
        self.since = 0.0
        self.done = 0

    def give(self, name: str) -> None:
        self.name, self.since = name, time.monotonic()
        self.done += 1
        with suppress(BrokenPipeError):  # a process that is gone answers nothing, which ``answer`` sees
            self.connection.send(name)

    def answer(self, seconds: float) -> Row | None:
        """The row of the task in hand; None while it is being worked on."""
        if self.connection.poll():
            try:
                row: Row = self.connection.recv()
                return row
            except (EOFError, ConnectionResetError):
                return {"name": self.name, "outcome": "failed", "reason": "the process died"}
        if time.monotonic() - self.since > seconds:
            return {"name": self.name, "outcome": "timeout", "reason": f"over {seconds:.0f} s, and not to be stopped"}
        return None

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def run(
    names: list[str],
    prepare: Callable[[], Callable[[str], Row]],
    workers: int,
    seconds: float,
    budget: float = math.inf,
) -> Iterator[Row]:
    """The rows of all names in the order in which they are ready; ``seconds`` is the limit of each.

    What has not begun after ``budget`` seconds is left out.
    """
    waiting = list(reversed(names))
    busy: list[_Worker] = []
    end = time.monotonic() + budget
    try:
        while waiting or busy:
            if time.monotonic() > end:
                waiting.clear()
            while waiting and len(busy) < workers:
                busy.append(_Worker(prepare))
                busy[-1].give(waiting.pop())
            wait([worker.connection for worker in busy], timeout=1)
            for worker in list(busy):
                row = worker.answer(seconds)
                if row is not None:
                    yield row
                    _go_on(worker, row, waiting, busy)
    finally:
        for worker in busy:
            worker.end()


def _go_on(worker: _Worker, row: Row, waiting: list[str], busy: list[_Worker]) -> None:
    """Give the worker its next task, or end it."""
    if waiting and "seconds" in row and worker.done < TASKS_OF_ONE_WORKER:
        worker.give(waiting.pop())
        return
    busy.remove(worker)
    worker.end()
