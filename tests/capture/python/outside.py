"""The judge of programs that look outside: a capture gives what the original gives in changed surroundings, or refuses.

Comes in: a program and an array of a framework. Goes out: ``right``, ``guarded`` (``GuardError`` at a call),
``refused`` (``CaptureError`` at the capture, with the user's line), ``told`` (a ``TraceWarning`` says that text is left
out) or ``WRONG: why``.
`python -m tests.capture.python` prints the table of all programs and frameworks.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import os
import pathlib
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy

import clew
from clew.errors import CaptureError, GuardError, TraceWarning
from tests.capture.python import outside_messages, outside_settings, outside_spellings
from tests.capture.python import outside_programs as programs
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
TOLD = "told"
"""The verdict where a result is right, and the capture has told that text for people is not shown again."""
_NEARLY = 1e-3
_HOMES = tuple(f"outside_{name}.py" for name in ("programs", "spellings", "helpers", "messages", "settings"))
_OF_PROGRAMS = ("a text", "rows", "failed", "a key")
_LOGGED = "%(levelname)s %(name)s %(filename)s:%(lineno)d %(funcName)s %(message)s"
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
    handler.setFormatter(logging.Formatter(_LOGGED))
    roots = list(logging.root.handlers)
    signals = signal.signal(programs.SIGNAL, _catch)
    _caught.clear()
    programs.LOGGER.addHandler(handler)
    programs.LOGGER.setLevel(logging.DEBUG if number > 1 else logging.WARNING)
    sys.stdin = io.StringIO(f"{number}\n" * 9)
    try:
        with (
            contextlib.redirect_stdout(screen),
            contextlib.redirect_stderr(screen),
            warnings.catch_warnings(),
            outside_settings.as_found(),
        ):
            warnings.simplefilter("always")
            if number > 1:
                warnings.simplefilter("error", BytesWarning)
            yield screen
    finally:
        programs.LOGGER.setLevel(logging.NOTSET)
        logging.root.handlers[:] = roots
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
        files[name] = b"folder" if os.path.isdir(place) else pathlib.Path(place).read_bytes()
    variables = {name: value for name, value in os.environ.items() if name.startswith(VARIABLE)}
    settings = signal.getsignal(programs.SIGNAL), sys.getrecursionlimit()
    return files, variables, settings, len(_caught), outside_settings.left()


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
        return "" if left == got_left else f"{got_left[1]!r} shown instead of {left[1]!r}"
    return "" if program.judged != DONE or left == got_left else f"{got_left} left behind instead of {left}"


def verdict(program: Program, framework: str) -> str:
    """How a capture stands beside the original."""
    for cached in (programs._cached_now, programs._cached_environment, programs._cached_list):
        cached.cache_clear()
    outside_settings.look_at(framework)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", TraceWarning)
        captured, told = _captured(program, framework)
    is_told = any(issubclass(one.category, TraceWarning) for one in found)
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
        if told and not (is_told and program.judged == SHOWN):
            return f"WRONG: {told}"
    if is_told:
        return TOLD
    return "guarded" if is_guarded else "right"


def _captured(program: Program, framework: str) -> tuple[Any, str]:
    """The capture, or None and what became of it."""
    given = array(framework)
    with surroundings(1) as screen:
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
        if any(word in screen.getvalue() for word in _OF_PROGRAMS):
            return None, f"WRONG: the capture itself shows {screen.getvalue()!r}"
        if (random.getstate(), programs.STREAM.getstate(), repr(numpy.random.get_state())) != states:
            return None, "WRONG: the capture moves a stream"
        return captured, told


assert DRAWN and outside_spellings and outside_messages
