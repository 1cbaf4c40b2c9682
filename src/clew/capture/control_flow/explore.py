"""One capture: the program is run once for each path, and restarted until all is known.

A run that finds out what must be known from the start (state that it changes, a function to rewrite, a piece that
cannot be recorded, an opaque call) is undone, and the capture restarts. A program that does something else when run
again is captured with guards on what it branches on.
"""

from __future__ import annotations

import contextvars
import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from clew.capture.captured import Captured
from clew.capture.control_flow.paths import Paths, Unaligned
from clew.capture.options import Options
from clew.capture.python.screens import look_at_screens, screens
from clew.capture.python.settings import collects
from clew.capture.recording.alternatives import stand_in_order
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.recording.run import ExampleRun, Findings, LibraryTracers
from clew.capture.restart import RaisedInside, Restart, Swallowed
from clew.errors import CaptureError, TraceWarning, compose, raised_inside

_MOST_RUNS = 40


def capture_until_known(
    explore: Callable[[], Captured], findings: Findings, options: Options, find_island: Callable[[CannotFollow], Any]
) -> Captured:
    """Call ``explore`` until it gives a capture; what it raises to start over is in the findings at the next call."""
    findings.control_flow, findings.most_paths = options.control_flow, options.max_paths
    for _ in range(_MOST_RUNS):
        try:
            with _no_collection():
                captured = explore()
            _tell_of_limits(findings)
            return captured
        except (CannotFollow, Restart, Swallowed) as raised:
            error = raised.error if isinstance(raised, Swallowed) else raised
            if isinstance(error, Restart):
                error.note(findings)
                continue
            island = find_island(error) if isinstance(error, CannotFollow) else None
            if island is None:
                raise error from error.__cause__
            findings.islands.append(island)
    raise CaptureError(
        "the program changes other places of its state in each run",
        why=", ".join(slot.label for slot in findings.lifted.values()),
    )


def _tell_of_limits(findings: Findings) -> None:
    """Say which lines are guarded because too many paths follow from them, and what to write instead."""
    for line in findings.limited.values():
        fixes = (
            "decide with arrays: where(), boolean masks, any(), all()",
            "write a for loop over the rows, or sizes, with plain variables: it becomes one loop of the graph",
            f"allow more paths: max_paths={2 * findings.most_paths}",
        )
        why = f"it decides about more than {findings.most_paths} paths of the program, and each would be recorded"
        text = compose("the graph relies on the answers of the example to a question", line.describe(), why, fixes)
        warnings.warn_explicit(text, TraceWarning, line.filename, line.lineno)


def explore_paths(
    new_run: Callable[[Paths | None, Any, tuple[bool, ...]], Any],
    findings: Findings,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Captured:
    """Run a program once for each of its paths."""
    paths = Paths() if findings.control_flow == "capture" else None
    first = new_run(paths, None, ())
    if paths is not None:
        paths.guarded, paths.limited = findings.guarded, findings.limited.keys()
        paths.most_paths = findings.most_paths
    _run_apart(first, args, kwargs)
    if paths is not None and paths.is_too_much:
        findings.looks_into_libraries = False
        raise Restart
    if paths is not None and paths.is_too_much_with_tracers:
        findings.tracers = LibraryTracers.LEFT
        raise Restart
    runs = [first]
    try:
        for answers in () if paths is None else paths.untried():
            run = new_run(paths, first, answers)
            try:
                _run_apart(run, args, kwargs)
            except Exception as error:  # a path that cannot be recorded is guarded against
                paths.give_up(error)  # type: ignore[union-attr]
                continue
            runs.append(run)
        _check_paths(paths, findings, runs)
        return first.captured(runs)  # type: ignore[no-any-return]
    except Unaligned as found:
        if findings.tracers is LibraryTracers.FOLLOWED and not found.is_of_modes:
            findings.tracers = LibraryTracers.LEFT
        else:
            findings.guarded.update(found.args)
        raise Restart from None
    finally:
        for run in runs:
            run.state.forget()


def _check_paths(paths: Paths | None, findings: Findings, runs: list[Any]) -> None:
    """Restart if the paths of a program tell of something that must be known from the start."""
    exploding = None if paths is None else paths.explodes_at
    if exploding is not None and findings.asks_orders and paths is not None and paths.begins_with(stand_in_order):
        findings.asks_orders = False
        raise Restart
    if exploding is not None and findings.limited.setdefault(exploding.place, exploding) is exploding:
        raise Restart
    choices = runs[0].inputs.choices
    if choices is not None and choices.learn(run.inputs.choices for run in runs):
        raise Restart
    if paths is not None and paths.lacks_path_of_tracer:
        findings.tracers = LibraryTracers.LEFT
        raise Restart
    if paths is not None and not findings.sees_no_order and paths.agree_on(stand_in_order, runs[0].ignores_order):
        findings.sees_no_order = True
        raise Restart


def _run_apart(run: ExampleRun, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """One run, in a context of its own: what it sets in context variables is gone after it, unless the run counts."""
    context = contextvars.copy_context()
    context.run(look_at_screens)
    context.run(raised_inside.set, RaisedInside())
    try:
        context.run(run.run, args, kwargs)
    finally:
        for variable in [variable for variable in context if run.stays and variable not in (screens, raised_inside)]:
            value = context[variable]
            if variable.get(_NO_VALUE) is not value:
                variable.set(value)


_NO_VALUE = object()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let Python not look for garbage meanwhile: nodes are many and refer to each other, and none of them is any."""
    was_enabled = gc.isenabled()
    gc.disable()
    token = collects.set(was_enabled)
    try:
        yield
    finally:
        collects.reset(token)
        if was_enabled:
            gc.enable()
