"""One run of a JAX program on the example, under the recorder; then everything is put back.

Comes in: a callable, what the user has asked for, and what earlier runs have found out. Goes out: what the run
recorded. A JAX program is run as a NumPy program is, whose arrays may be JAX's too: public functions of JAX are
replaced for the time of the run, and a trace of our own hears all that JAX does besides.
"""

from __future__ import annotations

import os
from types import CodeType, FunctionType
from typing import Any

from clew.capture.captured import Captured
from clew.capture.options import Options
from clew.capture.patches import Patches
from clew.capture.recording.run import Findings
from clew.frameworks.jax import private, public_calls
from clew.frameworks.jax.entry_guards import EntryGuards
from clew.frameworks.jax.programs import check_names, rules_of
from clew.frameworks.jax.recorder import JaxRecorder
from clew.frameworks.numpy import capture as of_numpy

REFUSED = {
    "leaves": "it says which modules stay calls, and JAX has no modules",
    "include_generators": "random numbers come from keys, which are arguments or constants",
    "stateful": "the capture follows objects as it finds them",
    "stateful_arguments": "the capture follows objects as it finds them",
}
"""Options that mean nothing here, and why."""


_MADE = (os.path.dirname(os.__file__) + os.sep, "<string>")


class Run(of_numpy.Run):
    """One run of a program that is being captured."""

    recorder: JaxRecorder
    recorder_class = JaxRecorder
    guards_class = EntryGuards

    def _look_around(self, programs: list[Any], functions: list[FunctionType]) -> None:
        """Rules of derivatives of the functions around are functions around too."""
        super()._look_around(programs, functions)
        for rule in [one for _, value in list(self.surroundings.values()) for one in rules_of(value)]:
            self.surroundings.add(rule)

    def _keep_identities(self, codes: list[CodeType]) -> None:
        """Code that Python has made, for dataclasses say, compares objects of its own."""
        super()._keep_identities([code for code in codes if not code.co_filename.startswith(_MADE)])

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Record one run, unless the program asks whether it is being traced."""
        check_names(self.surroundings.functions)
        super().run(args, kwargs)

    def _call(self, given: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
        """Run the program under our own trace."""
        with private.using(self.recorder.trace):
            return super()._call(given)

    def _leave(self, stays: bool) -> None:
        """Put everything back, or let what the run did stay done; then what it wanted to show is shown."""
        super()._leave(stays)
        for function, args, kwargs in self.recorder.acts if stays else ():
            function(*args, **kwargs)

    def _install_more(self, patches: Patches, functions: list[Any]) -> None:
        """Let public functions of JAX, and jitted ones, report to the recorder."""
        public_calls.install(patches, _current_recorder, self.surroundings)


def _current_recorder() -> JaxRecorder | None:
    run = of_numpy._running.get()
    return run.recorder if isinstance(run, Run) else None


def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Captured:
    """Run ``fn`` on the example and record it; with ``keep`` what the run did stays done."""
    options.refuse("JAX", REFUSED)
    return of_numpy.capture_by(Run, Findings(), fn, args, kwargs, options)
