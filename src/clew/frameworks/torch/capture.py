"""One capture of a torch program: run it on the example, once for each way that it can go, until all is known.

Comes in: a module or function and its arguments. Goes out: the graph, the root that holds its attributes, the guards.
A run that finds out something that must be known from the start is undone, and the capture started over.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import Any

import torch

from clew.capture.captured import Captured
from clew.capture.control_flow.explore import capture_until_known, explore_paths
from clew.capture.control_flow.operand_order import arrange_controls
from clew.capture.control_flow.paths import Paths
from clew.capture.guards.lifting import lift_guards
from clew.capture.options import Options
from clew.capture.recording.opaque_calls import CannotFollow, Unseen
from clew.capture.recording.unused_calls import drop_unused
from clew.capture.restart import Restart
from clew.capture.state.first_call import after_first_call, widen
from clew.capture.state.slots import places_in
from clew.errors import CaptureError, ClewError
from clew.frameworks.torch.calls.opaque_calls import find_island
from clew.frameworks.torch.fact_rules import Facts, has_guarded_ranks
from clew.frameworks.torch.modules.calls import leaf_policy
from clew.frameworks.torch.run import Findings, Run, is_running
from clew.frameworks.torch.sizes.answers import by_sizes
from clew.ir.guards import Expression


def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Captured:
    """Run ``fn`` on the example and record it; with ``keep`` what the run did stays done.

    A run that finds state that it changes is undone, and the capture started over with that state among its inputs.
    """
    if is_running():
        raise CaptureError("a capture was started inside another one", fixes=("capture before the program runs",))
    around = tuple(part for part in options.stateful if not isinstance(part, torch.nn.Module))  # followed anyway
    settings = options._replace(leaves=leaf_policy(options.leaves), stateful=around)
    findings = Findings(options.lifted)
    findings.lifted |= {slot.key: slot for slot in places_in(around)}
    captured = _capture(fn, args, kwargs, settings, findings)
    if findings.first_call_change is not None and not settings.keep:
        with after_first_call(findings.first_call_change), suppress(ClewError):
            twin = _capture(fn, args, kwargs, settings, Findings(dict(findings.lifted)))
            widen(captured.graph, twin.graph, findings.first_call_change)
    _lift(captured, settings)
    return captured


def _lift(captured: Captured, settings: Options) -> None:
    """Let guards leave the graph, those too that follow from sizes, dtypes and devices of what came in."""
    graph, root = captured.graph, captured.module
    has_ranks = has_guarded_ranks(graph)
    facts = functools.cache(lambda: Facts(graph, root, has_ranks))  # few captures need them

    def computed(value: Any) -> Expression | None:
        found = facts().expression(value)
        return by_sizes(value) if found is None else found

    if lift_guards(graph, root, computed):
        drop_unused(graph, settings.keeps_unused)
        arrange_controls(graph)
        drop_unused(graph, settings.keeps_unused)


def _capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], settings: Options, findings: Findings) -> Captured:
    """Run a program until everything is known that its graph needs."""

    def explore() -> Captured:
        try:
            return _explore(fn, args, kwargs, settings._replace(control_flow=findings.control_flow), findings)
        except Unseen:
            if findings.unseen:
                raise
            findings.unseen = True
            raise Restart from None  # now with a look at more

    def island_for(error: CannotFollow) -> Any:
        return None if settings.refuses_opaque else find_island(error, fn, findings.module_paths, findings.islands)

    try:
        captured = capture_until_known(explore, findings, settings.control_flow, island_for)
        findings.set_up_stays = settings.keep
        return captured
    except Exception as error:
        undone = isinstance(error, ClewError) or not settings.keep
        for cached in findings.filled if undone else ():  # a program that is not captured shall find them as they were
            cached.cache_clear()
        if isinstance(error, CannotFollow) and isinstance(findings.with_arrays, CaptureError):
            raise findings.with_arrays from error  # which says what of NumPy cannot be followed
        raise
    finally:
        findings.undo_set_up()


def _explore(fn: Any, args: Any, kwargs: Any, settings: Options, findings: Findings) -> Captured:
    """Run a program once for each way that it can go."""
    met, packages = len(findings.caches), set(findings.packages.names)
    if findings.set_up is not None:
        findings.set_up.do()

    def new_run(paths: Paths | None, first: Any, answers: tuple[bool, ...]) -> Run:
        return Run(fn, settings, findings, paths, first, answers)

    captured = explore_paths(new_run, findings, args, kwargs)
    if len(findings.caches) > met or findings.packages.names != packages:
        raise Restart  # which the program has caught, by a handler of everything
    return captured
