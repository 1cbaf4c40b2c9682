"""One run of a JAX program on the example, under the recorder; then everything is put back.

Comes in: a callable, what the user has asked for, and what earlier runs have found out. Goes out: what the run
recorded. A JAX program is run as a NumPy program is, whose arrays may be JAX's too: public functions of JAX are
replaced for the time of the run, and a trace of our own hears all that JAX does besides.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from types import CodeType, FunctionType
from typing import Any

import jax

from clew.capture.captured import Captured
from clew.capture.control_flow.argument_uses import Framework
from clew.capture.options import Options
from clew.capture.patches import Patches
from clew.capture.recording.run import Findings
from clew.capture.state.reachable import attribute_names, behind
from clew.errors import CaptureError
from clew.frameworks.jax import calls, interception, private
from clew.frameworks.jax.effects import METHODS, is_function, takes_nests
from clew.frameworks.jax.entry_guards import EntryGuards, JaxInputs
from clew.frameworks.jax.layers import Layers, is_of_keras
from clew.frameworks.jax.recorder import JaxRecorder
from clew.frameworks.numpy import capture as of_numpy
from clew.frameworks.numpy.array_proxy import Reliance
from clew.ir.node import Node

# ---- what a callable brings along ------------------------------------------------------------------------------------
#
# What a JAX callable brings along, rules of derivatives among them, and the names that it must not ask for.


def rules_of(value: Any) -> list[FunctionType]:
    """The rules of derivatives of a function that has its own."""
    found = [getattr(value, name, None) for name in ("jvp", "fwd", "bwd")] if _is_custom(value) else []
    return [rule for rule in found if isinstance(rule, FunctionType)]


def _is_custom(value: Any) -> bool:
    return isinstance(value, (jax.custom_jvp, jax.custom_vjp))


def check_names(functions: Iterable[FunctionType]) -> None:
    """Raise if a program asks whether it is being traced."""
    for function in functions:
        names = attribute_names(function.__code__)
        if "Tracer" in names:
            raise _refusal(function, "asks whether its values are tracers", "during the capture they are, later not")


def _refusal(function: FunctionType, what: str, why: str) -> CaptureError:
    code = function.__code__
    return CaptureError(
        f"the program {what}",
        where=f"{code.co_filename}:{code.co_firstlineno} in {code.co_name}",
        why=why,
        fixes=("pass the value as an argument",),
    )


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
    inputs_class = JaxInputs
    framework = Framework(is_function, METHODS, takes_nests)

    def __init__(self, fn: Any, settings: Options, findings: Findings, *rest: Any) -> None:
        super().__init__(fn, settings, findings, *rest)
        self.recorder.traced_once.around = {id(function) for function in self.surroundings.functions}
        self.recorder.traced_once.kept = findings.islands
        self.recorder.traced_once.is_call = settings.keep and self.first is None
        values = [*behind(fn), *(value for _, value in self.surroundings.values())]
        self.layers = Layers(values, self.recorder.is_end)
        self.layers.check_built()
        findings.lifted |= {slot.key: slot for slot in self.layers.slots() if slot.key not in findings.lifted}

    def _owners(self, more: tuple[Any, ...] = (), beside: tuple[type, ...] = ()) -> list[Any]:
        """Objects whose attributes the program may change; those of Keras are watched by themselves."""
        return [owner for owner in super()._owners(more, beside) if not is_of_keras(owner)]

    def is_read_again(self, value: Any) -> bool:
        """Whether a value is an array: one that an attribute holds is read at each call."""
        return isinstance(value, jax.Array) or super().is_read_again(value)

    def ignores_order(self, node: Node) -> bool:
        """Whether a call does the same in whatever order the keys of dicts among its arguments stand: one of JAX's, or
        of what a transform has made."""
        made = node.args[0] if node.target is operator.call else None
        is_made = isinstance(made, Node) and made.target is calls.transformed
        return is_made or takes_nests(node.target)

    def _reliance(self, runs: list[of_numpy.Run]) -> Reliance:
        """What the program could see of dtypes and ranks, and of classes of numbers, on any of its paths."""
        seen = [run.recorder.has_seen_class for run in runs if isinstance(run, Run)]
        self.recorder.has_seen_class = any(seen)
        return super()._reliance(runs)

    def _watch_state(self) -> None:
        """Remember everything that the program can change besides its arguments."""
        super()._watch_state()
        self.layers.watch(self.state)

    def _check(self) -> None:
        """Raise if the run did something that no node of the graph does again."""
        super()._check()
        self.layers.check_losses()

    def finish(self, runs: list[Any]) -> None:
        """Complete the graph with what all runs relied on."""
        super().finish(runs)
        graph = self.recorder.bodies.outermost
        with graph.inserting_before(self.after_inputs._next):
            self.layers.guard(graph, self.recorder.is_end)

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
        """Put everything back, or let what the run did stay done."""
        super()._leave(stays)
        if stays:
            self.recorder.traced_once.count_as_call()

    def _install_more(self, patches: Patches, functions: list[Any]) -> None:
        """Let public functions of JAX, and jitted ones, report to the recorder."""
        interception.install(patches, _current_recorder, self.surroundings)


def _current_recorder() -> JaxRecorder | None:
    run = of_numpy._running.get()
    return run.recorder if isinstance(run, Run) else None


def capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Options) -> Captured:
    """Run ``fn`` on the example and record it; with ``keep`` what the run did stays done."""
    options.refuse("JAX", REFUSED)
    return of_numpy.capture_by(Run, Findings(), fn, args, kwargs, options)
