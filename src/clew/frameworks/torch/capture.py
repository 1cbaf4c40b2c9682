"""One capture of a torch program: run it on the example, once for each way that it can go, until all is known.

Comes in: a module or function and its arguments. Goes out: the graph, the root that holds its attributes, the guards.
A run that finds out something that must be known from the start is undone, and the capture started over.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from clew.capture.control.paths import Diverged, Paths
from clew.capture.control.pieces import Abandon
from clew.capture.control.regions import Rewrite
from clew.capture.example.captured import Captured
from clew.capture.example.slots import Slot, places_in
from clew.errors import CaptureError
from clew.frameworks.torch.caches import CacheMet
from clew.frameworks.torch.findings import Findings, Settings
from clew.frameworks.torch.islands import CannotFollow, find_island
from clew.frameworks.torch.leaves import leaf_policy
from clew.frameworks.torch.run import Run, is_running

_MOST_RUNS = 40


def capture(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    leaves: Any = None,
    static: frozenset[str] = frozenset(),
    keep: bool = False,
    include_generators: bool = True,
    array_caching: bool = True,
    opaque: str = "call",
    control_flow: str = "capture",
    dynamic: bool = False,
    stateful: Iterable[Any] = (),
    stateful_arguments: Iterable[Any] = (),
    lifted: dict[Any, Slot] | None = None,
) -> Captured:
    """Run ``fn`` on the example and record it; with ``keep`` what the run did stays done.

    A run that finds state that it changes is undone, and the capture started over with that state among its inputs.
    All attributes of the objects in ``stateful`` are such inputs; ``stateful_arguments`` may come again after the
    program has set attributes of them; ``lifted`` has places that other captures of the same module change, and gets
    those that this one does.
    """
    _check_option("opaque", opaque, ("call", "error"))
    _check_option("control_flow", control_flow, ("capture", "guard", "error"))
    if is_running():
        raise CaptureError("a capture was started inside another one", fixes=("capture before the program runs",))
    around = tuple(part for part in stateful if not isinstance(part, torch.nn.Module))  # these are followed anyway
    policy, refuses, inside = leaf_policy(leaves), opaque == "error", tuple(stateful_arguments)
    settings = Settings(
        policy, static, keep, include_generators, array_caching, refuses, control_flow, dynamic, around, inside
    )
    findings = Findings(lifted)
    findings.lifted |= {slot.key: slot for slot in places_in(around)}
    for _ in range(_MOST_RUNS):
        try:
            with _no_collection():
                captured = _explore(fn, args, kwargs, settings, findings)
        except CannotFollow as error:
            island = find_island(error, fn, findings.paths, findings.islands)
            if island is None or opaque == "error":
                raise
            findings.islands.append(island)
            continue
        except (CacheMet, Rewrite):
            continue
        except Abandon as found:
            findings.progress.give_up(found)
            continue
        except Diverged:
            settings = settings._replace(control_flow="guard")
            continue
        if captured is not None:
            return captured
    raise CaptureError(
        "the program changes other places of its state in each run",
        why=", ".join(slot.label for slot in findings.lifted.values()),
    )


def _check_option(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        choices = " or ".join(f'"{choice}"' for choice in known)
        raise CaptureError(f"{name}={value!r} says nothing", fixes=(f"give {choices}",))


def _explore(fn: Any, args: Any, kwargs: Any, settings: Settings, findings: Findings) -> Captured | None:
    """Run a program once for each way that it can go; None if it must be started over with what was found."""
    paths = Paths() if settings.control_flow == "capture" else None
    first = Run(fn, settings, findings, paths)
    met = len(findings.caches)
    if not first.run(args, kwargs) or len(findings.caches) > met:
        return None
    runs = [first]
    for answers in () if paths is None else paths.ways():
        run = Run(fn, settings, findings, paths, first, answers)
        try:
            done = run.run(args, kwargs)
        except (CacheMet, Diverged):
            raise
        except Exception:  # a way that cannot be recorded is guarded against
            paths.give_up()  # type: ignore[union-attr]
            continue
        if not done:
            return None
        runs.append(run)
    captured = first.captured(runs)
    for run in runs:
        run.state.forget()
    return captured


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
