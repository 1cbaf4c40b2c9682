"""Settings of Python and of libraries: what a program switches for all that follows, after the program too.

A graph would not switch it, and a capture must leave all as it was. So what the program's own code does is found out in
two ways. Functions that switch are known (``_AT_ONCE``, ``_COMPARED``): some are refused where they are called, others
only if the program has not put back what they changed. And what the program's code names of libraries is compared
after a run: attributes of Python modules, classes and loggers that its code sets, lists, dicts and sets that it names.
"""

from __future__ import annotations

import atexit
import csv
import decimal
import dis
import functools
import gc
import itertools
import locale
import logging
import operator
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from clew.capture.location import MISSING, Location
from clew.capture.patches import Patches
from clew.capture.python.callers import is_file_of_python, is_of_program
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import ONCE, Listener, current
from clew.capture.state.reachable import attribute_names, global_names, imported_names, stored_names
from clew.capture.state.surroundings import Surroundings
from clew.ir.source import SourceLine, is_hidden, is_installed, is_installed_file

collects: ContextVar[bool | None] = ContextVar("clew_collects", default=None)
"""Whether Python looked for garbage when the capture began, which lets it not do so."""
_HANDLED, _WHEN_DONE = "a change of how signals are handled", "a function being called when the process ends"
LOGGED = "a change of how messages are logged"
_AT_ONCE: dict[Any, dict[str, str]] = {
    signal: dict.fromkeys(("signal", "siginterrupt", "set_wakeup_fd"), _HANDLED)
    | dict.fromkeys(("alarm", "setitimer", "raise_signal", "pthread_kill"), "a signal being sent"),
    atexit: dict.fromkeys(("register", "unregister"), _WHEN_DONE),
    locale: {"setlocale": "a change of the language"},
    time: {"tzset": "a change of the time zone"},
    sys: {"setrecursionlimit": "a change of the recursion limit"}
    | dict.fromkeys(("settrace", "setprofile", "addaudithook", "set_asyncgen_hooks"), "a hook of the interpreter"),
    socket: {"setdefaulttimeout": "a change of how long connections wait"},
    threading: dict.fromkeys(("settrace", "setprofile"), "a hook of the interpreter"),
    os: dict.fromkeys(
        ("nice", "setpriority", "sched_setaffinity", "setuid", "setgid", "setsid"),
        "a change of the rights of this process",
    ),
    gc: dict.fromkeys(("freeze", "unfreeze"), "a change of what Python collects"),
    csv: dict.fromkeys(("register_dialect", "unregister_dialect"), "a change of how tables are read"),
    logging: dict.fromkeys("disable addLevelName setLoggerClass setLogRecordFactory captureWarnings".split(), LOGGED),
}
"""What the program's own code may not do to this process; packages do it for their own ends, and undo it."""
_LATER = {
    "copyreg": (("pickle", "constructor", "add_extension"), "a change of how objects are pickled"),
    "mimetypes": (("add_type", "init"), "a change of the known kinds of files"),
    "codecs": (("register", "register_error", "unregister"), "a change of the known encodings"),
    "logging.config": (("dictConfig", "fileConfig", "listen"), LOGGED),
    "faulthandler": (("enable", "disable", "register"), _HANDLED),
    "tracemalloc": (("start", "stop"), "a hook of the interpreter"),
    "resource": (("setrlimit",), "a change of the limits of this process"),
    "multiprocessing": (("set_start_method",), "a change of how processes are started"),
    "asyncio": (("set_event_loop", "set_event_loop_policy"), "a change of the event loop"),
}
"""The same for modules of Python that may be there or not."""
_OF_LOGGERS = "setLevel addHandler removeHandler addFilter removeFilter".split()


class Compared(NamedTuple):
    """Something that functions change, and that can be read and put back."""

    what: str
    names: tuple[str, ...]
    """The functions that change it; those that also ask for it do so without arguments."""
    read: Callable[[], Any]
    put: Callable[[Any], Any]


