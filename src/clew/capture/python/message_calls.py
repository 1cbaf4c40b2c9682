"""The calls by which a graph tells people something: what is printed to a screen, logged, warned of.

Each takes plain text and values, and the place in the program that tells it, and asks for screens, loggers, levels and
filters when it runs: what is set after the capture counts. Code for people shows them as the program wrote them.
"""

from __future__ import annotations

import builtins
import logging
import sys
import warnings
from types import FrameType
from typing import Any

from clew.capture.python.listener import attached
from clew.codegen.scope import Scope
from clew.codegen.statements import SHOWN, arguments
from clew.ir.source import is_hidden

Place = tuple[str, int, str, "str | None"] | int
"""The Python module, line and function that tells something, and the file if it is not the module's; or how many calls
further out than the program it lies."""
_LEVELS = ("debug", "info", "warning", "error", "critical")


def place_of(frame: FrameType) -> Place:
    """The place that runs in a frame."""
    code, name = frame.f_code, str(frame.f_globals.get("__name__", "<string>"))
    file = None if _file_of(name) == code.co_filename else code.co_filename
    return name, frame.f_lineno, code.co_name, file


def _file_of(module: str) -> str:
    return str(getattr(sys.modules.get(module), "__file__", None) or module)


def _found(place: Place) -> tuple[str, int, str, str]:
    """A place as module, line, function and file; one further out is looked for from here on."""
    if isinstance(place, int):
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and (is_hidden(frame.f_code) or frame.f_code.co_filename.startswith("<clew")):
            frame = frame.f_back
        for _ in range(place - 1):
            frame = None if frame is None else frame.f_back
        if frame is None:
            return "sys", 0, "", "<sys>"
        place = place_of(frame)
        assert not isinstance(place, int)
    return *place[:3], place[3] or _file_of(place[0])


def print_to(screen: str, sep: str, end: str, flush: bool, *values: Any) -> None:
    """Print to a stream of ``sys``, the one that is there now."""
    stream = {"stdout": sys.stdout, "stderr": sys.stderr}[screen]
    if not _is_recorded(print_to, screen, sep, end, flush, *values):
        print(*values, sep=sep, end=end, file=stream, flush=flush)


def log(place: Place, logger: str | None, level: int, extra: dict[str, Any] | None, message: Any, *args: Any) -> None:
    """Let a logger write a message, if its level at this time lets it; None is for the functions of ``logging``."""
    if _is_recorded(log, place, logger, level, extra, message, *args):
        return
    if logger is None and not logging.root.handlers:
        logging.basicConfig()
    found = logging.getLogger(logger)
    if found.isEnabledFor(level):
        _, line, function, file = _found(place)
        found.handle(found.makeRecord(found.name, level, file, line, message, args, None, function, extra))


def warn(place: Place, category: type[Warning], action: str | None, *args: Any) -> None:
    """Warn, as the filters at this time say; ``action`` is that of filters which the program itself has set."""
    if _is_recorded(warn, place, category, action, *args):
        return
    if not issubclass(category, Warning):
        raise TypeError(f"{category} is no class of warnings")
    module, line, _, file = _found(place)
    names = vars(sys.modules[module]) if module in sys.modules else {}
    told = category(*args), category, file, line, module, names.setdefault("__warningregistry__", {})
    if action is None:
        warnings.warn_explicit(*told)
        return
    with warnings.catch_warnings():
        warnings.simplefilter(action)  # type: ignore[arg-type]
        warnings.warn_explicit(*told)


MESSAGES = (builtins.print, print_to, log, warn)
"""What only tells people something, among the functions that graphs call."""


def is_message(target: Any) -> bool:
    """Whether a call of this function only tells people something."""
    return any(target is one for one in MESSAGES)


def _is_recorded(function: Any, *args: Any) -> bool:
    """Whether such a call, of code that a capture has made, is recorded by a capture that is under way."""
    listener = attached()
    messages = None if listener is None else listener.messages_of(None)
    return messages is not None and messages.is_recorded_again(function, args)


# ---- for people ------------------------------------------------------------------------------------------------------


def _shown_print(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    screen, sep, end, flush, *values = args
    options = [f"sep={sep!r}"] if sep != " " else []
    options += [f"end={end!r}"] if end != "\n" else []
    options += ["flush=True"] if flush else []
    given = [text for text in (arguments(tuple(values), {}, scope), *options) if text]
    return f"print({', '.join([*given, f'file={scope.name_of(sys)}.{screen}'])})"


def _shown_log(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    _, name, level, extra, *said = args
    made = [arguments(tuple(said), {}, scope)]
    method = logging.getLevelName(level).lower()
    if method not in _LEVELS:
        method, made = "log", [str(level), *made]
    made += [] if extra is None else [f"extra={scope.spell(extra)}"]
    module = scope.name_of(logging)
    logger = module if name is None else f"{module}.getLogger({'' if name == 'root' else repr(name)})"
    return f"{logger}.{method}({', '.join(made)})"


def _shown_warning(args: tuple[Any, ...], sign: str, scope: Scope) -> str | None:
    _, category, action, *said = args
    if action is not None:
        return None
    told = arguments(tuple(said), {}, scope)
    if len(said) != 1:
        told = f"{scope.name_of(category)}({told})"
    elif category is not UserWarning:
        told = f"{told}, {scope.name_of(category)}"
    return f"{scope.name_of(warnings)}.warn({told})"


SHOWN[print_to], SHOWN[log], SHOWN[warn] = _shown_print, _shown_log, _shown_warning
