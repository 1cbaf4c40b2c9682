"""Judges a random program by the harness of the ledger: a verdict for the capture and one for each probe.

In comes a program as text; it is loaded as a module of its own for the capture and again for the original, so that they
share nothing. Results, arguments, attributes, globals, closures, random state and errors (by class) are compared.
Verdicts are equal, guarded, refused, wrong, slow (ran into the time limit) and broken (the harness itself failed).
"""

from __future__ import annotations

import functools
import importlib
import linecache
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import clew
from benchmarks.fuzz.frameworks import vocabulary_of
from benchmarks.fuzz.program import MODULE, RandomProgram
from clew.errors import ClewError
from tests.footguns.harness import AFTERWARDS, CAPTURE, GUARDED, WRONG, Capture, Outcome, classify
from tests.footguns.ledger import Case, Inputs, Program, call
from tests.footguns.world import TooSlow, quietly, restored, seed_everything, time_limit

EQUAL, REFUSED, WRONG_ANSWER, SLOW, BROKEN = "equal", "refused", "wrong", "slow", "broken"
VERDICTS = (EQUAL, GUARDED, REFUSED, WRONG_ANSWER, SLOW, BROKEN)
SECONDS, PATIENCE = 5.0, 20.0
ABSENT = "there is no such attribute"
ATTRIBUTES = ("scale", "rate", "count", "last", "cache", "history", "options", "factor")
"""Of the model: those that are no tensors, which the harness looks at anyway."""
CELL = ("count", "kept")
"""Of the module inside of it."""


@dataclass(frozen=True)
class Verdict:
    """What came of one call: which probe (its place; -1: the capture, -2: a look back), and why."""

    probe: int
    name: str
    status: str
    reason: str = ""


