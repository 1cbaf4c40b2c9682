"""What a program tells people: it prints, logs and warns. Each is a call of the graph, which the capture does not make.

In comes what the program's own code tells; libraries tell for their own ends, and are let be. A text that is put
together in the call (``print(f"{n} rows")``) has to follow its values: a proxy gives a mark instead of its text where
the text goes nowhere but into the call, which is recorded with a template and the values. Out goes a node, and what is
to be told if the run counts as a call. What no node can tell is left out with a warning.
"""

from __future__ import annotations

import builtins
import functools
import io
import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from clew.capture.bytecode.statements import RECORDED, is_printed
from clew.capture.control_flow.raising import ENTRANCE, escaped, leaves_program, record_text, shown
from clew.capture.patches import Patches, original_in
from clew.capture.python.callers import asking_frame, is_file_of_python, is_of_program, is_of_python
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import LOGS, PRINTS, WARNS, Listener, attached, unheard
from clew.capture.python.loggers import own_handlers
from clew.capture.python.message_calls import MESSAGES, Place, log, place_of, print_to, warn
from clew.capture.python.screens import NAMES, Screen, action_of_warning, behind, is_redirected
from clew.capture.python.system import process_fact
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.recorder import Scalar
from clew.errors import TraceWarning, compose
from clew.ir.effects import pure
from clew.ir.source import PACKAGE_FOLDER, source_of_frame

_MARK = re.compile("\ue0c1(\\d+)\ue0c2")
_OPTIONS = frozenset({"sep", "end", "flush"})
_PLAIN = frozenset({str, int, float, complex, bool, type(None), bytes})
_LOGGING = "debug info warning warn error exception critical fatal log".split()
_OF_MODULE = frozenset(getattr(logging, name).__code__ for name in _LOGGING if hasattr(logging, name))
RECORDED.update(
    vars(home)[name]
    for home in (logging, logging.Logger, logging.LoggerAdapter)
    for name in _LOGGING
    if name in vars(home)
)
RECORDED.update((*MESSAGES, warnings.warn))


def install(patches: Patches) -> None:
    """Let what prints, logs and warns report to the listener."""
    patches.in_dict(vars(builtins), "print", noted(_printing))
    patches.in_dict(vars(warnings), "warn", noted(_warning))
    patches.on_class(logging.Logger, "_log", _logging)
    patches.on_class(logging.Logger, "isEnabledFor", _asking_for_level)
    patches.on_class(logging.Logger, "getEffectiveLevel", _asking_for_level)
    patches.in_dict(vars(logging), "basicConfig", _configuring)


