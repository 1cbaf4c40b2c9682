"""One capture of a program: it is run once for each way that it can go, until all is known.

A run that finds out something that must be known from the start (state that it changes, a function to rewrite, a piece
that cannot be recorded, an island) is undone, and the capture started over. A program that does something else when it
is run again is captured with guards on what it branches on.
"""

from __future__ import annotations

import contextvars
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from clew.capture.control.paths import Diverged, Paths, Unaligned
from clew.capture.control.pieces import Abandon
from clew.capture.control.regions import Rewrite
from clew.capture.control.runs import Findings, LibraryTracers
from clew.capture.example.captured import Captured
from clew.capture.example.islands import CannotFollow
from clew.capture.example.statements import look_at_screens, screens
from clew.errors import CaptureError

_MOST_RUNS = 40


def capture_until_known(
    explore: Callable[[str], Captured | None],
    findings: Findings,
    control_flow: str,
    find_island: Callable[[CannotFollow], Any],
    passing: tuple[type[BaseException], ...] = (),
) -> Captured:
    """Call ``explore`` with the treatment of branches until it gives a capture; it raises what must be known."""
    again: tuple[type[BaseException], ...] = (Rewrite, *passing)
    for _ in range(_MOST_RUNS):
        try:
            with _no_collection():
                captured = explore(control_flow)
        except CannotFollow as error:
            island = find_island(error)
            if island is None:
                raise
            findings.islands.append(island)
        except again:
            continue
        except Abandon as found:
            findings.progress.give_up(found)
        except Diverged:
            control_flow = "guard"
        else:
            if captured is not None:
                return captured
    raise CaptureError(
        "the program changes other places of its state in each run",
        why=", ".join(slot.label for slot in findings.lifted.values()),
    )


def explore_ways(
    new_run: Callable[[Paths | None, Any, tuple[bool, ...]], Any],
    control_flow: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    passing: tuple[type[BaseException], ...] = (),
) -> Captured | None:
    """Run a program once for each way that it can go; None if it must be started over with what was found."""
    paths = Paths() if control_flow == "capture" else None
    first = new_run(paths, None, ())
    if paths is not None:
        paths.guarded = first.findings.guarded
    if not _run_apart(first, args, kwargs):
        return None
    if paths is not None and paths.is_too_much:
        first.findings.looks_into_libraries = False
        return None
    runs = [first]
    stopping: tuple[type[BaseException], ...] = (Diverged, *passing)
    for answers in () if paths is None else paths.ways():
        run = new_run(paths, first, answers)
        try:
            done = _run_apart(run, args, kwargs)
        except stopping:
            raise
        except Exception as error:  # a way that cannot be recorded is guarded against
            paths.give_up(error)  # type: ignore[union-attr]
            continue
        if not done:
            return None
        runs.append(run)
    if paths is not None and paths.lacks_way_of_tracer:
        first.findings.tracers = LibraryTracers.LEFT
        return None
    captured: Captured | None = None
    try:
        captured = first.captured(runs)
    except Unaligned as found:
        if first.findings.tracers is LibraryTracers.FOLLOWED and not found.is_of_modes:
            first.findings.tracers = LibraryTracers.LEFT
        else:
            first.findings.guarded.update(found.args)
    for run in runs:
        run.state.forget()
    return captured


def _run_apart(run: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """One run, in a context of its own: what it sets in context variables is gone after it, unless the run counts."""
    context = contextvars.copy_context()
    context.run(look_at_screens)
    try:
        done: bool = context.run(run.run, args, kwargs)
    finally:
        for variable in [variable for variable in context if run.stays and variable is not screens]:
            value = context[variable]
            if variable.get(_NO_VALUE) is not value:
                variable.set(value)
    return done


_NO_VALUE = object()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let Python not look for garbage meanwhile: nodes are many and refer to each other, and none of them is any."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