def _put_filters(filters: tuple[Any, ...]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    getattr(warnings, "_filters_mutated", getattr(warnings, "_filters_mutated_lock_held", int))()


def _put_decimal(held: Any, copied: Any) -> None:
    for name in ("prec", "rounding", "Emin", "Emax", "capitals", "clamp", "traps", "flags"):
        setattr(held, name, getattr(copied, name))
    decimal.setcontext(held)


def decimal_settings() -> tuple[Any, ...]:
    """How decimal numbers are computed in this thread."""
    held = decimal.getcontext()
    traps = tuple(kind.__name__ for kind, is_set in held.traps.items() if is_set)
    return held.prec, held.rounding, held.Emin, held.Emax, held.capitals, held.clamp, *traps


_COMPARED: dict[Any, tuple[Compared, ...]] = {
    warnings: (
        Compared(
            "a change of the filters of warnings",
            ("simplefilter", "filterwarnings", "resetwarnings"),
            lambda: tuple(warnings.filters),
            _put_filters,
        ),
    ),
    sys: (
        Compared("a change of how threads are switched", ("setswitchinterval",), sys.getswitchinterval,
                  sys.setswitchinterval),
        Compared("a change of how long numbers may be", ("set_int_max_str_digits",),
                  sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    ),
    gc: (
        Compared("a change of what Python collects", ("set_threshold",), gc.get_threshold,
                  lambda kept: gc.set_threshold(*kept)),
        Compared("a change of what Python collects", ("set_debug",), gc.get_debug, gc.set_debug),
    ),
    csv: (Compared("a change of how tables are read", ("field_size_limit",), csv.field_size_limit,
                    csv.field_size_limit),),
    threading: (Compared("a change of the stacks of threads", ("stack_size",), threading.stack_size,
                          threading.stack_size),),
}  # fmt: skip


def install(patches: Patches) -> None:
    """Let functions that switch something for all that follows report to the listener."""
    for home, acts in _AT_ONCE.items():
        refuse_calls(patches, home, acts)
    for path, (names, what) in _LATER.items():
        home = sys.modules.get(path)
        if home is not None:
            refuse_calls(patches, home, dict.fromkeys(names, what))
    for home, settings in _COMPARED.items():
        for setting in settings:
            compare_calls(patches, home, setting)
    for name in ("enable", "disable"):
        patches.in_dict(vars(gc), name, noted(functools.partial(_collecting, answer=name == "enable")))


def refuse_calls(patches: Patches, home: ModuleType, acts: dict[str, str]) -> None:
    """Refuse these functions of a Python module where the program's own code calls them."""
    for name in [name for name in acts if hasattr(home, name)]:
        patches.in_dict(vars(home), name, noted(functools.partial(refusing_own, what=acts[name])))


def compare_calls(patches: Patches, home: ModuleType, setting: Compared) -> None:
    """Let these functions of a Python module tell what the program's own code changes."""
    for name in setting.names:
        patches.in_dict(vars(home), name, noted(functools.partial(changing, setting=setting)))


def install_in(patches: Patches, surroundings: Surroundings) -> None:
    """Let methods of loggers that set something report to the listener, if a program names them."""
    for name in surroundings.derived(_methods_of_loggers):
        home = logging.Filterer if hasattr(logging.Filterer, name) else logging.Logger
        patches.on_class(home, name, functools.partial(refusing_own, what=LOGGED))


def _methods_of_loggers(functions: Iterable[FunctionType]) -> list[str]:
    named = frozenset[str]().union(*(attribute_names(code) for code in _own(functions)))
    return [name for name in _OF_LOGGERS if name in named]


def refusing_own(original: Callable[..., Any], what: str) -> Callable[..., Any]:
    """The same function, refused where the program's own code calls it."""

    @functools.wraps(original)
    def act(*args: Any, **kwargs: Any) -> Any:
        listener, frame = current(), sys._getframe(1)
        if listener is not None and is_of_program(listener.caller(frame)):
            listener.refuse_act(what, frame)
        return original(*args, **kwargs)

    return act


def changing(original: Callable[..., Any], setting: Compared) -> Callable[..., Any]:
    """The same function; where the program's own code calls it, what it changes must be put back in the end."""

    @functools.wraps(original)
    def change(*args: Any, **kwargs: Any) -> Any:
        listener, frame = current(), sys._getframe(1)
        if listener is not None and is_of_program(listener.caller(frame)):
            _changes(listener).note(setting, setting.read(), listener.line())
        return original(*args, **kwargs)

    return change


_COLLECTED = Compared("a change of what Python collects", (), lambda: None, lambda kept: None)


def _collecting(original: Callable[[], None], answer: bool) -> Callable[[], None]:
    """What switches the search for garbage; a capture has switched it off for itself."""

    @functools.wraps(original)
    def switch() -> None:
        listener, frame = current(), sys._getframe(1)
        if listener is None or not is_of_program(listener.caller(frame)):
            original()
        else:
            changes, before = _changes(listener), collects.get()
            changes.collects = answer
            changes.note(_COLLECTED, gc.isenabled() if before is None else before, listener.line())

    return switch


# ---- what a run has changed ------------------------------------------------------------------------------------------


class Changes:
    """What one run has changed of settings, and of what its code names of libraries."""

    def __init__(self) -> None:
        self._noted: dict[Compared, tuple[Any, str]] = {}
        self.collects: bool | None = None

    def note(self, setting: Compared, before: Any, line: str) -> None:
        """The program changes a setting."""
        self._noted.setdefault(setting, (before, line))

    def undo(self) -> tuple[str, str]:
        """Put back what is not as it was; gives what that is, and the line of the program, or two empty texts."""
        found = "", ""
        for setting, (before, line) in self._noted.items():
            now = self.collects if setting is _COLLECTED else setting.read()
            if now != before:
                setting.put(before)
                found = setting.what, line
        return found


_changes_of: ContextVar[Changes | None] = ContextVar("clew_settings", default=None)


def _changes(listener: Listener) -> Changes:
    found = _changes_of.get()
    assert found is not None, listener
    return found


@contextmanager
def kept(listener: Listener, surroundings: Surroundings) -> Iterator[None]:
    """Put back what the program changes inside of settings and libraries, and refuse it."""
    named, changes = surroundings.derived(_named_of_libraries), Changes()
    attributes = [list(map(vars(holder).get, names, _MISSING)) for holder, names in named.attributes]
    contents = [(held, held.copy()) for held in named.containers.values()]
    decimals = decimal_settings() if named.has_decimals else ()
    context = decimal.getcontext() if decimals else None
    kept_context = None if context is None else context.copy()
    token, is_done = _changes_of.set(changes), False
    try:
        yield
        is_done = True
    finally:
        _changes_of.reset(token)
        what, where = changes.undo()
        for (holder, names), before in zip(named.attributes, attributes, strict=True):
            for name in _put_back(holder, names, before):
                what, where = f"a change of {_name_of(holder)}.{name}", _line_naming(surroundings, name)
        for name, (held, copied) in zip(named.containers, contents, strict=True):
            if _is_changed(held, copied):
                _refill(held, copied)
                what, where = f"a change of {name}", _line_naming(surroundings, name.rpartition(".")[2])
        if decimals and decimals != decimal_settings():
            _put_decimal(context, kept_context)
            what, where = "a change of the context of decimal numbers", _line_naming(surroundings, *_OF_DECIMALS)
        if what and is_done:
            raise listener.refusal_at(what, ONCE, where)


_MISSING = itertools.repeat(MISSING)
_CONTAINERS = (list, dict, set)


def _put_back(holder: Any, names: tuple[str, ...], before: list[Any]) -> list[str]:
    """Put attributes back where they are others now; their names."""
    if all(map(operator.is_, map(vars(holder).get, names, _MISSING), before)):
        return []
    found = [place for place, name in enumerate(names) if vars(holder).get(name, MISSING) is not before[place]]
    for place in found:
        Location(holder, names[place]).put(before[place])
    return [names[place] for place in found]


def _is_changed(held: Any, copied: Any) -> bool:
    if held is sys.modules and held.keys() >= copied.keys():  # most likely imports
        is_same = all(map(operator.is_, map(held.get, copied), copied.values()))
        return not is_same or any(map(_is_made_up, held.keys() - copied.keys()))
    if len(held) != len(copied):
        return True
    if type(held) is set:
        return bool(held ^ copied)
    parts = (held.values(), copied.values()) if type(held) is dict else (held, copied)
    return not all(map(operator.is_, *parts))


def _is_made_up(name: str) -> bool:
    """Whether no import has put a Python module under its name: some put theirs under other names, too."""
    module = sys.modules[name]
    return getattr(module, "__name__", name) != name and "." not in name and sys.modules.get(module.__name__) is module


def _refill(held: Any, copied: Any) -> None:
    if type(held) is list:
        held[:] = copied
        return
    held.clear()
    held.update(copied)


def _name_of(holder: Any) -> str:
    if isinstance(holder, logging.Logger):
        return f"the logger {holder.name}"
    module = "" if isinstance(holder, ModuleType) else f"{holder.__module__}."
    return module + getattr(holder, "__qualname__", holder.__name__)


# ---- what the code of a program names of libraries -------------------------------------------------------------------


def _own(functions: Iterable[FunctionType]) -> list[CodeType]:
    return [one.__code__ for one in functions if not is_installed(one.__code__) and not is_hidden(one.__code__)]


_SETTING = frozenset({"setattr", "delattr", "__dict__", "vars"})
_OF_DECIMALS = ("prec", "rounding", "traps", "Emin", "Emax", "capitals", "clamp", "setcontext", "getcontext")


class _Named(NamedTuple):
    """What code of a program names of libraries."""

    attributes: list[tuple[Any, tuple[str, ...]]]
    """The attributes that it may set, by what holds them."""
    containers: dict[str, Any]
    """Lists, dicts and sets, by their names."""
    has_decimals: bool


def _named_of_libraries(functions: Iterable[FunctionType]) -> _Named:
    """Attributes of libraries that code of a program may set, and lists, dicts and sets of them that it names."""
    own = [one for one in functions if not is_installed(one.__code__) and not is_hidden(one.__code__)]
    names = frozenset[str]().union(*(attribute_names(one.__code__) for one in own))
    texts = frozenset(text for one in own for text in one.__code__.co_consts if type(text) is str)
    stored = frozenset(name for one in own for name in stored_names(one.__code__))
    if not names.isdisjoint(_SETTING):
        held = [one.__globals__.get(name) for one in own for name in global_names(one.__code__)]
        texts |= frozenset(text for text in held if type(text) is str)
        stored |= texts
    holders = _holders(own, names | texts, texts)
    containers = {
        f"{_name_of(holder)}.{name}": vars(holder)[name]
        for holder in holders
        for name in sorted(names & vars(holder).keys())
        if type(vars(holder)[name]) in _CONTAINERS
    }
    attributes = [(holder, tuple(sorted(stored))) for holder in holders] if stored else []
    return _Named(attributes, containers, not names.isdisjoint(_OF_DECIMALS))


def _holders(own: list[FunctionType], names: frozenset[str], texts: frozenset[str]) -> list[Any]:
    """The Python modules, classes and loggers of libraries that functions name, with what they name in these."""
    waiting: list[Any] = [sys.modules.get(name) for one in own for name in imported_names(one.__code__)]
    for one in own:
        waiting += [one.__globals__.get(name) for name in global_names(one.__code__)]
        waiting += [Location(cell, "").get() for cell in one.__closure__ or ()]
    waiting += [logging.root.manager.loggerDict.get(text) for text in texts]
    found: dict[int, Any] = {}
    while waiting:
        one = waiting.pop()
        if id(one) in found or not _is_of_library(one):
            continue
        found[id(one)] = one
        if not isinstance(one, logging.Logger):
            waiting += [vars(one)[name] for name in names & vars(one).keys()]
    return list(found.values())


def _is_of_library(value: Any) -> bool:
    """Whether a value is a Python module or class of Python's or an installed package, or a logger."""
    if isinstance(value, logging.Logger):
        return True
    if isinstance(value, ModuleType):
        name, file = value.__name__, getattr(value, "__file__", None)
    elif isinstance(value, type) and value.__flags__ & _CAN_BE_SET:
        name = value.__module__
        file = getattr(sys.modules.get(name), "__file__", None)
    else:
        return False
    if file is None:
        return name.partition(".")[0] in sys.stdlib_module_names
    return is_installed_file(file) or is_file_of_python(file)


_CAN_BE_SET = 1 << 9
"""The flag of classes that are made by ``class`` statements."""


def _line_naming(surroundings: Surroundings, *words: str) -> str:
    """The line of the program that names an attribute, or the first line of the program."""
    for code in _own(surroundings.functions):
        for one in dis.get_instructions(code):
            if one.argval in words and one.positions is not None and one.positions.lineno is not None:
                return SourceLine(code.co_filename, one.positions.lineno, code.co_name).describe()
    return surroundings.line_naming("")
