"""What a program prints: a call of the graph, which the capture itself does not make.

In comes each ``print`` of the program's own code. A text that is put together in the call (``print(f"{n} rows")``) has
to follow its values: a proxy gives a mark instead of its text where the text goes nowhere but into the call, which is
recorded with a template and the values. Out goes a node, and what is to be printed if the run counts as a call.
"""

from __future__ import annotations

import builtins
import functools
import io
import re
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from clew.capture.bytecode.statements import is_printed
from clew.capture.control_flow.raising import escaped, record_text, shown
from clew.capture.patches import Patches
from clew.capture.python.callers import is_of_python
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import attached
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.recorder import Scalar
from clew.errors import TraceWarning, compose
from clew.ir.source import source_of_frame

_MARK = re.compile("\ue0c1(\\d+)\ue0c2")
_OPTIONS = frozenset({"sep", "end", "flush"})
_PLAIN = frozenset({str, int, float, complex, bool, type(None), bytes})


def install(patches: Patches) -> None:
    """Let ``print`` report to the listener."""
    patches.in_dict(vars(builtins), "print", noted(_reporting))


def _reporting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def report(*args: Any, **kwargs: Any) -> None:
        listener, frame = attached(), sys._getframe(1)
        prints = None if listener is None else listener.prints(frame)
        if prints is None or kwargs.get("file") is not None:  # the program may read the file
            if (
                prints is not None
                and prints.is_recording
                and any(kwargs["file"] is one for one in (sys.stdout, sys.stderr))
            ):
                _warn(frame)
            original(*args, **kwargs)
        elif not prints.heard(original, args, kwargs):
            _warn(frame)

    return report


def _warn(frame: FrameType) -> None:
    line = source_of_frame(frame)
    what = "the graph will not print what the program prints"
    why = "no node can hold the object that is shown, or the file"
    text = compose(what, line.describe(), why, ("print arrays, numbers and texts",))
    warnings.warn_explicit(text, TraceWarning, line.filename, line.lineno)


class Prints:
    """What one run prints."""

    def __init__(self, recorder: ExampleRecorder) -> None:
        self.recorder = recorder
        self._marked: list[tuple[str, Any]] = []
        """Fields of templates, each with the value that it shows."""

    def mark(self, field: str, value: Any) -> str:
        """What stands for the text of a value until ``print`` is called; ``field`` is that of a template."""
        self._marked.append((field.replace("{:}", "{}"), value))
        return f"\ue0c1{len(self._marked) - 1}\ue0c2"

    @property
    def is_recording(self) -> bool:
        """Whether what the program does now is recorded, and not a piece of it on plain values, or a recorded call."""
        recorder = self.recorder
        return recorder.open and recorder.running and not recorder.depth

    def heard(self, original: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """The program has called ``print``, which shows something later if the run counts as a call; False if the graph
        cannot do that."""
        self.recorder.acts.append(self._later(original, args, kwargs))
        if not self.is_recording:  # a node does again what runs now
            return True
        can_be_shown = _OPTIONS.issuperset(kwargs) and all(map(self._can_be_shown, (*args, *kwargs.values())))
        if can_be_shown:
            self.recorder.tell(original, tuple(map(self._argument, args)), kwargs)
        return can_be_shown

    def _filled(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of ``print`` as they are in the example."""
        return tuple(self._text(one) if type(one) is str else self.recorder.concrete(one) for one in args)

    def _later(
        self, original: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[[], None]:
        """What prints a text later on as it is now, however the values in it change until then."""
        screen, flush = io.StringIO(), bool(kwargs.get("flush"))
        with self.recorder.paused():
            original(*self._filled(args), **kwargs | {"file": screen, "flush": False})
        return functools.partial(original, screen.getvalue(), end="", flush=flush)

    def _argument(self, value: Any) -> Any:
        if type(value) is str:
            template, values = self._template(value)
            return record_text(self.recorder, template, values) if values else value
        return shown(self.recorder, value)

    def _template(self, text: str) -> tuple[str, list[Any]]:
        """A text with marks as a template with its values."""
        pieces, values = _MARK.split(text), []
        for place in range(1, len(pieces), 2):
            pieces[place], value = self._marked[int(pieces[place])]
            values.append(value)
        pieces[::2] = map(escaped, pieces[::2])
        return "".join(pieces), values

    def _text(self, text: str) -> str:
        template, values = self._template(text)
        with self.recorder.paused():
            return template.format(*map(self.recorder.concrete, values)) if values else text

    def _can_be_shown(self, value: Any) -> bool:
        """Whether a value is one that a node may hold, and shows what it is: no object of the user's."""
        kind = type(value)
        if kind in _PLAIN or isinstance(value, Scalar) or self.recorder.is_array(value):
            return True
        if isinstance(value, (tuple, list)):
            return all(map(self._can_be_shown, value))
        if kind is dict:
            return all(type(key) in _PLAIN and self._can_be_shown(item) for key, item in value.items())
        return self.recorder.known(value) is not None


def marked(frame: FrameType | None, field: str, value: Any) -> str | None:
    """A mark for the text of a value, if the statement that ``frame`` executes prints that and does nothing else."""
    listener = attached()
    prints = None if listener is None or frame is None else listener.prints(frame)
    if frame is None or prints is None or not prints.is_recording or not _is_asked_by(frame) or not is_printed(frame):
        return None
    return prints.mark(field, value)


def _is_asked_by(frame: FrameType) -> bool:
    """Whether a frame itself wants a text, and no function of Python's library that may look into it."""
    between: FrameType | None = sys._getframe(2)
    while between is not None and between is not frame:
        if is_of_python(between.f_code):
            return False
        between = between.f_back
    return between is frame
