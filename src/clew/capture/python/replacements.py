"""All replacements in plain Python for the time of a capture, whatever the framework.

In come the patches of a run and the surroundings of its program. In Python's own modules the replacements are the same
for every program, and worked out once; in the modules of a program they are looked for at each capture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType
from typing import Any

from clew.capture.patches import Patches, Stock
from clew.capture.python import clocks, files, imported_names, messages, random_numbers, screens, settings, system
from clew.capture.python.callers import asking_frame, is_of_program
from clew.capture.python.listener import CHANGES, LOGS, PRINTS, Listener, listening
from clew.capture.python.loggers import is_logger
from clew.capture.python.messages import Messages
from clew.capture.python.outside_reads import NumberText, Question
from clew.capture.recording.example_recorder import ExampleRecorder
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.state.containers import CHANGING
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.ir.source import is_installed

_RECORDERS = random_numbers.recorders()
_CONTAINERS = (dict, list, tuple, set, frozenset)
_MOST_ITEMS = 1000
_FUNCTIONS = (BuiltinFunctionType, MethodType)


def _replace_in_python(patches: Patches) -> None:
    for part in (clocks, random_numbers, system, settings, files, messages):
        part.install(patches)
    imported_names.replace_in_importers(patches)


_stock = Stock(_replace_in_python)


def install(patches: Patches) -> None:
    """Replace what is the same for every program."""
    patches.from_stock(_stock)
    system.install_for_people(patches)


def install_in(patches: Patches, surroundings: Surroundings, attributes: Iterable[dict[str, Any]] = ()) -> None:
    """Replace what the modules, classes and functions of a program hold, and these dicts of attributes."""
    namespaces = [*surroundings.namespaces.values(), *attributes]
    imported_names.replace_in(patches, namespaces, surroundings.closures())
    imported_names.replace_in_defaults(patches, surroundings.derived(_with_functions_as_defaults))
    imported_names.replace_in_classes(patches, surroundings.builtins_in_classes())
    random_numbers.install_in(patches, surroundings)
    settings.install_in(patches, surroundings)
    if surroundings.derived(_name_screens):
        screens.install(patches, messages.write)


@contextmanager
def hearing(listener: Listener, surroundings: Surroundings) -> Iterator[None]:
    """Tell a listener of what happens inside; what it could not be told of is refused, or guarded as it is now."""
    _check_held(surroundings)
    if surroundings.derived(clocks.names_today):
        raise CaptureError(
            "the program makes a date of the text of now",
            where=surroundings.line_naming("datetime64"),
            why=CHANGES,
            fixes=("pass the date as an argument",),
        )
    if surroundings.derived(_ask_for_arguments):
        listener.note(system.process_fact, ("sys.argv",), "sys.argv is unchanged")
    if surroundings.derived(_ask_loggers):
        messages.note_loggers(listener, [value for _, value in surroundings.held(is_logger)])
    if surroundings.held(system.is_decimal):
        listener.note(system.process_fact, ("decimal.getcontext",), "the context of decimal is unchanged")
    with listening(listener), settings.kept(listener, surroundings):
        yield


def _ask_for_arguments(functions: Iterable[FunctionType]) -> bool:
    """Whether code of a program names the arguments of the process, which it finds in a variable."""
    return _name(functions, _ARGUMENTS)


_ARGUMENTS = frozenset({"argv"})


def _name_screens(functions: Iterable[FunctionType]) -> bool:
    """Whether code of a program names the streams that people look at, or what writes to them."""
    return _name(functions, screens.WRITING)


def _ask_loggers(functions: Iterable[FunctionType]) -> bool:
    """Whether code of a program names attributes of loggers that others set."""
    return _name(functions, _OF_LOGGERS)


_OF_LOGGERS = frozenset("level disabled propagate handlers filters hasHandlers".split())


def _name(functions: Iterable[FunctionType], words: frozenset[str]) -> bool:
    """Whether code of a program names one of these, as text too."""
    codes = [one.__code__ for one in functions if not is_installed(one.__code__)]
    return any(not words.isdisjoint(found.co_names) or _has_text(found, words) for found in codes)


def _has_text(code: CodeType, words: frozenset[str]) -> bool:
    return any(isinstance(one, str) and one in words for one in code.co_consts)


def _check_held(surroundings: Surroundings) -> None:
    """Clocks and draws are replaced by name, which does not reach one that stands in a container."""
    for holder, name, value in surroundings.found:
        if _is_out_of_reach(value) and not surroundings.is_of_library(holder, name):
            raise _cannot_replace(value, f"as {name!r}", surroundings.line_naming(name))
        if type(value) not in _CONTAINERS or len(value) > _MOST_ITEMS or surroundings.is_of_library(holder, name):
            continue
        for one in value.values() if type(value) is dict else value:
            if type(one) in _FUNCTIONS and imported_names.gives_another(one):
                raise _cannot_replace(one, f"in {name!r}", surroundings.line_naming(name))
    for kind, name in surroundings.builtins_in_classes():
        value = imported_names.held_by_class(vars(kind).get(name))
        if _is_out_of_reach(value):
            where = surroundings.line_naming(name) or surroundings.line_naming("")
            raise _cannot_replace(value, f"as {kind.__name__}.{name}", where)


def _is_out_of_reach(value: Any) -> bool:
    """Whether a value is a function that gives another value at each call, and no name leads to its replacement."""
    return type(value) is BuiltinFunctionType and value in CHANGING and not imported_names.is_noted(value)


def _cannot_replace(function: Any, place: str, where: str) -> CaptureError:
    return CaptureError(
        f"the program holds {function.__qualname__}, which gives another value at each call, {place}",
        where=where,
        why="the capture could neither record nor refuse a call of it",
        fixes=(f"call {function.__qualname__} by its name",),
    )


def _with_functions_as_defaults(functions: Iterable[FunctionType]) -> list[FunctionType]:
    """The functions that have others, not written in Python, or bound methods, as default values."""
    found = []
    for one in functions:
        kinds = set(map(type, (*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values())))
        if not kinds.isdisjoint(_FUNCTIONS):
            found.append(one)
    return found


class RecordingListener(Listener):
    """The listener of a run on an example: clocks and draws are calls of the graph."""

    recorder: ExampleRecorder
    fixes = ('keep the function that does it as one call: clew.wrap("its_name") at module level',)
    kind = CannotFollow

    def __init__(self, recorder: ExampleRecorder) -> None:
        super().__init__(recorder)
        self._messages = Messages(recorder)

    def is_listening(self) -> bool:
        """Whether the program itself runs now, and not the inside of a recorded call."""
        return self.recorder.running and not self.recorder.depth

    def messages(
        self, frame: FrameType | None, what: str, is_shown: Callable[[], bool] | None = None
    ) -> Messages | None:
        """The graph tells what the program's own code tells, but for what the program may read again."""
        is_read = what != LOGS and screens.is_redirected()
        asking = asking_frame(frame) if what == PRINTS else frame  # Python's library prints for its caller
        return None if is_read or not is_of_program(self.caller(asking)) else self._messages

    def messages_of(self, frame: FrameType | None) -> Messages | None:
        """The same for a text that is on its way to be told, and for code that a capture has made."""
        return self._messages if frame is None else self.messages(frame, PRINTS)

    reads_texts = True

    def text(self, value: str, reader: Callable[[str], str], question: Question, name: str) -> Any:
        """The graph reads the text again."""
        recorder = self.recorder

        def rely() -> None:
            self.note(question, (name,), f"{name} ==")

        return NumberText.of(value, recorder, recorder.create(reader, (name,)), rely)

    def clock(self, name: str, value: Any) -> Any:
        """The graph reads the clock again."""
        return self.recorder.result(value, self.recorder.create(clocks.clock, (name,)))

    def draw(self, name: str, stream: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The graph draws again."""
        return _RECORDERS[name](self.recorder, stream, original, args, kwargs)

    def has_stream(self, stream: Any) -> bool:
        """Whether draws from a stream are followed."""
        return any(stream is own for own in self.recorder.streams.own)
