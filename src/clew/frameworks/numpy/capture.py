"""One capture of a NumPy program: run it on the example, once for each way that it can go, until all is known.

Comes in: a function, method or callable object and its arguments. Goes out: the graph, its constants, the guards.
"""

from __future__ import annotations

from typing import Any

from clew.capture.control.exploring import capture_until_known, check_option, explore_ways
from clew.capture.control.paths import Paths
from clew.capture.control.runs import Findings
from clew.capture.example.captured import Captured
from clew.capture.example.islands import CannotFollow
from clew.errors import CaptureError
from clew.frameworks.numpy.islands import find_island
from clew.frameworks.numpy.run import Run, Settings, is_running


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
) -> Captured:
    """Run ``fn`` on the example and record it; with ``keep`` what the run did stays done.

    A run that finds state that it changes is undone, and the capture started over with that state among its inputs.
    """
    _check_options(leaves, opaque, control_flow)
    refuses = opaque == "error"
    settings = Settings(static, keep, include_generators, array_caching, refuses, control_flow, dynamic)
    findings = Findings()

    def explore(way: str) -> Captured | None:
        asked = settings._replace(control_flow=way)

        def new_run(paths: Paths | None, first: Any, answers: tuple[bool, ...]) -> Run:
            return Run(fn, asked, findings, paths, first, answers)

        return explore_ways(new_run, way, args, kwargs)

    def island_for(error: CannotFollow) -> Any:
        return None if refuses else find_island(error, fn, findings.islands)

    return capture_until_known(explore, findings, control_flow, island_for)


def _check_options(leaves: Any, opaque: str, control_flow: str) -> None:
    check_option("control_flow", control_flow, ("capture", "guard", "error"))
    check_option("opaque", opaque, ("call", "error"))
    if leaves is not None:
        raise CaptureError("leaves says which modules stay calls, and NumPy has no modules", fixes=("leave it out",))
    if is_running():
        raise CaptureError("a capture was started inside another one", fixes=("capture before the program runs",))