def trace(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """What is under test, if no other form of it is asked for (`benchmarks/fuzz/forms.py`)."""
    return clew.trace(fn, args=args, kwargs=kwargs)


def judge(program: RandomProgram, capture: Capture = trace, seconds: float = SECONDS) -> list[Verdict]:
    """A verdict for the capture and each call; one alone, `broken`, where the harness fails."""
    refused: set[int] = set()
    built = Program(program.name, program.kind, functools.partial(build, program, refused))
    try:
        with _forgotten(program):
            outcomes = classify(built, capture, seconds)
    except Exception as error:
        return [Verdict(-1, CAPTURE, BROKEN, f"{type(error).__name__}: {error}")]
    verdicts = [_verdict(program, outcome, refused) for outcome in outcomes]
    return _until_slow(verdicts)


def _until_slow(verdicts: list[Verdict]) -> list[Verdict]:
    """A call that was broken off has done a part of its work: what follows is not compared with the original, which
    was not broken off there."""
    first = next((place for place, one in enumerate(verdicts) if one.status == SLOW), len(verdicts))
    return verdicts[:first] + [replace(one, status=SLOW) for one in verdicts[first:]]


def worst(verdicts: list[Verdict]) -> Verdict:
    """The verdict on the program: that of its worst call."""
    order = (WRONG_ANSWER, BROKEN, SLOW, REFUSED, GUARDED, EQUAL)
    return min(verdicts, key=lambda one: order.index(one.status))


def runs(program: RandomProgram) -> bool:
    """Whether the original does its example without an error."""
    try:
        with _forgotten(program), restored(), quietly(), time_limit(PATIENCE):
            case = build(program, set())
            seed_everything(0)
            args, kwargs = case.example()
            case.callable()(*args, **kwargs)
    except (Exception, TooSlow):  # a program may fail in any way
        return False
    return True


def _verdict(program: RandomProgram, outcome: Outcome, refused: set[int]) -> Verdict:
    place = _place(program, outcome.call)
    name = program.probes[place].name if 0 <= place < len(program.probes) else outcome.call
    status = {GUARDED: GUARDED, WRONG: WRONG_ANSWER}.get(outcome.status, EQUAL)
    if status == GUARDED and (outcome.call == CAPTURE or place == 0):
        status = REFUSED
    if "did not come back in" in outcome.reason:
        status = SLOW
    if status == EQUAL and place in refused:
        return Verdict(place, name, GUARDED, "what comes before this call is refused")
    return Verdict(place, name, status, outcome.reason)


def _place(program: RandomProgram, called: str) -> int:
    """Which probe a call of the harness is."""
    if called in (CAPTURE, AFTERWARDS):
        return -1 if called == CAPTURE else -2
    places = {"example": 0, "example again": len(program.probes)}
    return places[called] if called in places else int(called.removeprefix("other "))


# ---- from text to a case of the ledger -----------------------------------------------------------------------------


def build(program: RandomProgram, refused: set[int]) -> Case:
    """Everything anew. Actions that the capture refuses are noted, and then left out for the original, too."""
    vocabulary = vocabulary_of(program.framework)
    names = {name: importlib.import_module(home) for name, home in vocabulary.imports}
    module = _loaded(program)
    made: list[Any] = []
    example, *others = (functools.partial(_inputs, probe.arguments, names) for probe in program.probes)
    actions = {
        f"other {place}": functools.partial(_act, probe.action, names | {"module": module}, place, refused)
        for place, probe in enumerate(program.probes)
        if probe.action
    }
    return Case(
        make=lambda: made.append(module.make()) or made[-1],  # type: ignore[func-returns-value]
        example=example,
        others=others,
        between=actions,
        state=lambda subject: _state(program, module, made[-1], subject),
        same_text=False,
        aliasing=vocabulary.aliasing,
        printing=True,
        gradients=vocabulary.gradients,
    )


def _inputs(arguments: str, names: dict[str, Any]) -> Inputs:
    made: Inputs = eval(f"call({arguments})", {"call": call, **names})  # our own text
    return made


def _act(action: str, names: dict[str, Any], place: int, refused: set[int], subject: Any) -> None:
    if place in refused:
        return
    try:
        exec(action, {"subject": subject, **names})  # our own text
    except ClewError:
        refused.add(place)


def _state(program: RandomProgram, module: types.ModuleType, source: Any, subject: Any) -> dict[str, Any]:
    """Globals, attributes of classes, and what the function closes over or the module holds."""
    found = {name: value for name, value in vars(module).items() if name.isupper() and name != "F"}
    for name in ("Config", "Model", "Box", "Settings"):
        held = vars(getattr(module, name, object))
        found |= {f"{name}.{key}": value for key, value in held.items() if isinstance(value, (int, float, list))}
    if program.kind == MODULE:
        held = {f"self.{name}": _attribute(subject, source, name) for name in ATTRIBUTES}
        held |= {f"self.cell.{name}": _attribute(*_cells(subject, source), name) for name in CELL}
        return found | held
    names = getattr(source, "__code__", _state.__code__).co_freevars
    cells = zip(names, getattr(source, "__closure__", None) or (), strict=True)
    return found | {name: cell.cell_contents for name, cell in cells}


def _cells(subject: Any, source: Any) -> tuple[Any, Any]:
    """The module inside of the module; a capture that has none of that name shows the original's."""
    inside = getattr(source, "cell", None)
    return getattr(subject, "cell", inside), inside


def _attribute(subject: Any, source: Any, name: str) -> Any:
    return getattr(subject, name, getattr(source, name, ABSENT))


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Where the files of programs are, as long as this process runs."""
    return tempfile.TemporaryDirectory(prefix="random_programs_")


def _file(program: RandomProgram) -> Path:
    """The file of a program: there are those who look for the source of a function there."""
    return Path(_folder().name) / f"{program.name}.py"


def _loaded(program: RandomProgram) -> types.ModuleType:
    """The text as a module whose source can be read."""
    module, file = types.ModuleType(program.name), _file(program)
    module.__file__ = str(file)
    file.write_text(program.source)
    linecache.cache.pop(str(file), None)
    sys.modules[program.name] = module
    exec(compile(program.source, str(file), "exec"), vars(module))  # our own text
    return module


@contextmanager
def _forgotten(program: RandomProgram) -> Iterator[None]:
    """Afterwards nothing is left of the program's module."""
    try:
        yield
    finally:
        sys.modules.pop(program.name, None)
        linecache.cache.pop(str(_file(program)), None)
        _file(program).unlink(missing_ok=True)
