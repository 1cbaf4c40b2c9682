"""One capture of a NumPy program: run it on the example, once for each way that it can go, until all is known.

Comes in: a function, method or callable object and its arguments. Goes out: the graph, its constants, the guards.
"""

from __future__ import annotations

from typing import Any

from clew.capture.control.exploring import capture_until_known, explore_ways
from clew.capture.control.paths import Paths
from clew.capture.control.runs import Findings
from clew.capture.example.captured import Captured
from clew.capture.example.islands import CannotFollow
from clew.capture.example.lifting import lift_guards
from clew.capture.example.options import Options
from clew.errors import CaptureError
from clew.frameworks.numpy.islands import find_island
from clew.frameworks.numpy.run import Run, is_running

REFUSED = {
    "leaves": "it says which modules stay calls, and NumPy has no modules",
    "stateful": "the capture follows objects as it finds them",
    "stateful_arguments": "the capture follows objects as it finds them",
}
"""Options that mean nothing here, and why."""


def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Captured:
    """Run ``fn`` on the example and record it; with ``keep`` what the run did stays done.

    A run that finds state that it changes is undone, and the capture started over with that state among its inputs.
    """
    options.refuse("NumPy", REFUSED)
    if is_running():
        raise CaptureError("a capture was started inside another one", fixes=("capture before the program runs",))
    findings = Findings()

    def explore() -> Captured:
        asked = options._replace(control_flow=findings.control_flow)

        def new_run(paths: Paths | None, first: Any, answers: tuple[bool, ...]) -> Run:
            return Run(fn, asked, findings, paths, first, answers)

        return explore_ways(new_run, findings, args, kwargs)

    def island_for(error: CannotFollow) -> Any:
        return None if options.refuses_opaque else find_island(error, fn, findings.islands)

    captured = capture_until_known(explore, findings, options.control_flow, island_for)
    lift_guards(captured.graph)
    return captured
