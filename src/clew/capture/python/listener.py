"""The listener of a run, which is told of plain Python: of clocks, random numbers, the environment and files.

The replacements are the same for all frameworks: they ask for the listener of the run in this context, and are the
originals where there is none. By default a listener refuses what gives another value at each call, and guards what is
read; a framework whose graph can hold such a call records it instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any

from clew.capture.python.callers import asking_frame, is_importing, is_of_program, line_of_program
from clew.capture.python.outside_reads import Question
from clew.capture.recording.recorder import Recorder
from clew.errors import CaptureError
from clew.ir.source import is_hidden

if TYPE_CHECKING:
    from clew.capture.python.messages import Messages

CHANGES = "it gives another value at each call, which the graph would not"
PRINTS, LOGS, WARNS = "print", "log", "warn"
"""The ways of telling people something."""
ONCE = "no call of the graph would do it again"


class Listener:
    """What one run does with calls of plain Python: clocks, draws, files, the environment."""

    fixes: tuple[str, ...] = ("pass the value as an argument", "do it before or after the program")
    kind: type[CaptureError] = CaptureError
    """The error for what the program cannot be followed through."""
    through: tuple[str, ...] = ()
    """Folders of packages that act for whoever called them, as Python's library does."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def is_listening(self) -> bool:
        """Whether the program itself runs now, and not something that the capture does for itself."""
        return self.recorder.running

    def caller(self, frame: FrameType | None) -> FrameType | None:
        """The frame that has called, past what a framework puts in between."""
        return frame

    def is_own(self, frame: FrameType | None) -> bool:
        """Whether the program's own code has called, without a library in between."""
        return is_of_program(self.caller(frame))

    def is_asked(self, frame: FrameType | None) -> bool:
        """Whether the program's own code asks, or a library that acts for it."""
        return is_of_program(asking_frame(frame, self.through))

    def hears(self, frame: FrameType | None) -> bool:
        """Whether the program, or a package that it uses, acts: not the framework for its own ends."""
        found = asking_frame(frame, self.through)
        return found is not None and not is_hidden(found.f_code)

    def messages(
        self, frame: FrameType | None, what: str, is_shown: Callable[[], bool] | None = None
    ) -> Messages | None:
        """What the graph tells people, if it does so where ``frame`` prints, logs or warns; ``is_shown`` guards that
        people are shown it now, or not."""
        return None

    def messages_of(self, frame: FrameType | None) -> Messages | None:
        """The same for a text that is on its way to be told, and for code that a capture has made."""
        return None

    def note(self, question: Question, args: tuple[Any, ...], text: str) -> None:
        """The program has asked the world outside for something that can be asked again: it is guarded."""
        with unheard():  # the question itself is none of the program's
            self.recorder.code.outside_reads.note(question, args, text)

    reads_texts = False
    """Whether the graph may read a text again that the program makes a number of."""

    def text(self, value: str, reader: Callable[[str], str], question: Question, name: str) -> Any:
        """A text of this name from outside, which the program makes a number of: ``reader`` gives it."""
        return value

    def clock(self, name: str, value: Any) -> Any:
        """The program reads the clock of this name in ``time``."""
        raise self.refusal(f"reading a clock, time.{name}(),", CHANGES)

    def draw(self, name: str, stream: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The program draws from a stream, or from that behind ``random`` if it is None, by the method ``name``."""
        raise self.refusal(f"random.{name}" if stream is None else f"{name} of a random.Random", CHANGES)

    def has_stream(self, stream: Any) -> bool:
        """Whether draws from a ``random.Random`` count: it is one from around the program."""
        return False

    def refuse_act(self, what: str, frame: FrameType | None) -> None:
        """The program acts on the world outside: raise; what a module does as it is imported is done once."""
        if self.hears(frame) and not is_importing():
            raise self.refusal(what, ONCE, CaptureError)

    def refusal(self, what: str, why: str = CHANGES, kind: type[CaptureError] | None = None) -> CaptureError:
        """The error for something that the graph could not do, with the line of the program."""
        return (kind or self.kind)(f"{what} cannot be captured", where=self.line(), why=why, fixes=self.fixes)

    def line(self) -> str:
        """The line of the program that runs now."""
        return line_of_program()

    def refusal_at(self, what: str, why: str, where: str) -> CaptureError:
        """The error for something that was found out after the program has run, with its line."""
        return CaptureError(f"{what} cannot be captured", where=where, why=why, fixes=self.fixes)


_listening: ContextVar[Listener | None] = ContextVar("clew_python_listener", default=None)


def attached() -> Listener | None:
    """The listener of the capture in this context, also while something runs that is not recorded."""
    return _listening.get()


def current() -> Listener | None:
    """The listener of the capture whose program runs right now, in this context."""
    listener = _listening.get()
    return listener if listener is not None and listener.is_listening() else None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell this listener of what happens inside."""
    token = _listening.set(listener)
    try:
        yield
    finally:
        _listening.reset(token)


@contextmanager
def unheard() -> Iterator[None]:
    """Tell nobody of what happens inside."""
    token = _listening.set(None)
    try:
        yield
    finally:
        _listening.reset(token)


def own_listener(depth: int = 2) -> Listener | None:
    """The listener, if the program's own code has called the caller of this function."""
    listener = current()
    return listener if listener is not None and listener.is_own(sys._getframe(depth)) else None


def asked_listener(depth: int = 2) -> Listener | None:
    """The listener, if the program's own code has called the caller of this function, or has let a library do so."""
    listener = current()
    return listener if listener is not None and listener.is_asked(sys._getframe(depth)) else None