def _printing(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def report(*args: Any, **kwargs: Any) -> None:
        listener, frame = attached(), sys._getframe(1)
        messages = None if listener is None else listener.messages(frame, PRINTS)
        if messages is None or not messages.prints(original, args, kwargs, frame):
            original(*args, **kwargs)

    return report


def _logging(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def _log(self: Any, level: int, msg: Any, args: Any, *rest: Any, **kwargs: Any) -> None:
        messages = _messages_of_logger(self, level, asking_frame(sys._getframe(1)))
        if messages is None or rest or not messages.logs(self, level, msg, args, kwargs):
            if len(rest) < _STACKLEVEL:
                kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1  # past this function
            original(self, level, msg, args, *rest, **kwargs)

    return _log


_STACKLEVEL = 4
"""The place of that argument behind those that every message has."""


def _messages_of_logger(logger: Any, level: int, frame: FrameType | None) -> Messages | None:
    """What records a message of a logger, which this frame asks for; None if the call itself is made."""
    listener = attached()
    if listener is None or frame is None or not is_of_program(listener.caller(frame)):
        return None
    if own_handlers(logger) or (not logger.hasHandlers() and is_redirected()):  # the program may read what is logged
        if listener.is_listening():
            _note_level(listener, logger)
        return None
    return listener.messages(frame, LOGS, functools.partial(_note_level, listener, logger, level))


def _asking_for_level(original: Callable[..., Any]) -> Callable[..., Any]:
    """What the program's own code asks of the level of a logger is guarded. What logs asks as well: the answer is that
    of the call, because the graph asks when it logs."""

    @functools.wraps(original)
    def ask(self: Any, *args: Any) -> Any:
        frame = sys._getframe(1)
        listener = attached()
        if listener is None or not listener.is_listening():
            return original(self, *args)
        if is_of_program(listener.caller(frame)) or _process_is_own(frame):
            _note_level(listener, self)
        elif args and is_file_of_python(frame.f_code.co_filename):
            return _messages_of_logger(self, args[0], asking_frame(frame)) is not None or original(self, *args)
        return original(self, *args)

    return ask


def _process_is_own(frame: FrameType) -> bool:
    """Whether an adapter of the program's own asks, which does more than hand a message on."""
    adapter = frame.f_locals.get("self") if frame.f_code.co_name == "isEnabledFor" else None
    return isinstance(adapter, logging.LoggerAdapter) and type(adapter).process is not logging.LoggerAdapter.process


@pure
def logger_level(name: str) -> int:
    """The level from which on a logger writes."""
    return logging.getLogger(name or None).getEffectiveLevel()


def _note_level(listener: Listener, logger: Any, level: int | None = None) -> bool:
    """Guard the level of a logger; whether it lets a message of this level through."""
    is_root = logger.parent is None
    listener.note(logger_level, ("" if is_root else logger.name,), f"the level of {logger.name} is unchanged")
    with unheard():
        return level is not None and bool(logger.isEnabledFor(level))


@pure
def logger_settings(name: str) -> tuple[Any, ...]:
    """What a program may ask a logger for by its attributes."""
    one = logging.getLogger(name or None)
    counts = len(one.handlers), len(one.filters)
    return one.level, one.getEffectiveLevel(), one.disabled, one.propagate, one.hasHandlers(), *counts


def note_loggers(listener: Listener, values: list[Any]) -> None:
    """Guard the attributes of loggers, and of what hands on to them."""
    for value in values:
        logger = logging.root if value is logging else getattr(value, "logger", value)
        name = "" if logger is logging.root else logger.name
        if logging.getLogger(name or None) is logger:
            listener.note(logger_settings, (name,), f"the level and the handlers of {logger.name} are unchanged")


def _configuring(original: Callable[..., None]) -> Callable[..., None]:
    """Functions of ``logging`` make a handler where there is none; the graph does so when it logs."""

    @functools.wraps(original)
    def basic_config(**kwargs: Any) -> None:
        listener, frame = attached(), sys._getframe(1)
        if (
            listener is None
            or frame.f_code not in _OF_MODULE
            or asking_frame(frame) is not frame.f_back
            or not is_of_program(listener.caller(frame.f_back))
        ):
            original(**kwargs)

    return basic_config


def _warning(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def report(*args: Any, **kwargs: Any) -> None:
        listener, frame = attached(), sys._getframe(1)
        messages = None if listener is None else listener.messages(frame, WARNS)
        if messages is not None and messages.warns(frame, *args, **kwargs):
            return
        if len(args) > 2:
            args = (*args[:2], args[2] + 1, *args[3:])  # past this function
        else:
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        original(*args, **kwargs)

    return report


def write(screen: Screen, texts: tuple[Any, ...], options: dict[str, Any], frame: FrameType) -> bool:
    """Something is written to a screen; whether it is recorded as what a program prints."""
    listener = attached()
    messages = None if listener is None else listener.messages(frame, PRINTS)
    if messages is None or not all(isinstance(one, str) for one in texts):
        return False
    file = {} if screen.name == "stdout" else {"file": screen}
    return messages.prints(original_in(vars(builtins), "print"), texts, options | file, frame)


RECORDED.update((Screen.write, Screen.writelines))


class _Told:
    """A value of which only the text is left."""

    def __init__(self, text: str, shown: str) -> None:
        self._text, self._shown = text, shown

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._shown


_NO_ERRORS = "no node can hold an error or the calls that led to it"
_NO_OBJECTS = "no node can hold the object that is shown"
_WORDS = {
    PRINTS: "print what the program prints",
    LOGS: "log what the program logs",
    WARNS: "warn of what the program warns of",
}


class Messages:
    """What one run tells people."""

    def __init__(self, recorder: ExampleRecorder) -> None:
        self.recorder = recorder
        self._marked: list[tuple[str, Any]] = []
        """Fields of templates, each with the value that it shows."""

    def mark(self, field: str, value: Any) -> str:
        """What stands for the text of a value until it is told; ``field`` is that of a template."""
        self._marked.append((field.replace("{:}", "{}"), value))
        return f"\ue0c1{len(self._marked) - 1}\ue0c2"

    @property
    def is_recording(self) -> bool:
        """Whether what the program does now is recorded, and not a piece of it on plain values, or a recorded call."""
        recorder = self.recorder
        return recorder.open and recorder.running and not recorder.depth

    def prints(self, original: Callable[..., None], args: Any, kwargs: dict[str, Any], frame: FrameType) -> bool:
        """The program prints; False if that is a call like any other, because the program may read the file."""
        file = kwargs.get("file")
        name = next((name for name in NAMES if behind(file) is behind(getattr(sys, name))), None)
        if file is not None and name is None:
            return False
        options = {key: value for key, value in kwargs.items() if key != "file"}
        self.recorder.acts.append(self._printed_later(original, args, options, name))
        if not self.is_recording:  # a node does again what runs now
            return True
        if not _OPTIONS.issuperset(options) or not all(map(self._can_be_told, (*args, *options.values()))):
            self._left_out(PRINTS, frame, _NO_OBJECTS)
            return True
        if frame.f_globals.get("__name__") == traceback.__name__:
            self._left_out(
                PRINTS, asking_frame(frame) or frame, "no node can hold an error or the calls that led to it"
            )
            return True
        given = tuple(map(self._argument, args))
        if file is None:
            self.recorder.tell(original, given, options)
        else:
            sep, end, flush = (options.get(one) for one in ("sep", "end", "flush"))
            spaced = " " if sep is None else sep, "\n" if end is None else end, bool(flush)
            self.recorder.tell(print_to, (name, *spaced, *given), {})
        return True

    def logs(self, logger: Any, level: int, message: Any, args: Any, options: dict[str, Any]) -> bool:
        """A logger is given a message; False if the call itself has to be made."""
        inner = sys._getframe(2)
        frame = asking_frame(inner)
        assert frame is not None
        problem = self._problem_of_log(logger, (message, options.get("extra"), *args), options)
        if problem:
            self._left_out(LOGS, frame, problem)
            return True
        is_of_module = inner.f_back is not None and inner.f_back.f_code in _OF_MODULE
        name = None if is_of_module else logger.name
        place = _further_out(frame, options.get("stacklevel", 1))
        self._tell(log, place, name, level, options.get("extra"), message, *args)
        return True

    def _problem_of_log(self, logger: Any, told: tuple[Any, ...], options: dict[str, Any]) -> str:
        """Why no node can log; empty if one can."""
        if logging.getLogger(logger.name) is not logger:
            return "the logger is not to be found by its name"
        if options.get("stack_info") or (options.get("exc_info") and any(sys.exc_info())):
            return _NO_ERRORS
        return "" if all(map(self._can_be_told, told)) else _NO_OBJECTS

    def warns(
        self, frame: FrameType, message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **more: Any
    ) -> bool:
        """The program warns; False if the call itself has to be made."""
        is_made = isinstance(message, Warning)
        kind, args = (type(message), message.args) if is_made else (category or UserWarning, (message,))
        place = _further_out(frame, stacklevel)
        module, line = ("", 0) if isinstance(place, int) else place[:2]
        texts = [self._text(one) if type(one) is str else self.recorder.concrete(one) for one in args]
        with self.recorder.paused():
            action, is_programs = action_of_warning(kind, str(kind(*texts)), module, line)
        listener = attached()
        if listener is not None and (action == "error" or not leaves_program()):
            listener.note(process_fact, ("warnings.filters",), "the same warnings are errors")
        if action == "error":
            return False  # raises, as it does without a capture
        if is_programs and action == "ignore":
            return True
        if more or source is not None or not all(map(self._can_be_told, args)):
            self._left_out(WARNS, frame, _NO_OBJECTS)
            return True
        self._tell(warn, place, kind, action if is_programs else None, *args)
        return True

    def _tell(self, function: Callable[..., None], *args: Any) -> None:
        """Record a call, and make it if the run counts as a call, with what the values are now."""
        self.recorder.acts.append(functools.partial(function, *map(self._as_now, args)))
        if self.is_recording:
            self.recorder.tell(function, (args[0], *map(self._argument, args[1:])), {})

    def _as_now(self, value: Any) -> Any:
        """What is told of a value later on, however it changes until then."""
        if type(value) is str:
            return self._text(value)
        plain = self.recorder.concrete(value)
        if type(plain) in _PLAIN or isinstance(plain, (type, tuple)):
            return plain
        with self.recorder.paused():
            return plain if type(plain) is dict else _Told(str(plain), repr(plain))

    def is_recorded_again(self, function: Callable[..., None], args: tuple[Any, ...]) -> bool:
        """Code that a capture has made tells something, which is recorded as it is."""
        self._tell(function, *args)
        return True

    def _left_out(self, what: str, frame: FrameType, why: str) -> None:
        if self.is_recording:
            line = source_of_frame(frame)
            text = compose(
                f"the graph will not {_WORDS[what]}", line.describe(), why, ("tell arrays, numbers and texts",)
            )
            warnings.warn_explicit(text, TraceWarning, line.filename, line.lineno)

    def _printed_later(
        self, original: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None
    ) -> Callable[[], None]:
        """What prints a text later on as it is now, however the values in it change until then."""
        text, flush = io.StringIO(), bool(kwargs.get("flush"))
        filled = tuple(self._text(one) if type(one) is str else self.recorder.concrete(one) for one in args)
        with self.recorder.paused():
            original(*filled, **kwargs | {"file": text, "flush": False})
        if name is None:
            return functools.partial(original, text.getvalue(), end="", flush=flush)
        return functools.partial(print_to, name, "", "", flush, text.getvalue())

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

    def _can_be_told(self, value: Any) -> bool:
        """Whether a value is one that a node may hold, and shows what it is: no object of the user's."""
        kind = type(value)
        if kind in _PLAIN or isinstance(value, Scalar) or self.recorder.is_array(value):
            return True
        if isinstance(value, (tuple, list)):
            return all(map(self._can_be_told, value))
        if kind is dict:
            return all(type(key) in _PLAIN and self._can_be_told(item) for key, item in value.items())
        return self.recorder.known(value) is not None


def _further_out(frame: FrameType, levels: int) -> Place:
    """The place so many calls further out, as loggers and warnings count; one outside of the program is a number."""
    found: FrameType | None = frame
    left, is_same = levels - 1, False
    while left > 0 and found is not None:
        found = found.f_back
        file = "" if found is None else found.f_code.co_filename
        if found is not None and file.startswith(PACKAGE_FOLDER):
            if found.f_code.co_name == ENTRANCE:
                return left
            is_same = is_same or os.path.basename(os.path.dirname(file)) == "control_flow"
        elif is_same:  # a loop or branch of the same function
            is_same = False
        else:
            left -= 1
    return ("sys", 0, "", "<sys>") if found is None else place_of(found)


def marked(frame: FrameType | None, field: str, value: Any) -> str | None:
    """A mark for the text of a value, if the statement that ``frame`` executes tells that and does nothing else."""
    listener = attached()
    messages = None if listener is None or frame is None else listener.messages_of(frame)
    if frame is None or messages is None or not messages.is_recording or not _is_asked_by(frame):
        return None
    return messages.mark(field, value) if is_printed(frame) else None


def _is_asked_by(frame: FrameType) -> bool:
    """Whether a frame itself wants a text, and no function of Python's library that may look into it."""
    between: FrameType | None = sys._getframe(2)
    while between is not None and between is not frame:
        if is_of_python(between.f_code):
            return False
        between = between.f_back
    return between is frame
