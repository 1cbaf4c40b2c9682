"""Hard programs of any framework, and the judge: each call gives what the original gives, or is refused.

A maker builds a program anew, with the world around it: an object whose attributes the program may use and change. The
calls are tuples of arguments, the first one is the example; a function among them changes the world between two calls.
A program whose capture must be refused says why, so that gaps are data. Never may a call be silently different.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from clew.errors import CaptureError, ClewError

EQUAL, REFUSED = "equal", "refused"


class Program(NamedTuple):
    """How a program is made from a world, its calls, and why it is refused, if it is."""

    make: Callable[[Any], Callable[..., Any]]
    calls: tuple[Any, ...]
    refused: str = ""


class Register(dict[str, Program]):
    """Programs by name."""

    def program(self, *calls: Any, refused: str = "") -> Callable[[Any], Any]:
        """Register a function that has no world."""

        def register(function: Any) -> Any:
            self._add(function.__name__, Program(lambda world: function, calls, refused))
            return function

        return register

    def made(self, *calls: Any, refused: str = "") -> Callable[[Any], Any]:
        """Register a maker: it fills the world that it is given and returns the program."""

        def register(make: Any) -> Any:
            self._add(make.__name__, Program(make, calls, refused))
            return make

        return register

    def _add(self, name: str, program: Program) -> None:
        assert name not in self, name
        self[name] = program


class Judge:
    """Compares captures with originals; ``difference`` tells in words what differs between two values."""

    def __init__(self, difference: Callable[[Any, Any], str], copied: Callable[[Any], Any], reset: Callable[[], None]):
        self.difference = difference
        self.copied = copied
        self.reset = reset

    def outcomes(self, program: Program, capture: Callable[..., Any]) -> list[str]:
        """Equal or refused for each call; an AssertionError where one is silently different."""
        ours, captured = self._captured(program, capture)
        if captured is None:
            return [REFUSED]
        self.reset()
        found = self._records(program.calls, captured, ours)
        kept = [call for call, record in zip(program.calls, found, strict=True) if record is not None]
        self.reset()
        theirs = SimpleNamespace()
        original = program.make(theirs)
        wanted = iter(self._records(kept, original, theirs))
        for place, record in enumerate(found):
            if record is not None:
                told = self.difference(next(wanted), record)
                assert not told, f"call {place}: {told}"
        return [REFUSED if record is None else EQUAL for record in found]

    def _captured(self, program: Program, capture: Callable[..., Any]) -> tuple[Any, Any]:
        self.reset()
        world = SimpleNamespace()
        source = program.make(world)
        before, arguments = self._picture(world), self.copied(program.calls[0])
        try:
            captured = capture(source, arguments)
        except CaptureError:
            captured = None
        except Exception as error:  # noqa: BLE001 - then the original raises it too
            self._check_error(program, error)
            captured = None
        told = self.difference(before, self._picture(world))
        assert not told, f"the capture changed the world: {told}"
        told = self.difference(self.copied(program.calls[0]), arguments)
        assert not told, f"the capture changed the arguments: {told}"
        return world, captured

    def _check_error(self, program: Program, error: Exception) -> None:
        original = program.make(SimpleNamespace())
        try:
            original(*self.copied(program.calls[0]))
        except type(error):
            return
        raise error

    def _picture(self, world: Any) -> Any:
        """What the world holds, apart from functions."""
        return {name: self.copied(value) for name, value in vars(world).items() if not callable(value)}

    def _records(self, calls: Any, subject: Any, world: Any) -> list[Any]:
        """What each call gives, prints and leaves behind; None where Clew refuses it."""
        found: list[Any] = []
        for call in calls:
            if callable(call):
                call(world)
                found.append(())
                continue
            arguments, shown = self.copied(call), io.StringIO()
            before = self._picture(world)
            try:
                with contextlib.redirect_stdout(shown):
                    result = subject(*arguments)
            except ClewError:
                told = self.difference((self.copied(call), before), (arguments, self._picture(world)))
                assert not told, f"a refused call left a mark: {told}"
                found.append(None)
                continue
            except Exception as error:  # noqa: BLE001 - an error of the program is its result
                result = type(error).__name__
            found.append((self.copied(result), arguments, self._picture(world), shown.getvalue()))
        return found


def lazily(capture: Any) -> Callable[[Any, Any], Any]:
    """A capture that waits for its first call."""
    return lambda fn, arguments: capture(fn)


def checked(outcomes: list[str], program: Program) -> None:
    """The example itself is captured, unless the program says why not."""
    if program.refused:
        assert outcomes == [REFUSED], "this is captured now: take the reason away"
    else:
        assert outcomes[0] == EQUAL, "the example is refused"


copy_of = copy.deepcopy
