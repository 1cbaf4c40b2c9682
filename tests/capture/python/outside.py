"""The judge of programs that look outside: a capture gives what the original gives in changed surroundings, or refuses.

Comes in: a program and an array of a framework. Goes out: ``right``, ``guarded`` (``GuardError`` at a call),
``refused`` (``CaptureError`` at the capture, with the user's line), ``unshown`` or ``WRONG: why``.
`python -m tests.capture.python` prints the table of all programs and frameworks.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy

import clew
from clew.errors import CaptureError, GuardError
from tests.capture.python import outside_programs as programs
from tests.capture.python import outside_spellings
from tests.capture.python.outside_programs import (
    DONE,
    DRAWN,
    FOLDER,
    FRESH,
    NOW,
    READ,
    SHOWN,
    VARIABLE,
    WRITTEN,
    Program,
)

FRAMEWORKS = ("torch", "numpy", "jax", "tensorflow")
UNSHOWN = "unshown"
"""The verdict where a result is right, and text for people is not shown again."""
_NEARLY = 1e-3
_HOMES = ("outside_programs.py", "outside_spellings.py", "outside_helpers.py")
_caught: list[int] = []


def _catch(number: int, frame: Any) -> None:
    _caught.append(number)


def array(framework: str) -> Any:
    """Three numbers as an array of a framework."""
    values = numpy.zeros(3, numpy.float64 if framework == "numpy" else numpy.float32)
    if framework == "numpy":
        return values
    maker = {"torch": "from_numpy", "tensorflow": "constant", "jax": "asarray"}[framework]
    return getattr(importlib.import_module("jax.numpy" if framework == "jax" else framework), maker)(values)


@contextlib.contextmanager
def surroundings(number: int) -> Iterator[io.StringIO]:
    """The world, as it is for this number: the environment, files, variables and what is typed in. Gives the screen."""
    argv, folder, screen = list(sys.argv), os.getcwd(), io.StringIO()
    os.environ[VARIABLE] = str(number)
    _write(READ, "1" * number)
    programs.SCALE = programs.SETTINGS["scale"] = programs.Options.scale = float(number)  # type: ignore[misc]
    if number > 1:
        os.environ[f"{VARIABLE}_2"] = ""
        _write(READ + "_2", "")
        sys.argv.append("")
        os.chdir(FOLDER)
    handler, stdin, limit = logging.StreamHandler(screen), sys.stdin, sys.getrecursionlimit()
    signals = signal.signal(programs.SIGNAL, _catch)
    _caught.clear()
    programs.LOGGER.addHandler(handler)
    sys.stdin = io.StringIO(f"{number}\n" * 9)
    try:
        with contextlib.redirect_stdout(screen):
            yield screen
    finally:
        programs.LOGGER.removeHandler(handler)
        signal.signal(programs.SIGNAL, signals)
        sys.setrecursionlimit(limit)
        sys.stdin, sys.argv[:] = stdin, argv
        os.chdir(folder)
        for name in (VARIABLE, f"{VARIABLE}_2", f"{VARIABLE}_SET"):
            os.environ.pop(name, None)
        for place in (READ, READ + "_2", WRITTEN):
            _remove(place)
        programs.KEPT.seek(0)
        programs.KEPT.truncate()


def _write(place: str, text: str) -> None:
    with open(place, "w") as file:
        file.write(text)


def _remove(place: str) -> None:
    if os.path.isdir(place):
        os.rmdir(place)
    elif os.path.exists(place):
        os.remove(place)


def _seed() -> None:
    random.seed(5)
    numpy.random.seed(5)
    programs.STREAM.seed(5)
    programs.GENERATOR.bit_generator.state = numpy.random.default_rng(5).bit_generator.state
    programs.STATE.seed(5)


def _left() -> tuple[Any, ...]:
    """What a program may have left behind."""
    files = {}
    for name in sorted(os.listdir(FOLDER)):
        place = os.path.join(FOLDER, name)
        files[name] = "folder" if os.path.isdir(place) else open(place, "rb").read()  # noqa: SIM115
    variables = {name: value for name, value in os.environ.items() if name.startswith(VARIABLE)}
    settings = signal.getsignal(programs.SIGNAL), sys.getrecursionlimit()
    return files, variables, settings, len(_caught)


def _called(subject: Any, framework: str, number: int) -> tuple[float, Any]:
    """The number that a program gives, and what it leaves behind."""
    with surroundings(number) as screen:
        _seed()
        found = float(numpy.asarray(subject(array(framework)))[0])
        return found, (_left(), screen.getvalue())


def _told(program: Program, captured: Any, framework: str, number: int) -> str:
    """What is wrong with a capture in these surroundings; empty if nothing is."""
    low, left = _called(program.run, framework, number)
    got, got_left = _called(captured, framework, number)
    high, _ = _called(program.run, framework, number)
    if program.judged == NOW:
        return "" if low - _NEARLY <= got <= high + _NEARLY else f"the clock stands still at {got:.3f}"
    if program.judged == FRESH:
        return "" if len({_called(captured, framework, number)[0] for _ in range(3)}) > 1 else "the same at each call"
    if abs(low - got) > _NEARLY:
        return f"{got} instead of {low}"
    if program.judged == SHOWN:
        return "" if left == got_left else UNSHOWN
    return "" if program.judged != DONE or left == got_left else f"{got_left} left behind instead of {left}"


def verdict(program: Program, framework: str) -> str:
    """How a capture stands beside the original."""
    for cached in (programs._cached_now, programs._cached_environment, programs._cached_list):
        cached.cache_clear()
    captured, told = _captured(program, framework)
    if captured is None:
        return told
    time.sleep(0.01)
    is_guarded = False
    for number in (1, 2, 2):
        try:
            told = _told(program, captured, framework, number)
        except GuardError:
            is_guarded = True
            continue
        if told == UNSHOWN:
            return UNSHOWN
        if told:
            return f"WRONG: {told}"
    return "guarded" if is_guarded else "right"


def _captured(program: Program, framework: str) -> tuple[Any, str]:
    """The capture, or None and what became of it."""
    given = array(framework)
    with surroundings(1):
        _seed()
        before = _left()
        states = random.getstate(), programs.STREAM.getstate(), repr(numpy.random.get_state())
        try:
            captured, told = clew.trace(program.run, (given,)), ""
        except CaptureError as error:
            is_told = any(home in str(error) for home in _HOMES)
            captured, told = None, "refused" if is_told else f"WRONG: no line of the user's: {error}"
        if _left() != before:
            return None, "WRONG: the capture itself acts on the outside"
        if (random.getstate(), programs.STREAM.getstate(), repr(numpy.random.get_state())) != states:
            return None, "WRONG: the capture moves a stream"
        return captured, told


assert DRAWN and outside_spellings
