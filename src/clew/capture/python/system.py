"""The system around a program: variables of the environment, other processes, machines and people, threads.

A graph checks at its entrance that the variables that the program has read are the same, and so are facts of this
process that may differ in the next. What a program starts, sends or is told by others can neither be taken back nor
done again by a graph, so it is refused; so is what another thread computes, since nobody records it.
"""

from __future__ import annotations

import _thread
import builtins
import decimal
import functools
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

from clew.capture.patches import Patches
from clew.capture.python.callers import is_importing, is_of_program
from clew.capture.python.files import refusing
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import asked_listener, current, unheard
from clew.capture.python.outside_reads import goes_into_number
from clew.capture.python.random_numbers import DRAWS
from clew.capture.python.screens import filters_that_raise
from clew.capture.python.settings import decimal_settings
from clew.capture.state.containers import ACTING
from clew.ir.effects import pure


@pure
def environment(name: str) -> str | None:
    """A variable of the environment."""
    return os.environ.get(name)


@pure
def environment_has(name: str) -> bool:
    """Whether the environment has a variable."""
    return name in os.environ


@pure
def environment_text(name: str) -> str:
    """What a variable of the environment says now."""
    return os.environ[name]


DRAWS.append(environment_text)


@pure
def environment_names() -> tuple[str, ...]:
    """The names of all variables of the environment."""
    return tuple(os.environ)


def install(patches: Patches) -> None:
    """Let what a program asks of the system, or does with it, report to the listener."""
    _install_environment(patches)
    _install_processes(patches)
    _install_threads(patches)
    install_questions(patches, _OF_PYTHON)


def _install_environment(patches: Patches) -> None:
    """Let reads of the environment report to the listener."""
    kind = type(os.environ)
    patches.on_class(kind, "__getitem__", _reading)
    patches.on_class(kind, "__iter__", _listing)
    patches.on_class(kind, "__len__", _counting)


def _is_environment(value: Any) -> bool:
    return value is os.environ or value is getattr(os, "environb", None)


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    def __getitem__(self: Any, key: Any) -> Any:
        listener = current()
        if listener is not None and _is_environment(self) and listener.hears(sys._getframe(1)):
            name = os.fsdecode(key)
            is_number = listener.reads_texts and self is os.environ and _is_read_for_number(sys._getframe(1))
            if is_number and _has(name):
                listener.note(environment_has, (name,), f"os.environ has the variable {name!r}")
                return listener.text(original(self, key), environment_text, environment, name)
            listener.note(environment, (name,), f"os.environ.get({name!r}) ==")
        return original(self, key)

    return __getitem__


_HANDING_ON = frozenset({os.getenv.__code__, Mapping.get.__code__})
"""Functions of Python's that give what they have read as it is."""


def _is_read_for_number(frame: FrameType | None) -> bool:
    """Whether the program itself reads the environment, and makes a number of the text at once."""
    while frame is not None and frame.f_code in _HANDING_ON:
        frame = frame.f_back
    return is_of_program(frame) and goes_into_number(frame)


def _has(name: str) -> bool:
    with unheard():
        return environment_has(name)


def _note_names(self: Any) -> None:
    listener = asked_listener(3)
    if listener is not None and _is_environment(self):
        listener.note(environment_names, (), "the environment has the variables that it had")


def _listing(original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def __iter__(self: Any) -> Iterator[Any]:
        _note_names(self)
        return original(self)

    return __iter__


def _counting(original: Callable[..., int]) -> Callable[..., int]:
    def __len__(self: Any) -> int:
        _note_names(self)
        return original(self)

    return __len__


# ---- other processes, machines and people ----------------------------------------------------------------------------
#
# Other processes, machines and people: what a program starts, sends or is told by them.
#
# None of it can be taken back or done again by a graph, so it is refused. Facts of this process that may differ in the
# next (its number, working folder, machine name) are guarded.


_STARTING, _CONNECTING = "a process being started", "a connection being made"
_ACTS = dict.fromkeys(("fork", "system", "posix_spawn", "posix_spawnp"), _STARTING) | {"kill": "a signal being sent"}
ACTING.update(getattr(os, name) for name in _ACTS if hasattr(os, name))
FACTS: dict[str, Callable[[], Any]] = {
    "os.getcwd": os.getcwd,
    "os.getpid": os.getpid,
    "os.getppid": os.getppid,
    "socket.gethostname": socket.gethostname,
    "sys.argv": lambda: tuple(sys.argv),
    "decimal.getcontext": decimal_settings,
    "warnings.filters": filters_that_raise,
}
"""Questions about this process and this machine, as they are outside of captures; frameworks add theirs."""
_OF_PROCESSES = ("os.getcwd", "os.getpid", "os.getppid", "socket.gethostname")
_OF_PYTHON = {sys: ("getrecursionlimit", "getswitchinterval", "getdefaultencoding", "getfilesystemencoding")}
_TYPED, _TOLD = "what people type in", "it is something else at another call"


def is_decimal(value: Any) -> bool:
    """Whether a value is a decimal number, or what makes one."""
    return isinstance(value, decimal.Decimal) or value is decimal or value is decimal.Decimal


@pure
def process_fact(name: str) -> Any:
    """What Python tells of this process: ``os.getcwd`` say."""
    return FACTS[name]()


def _install_processes(patches: Patches) -> None:
    """Let processes, connections and questions to people report to the listener."""
    for name in [name for name in _ACTS if hasattr(os, name)]:
        patches.in_dict(vars(os), name, noted(functools.partial(refusing, what=_ACTS[name]), True))
    patches.on_class(subprocess.Popen, "__init__", functools.partial(refusing, what=_STARTING))
    for name in ("connect", "connect_ex", "bind"):
        make = functools.partial(refusing, what=_CONNECTING)
        patches.on_class(socket.socket, name, make, inherited=True)
    for path in _OF_PROCESSES:
        home = socket if path.startswith("socket.") else os
        patches.in_dict(vars(home), path.partition(".")[2], noted(functools.partial(_asking, path=path)))
    patches.in_dict(vars(builtins), "input", noted(_typing))


def install_for_people(patches: Patches) -> None:
    """Let reads of what is typed in report to the listener; where it comes from is another object now and then."""
    if sys.stdin is not None:
        patches.in_dict(vars(sys), "stdin", noted(_keyboard))


def _asking(original: Callable[[], Any], path: str) -> Callable[[], Any]:
    @functools.wraps(original)
    def ask() -> Any:
        listener = asked_listener()
        if listener is not None and not is_importing():
            listener.note(process_fact, (path,), f"{path}() ==")
        return original()

    return ask


def install_questions(patches: Patches, questions: Mapping[Any, Iterable[str]]) -> None:
    """Guard what the program's own code asks these modules of a framework, by functions without arguments, of the
    process and the machine. Packages ask to choose among ways to compute the same, and are let be."""
    for home, names in questions.items():
        for name in [name for name in names if name in vars(home)]:
            path = f"{home.__name__}.{name}"
            FACTS.setdefault(path, vars(home)[name])
            patches.in_dict(vars(home), name, noted(functools.partial(_asking_framework, path=path)))


def _asking_framework(original: Callable[..., Any], path: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def ask(*args: Any, **kwargs: Any) -> Any:
        answer = original(*args, **kwargs)
        if not args and not kwargs:
            note_fact(path, f"{path}() ==", sys._getframe(1))
        return answer

    return ask


def note_fact(path: str, text: str, frame: FrameType | None) -> None:
    """Guard a fact of ``FACTS`` if the program's own code asks for it, which runs in this frame."""
    listener = current()
    if listener is not None and is_of_program(listener.caller(frame)) and not is_importing():
        listener.note(process_fact, (path,), text)


def _typing(original: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(original)
    def ask(*args: Any) -> str:
        listener = asked_listener()
        if listener is not None:
            raise listener.refusal(_TYPED, _TOLD)
        return original(*args)

    return ask


@functools.lru_cache(maxsize=8)
def _keyboard(original: Any) -> _Keyboard:
    """The replacement of ``sys.stdin``, the same for each capture."""
    return _Keyboard(original)


class _Keyboard:
    """Stands for ``sys.stdin``: whoever reads from it in a program is refused."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        self._check()
        return getattr(self._original, name)

    def __iter__(self) -> Any:
        self._check()
        return iter(self._original)

    def _check(self) -> None:
        listener = asked_listener(3)
        if listener is not None:
            raise listener.refusal(_TYPED, _TOLD)


# ---- threads ---------------------------------------------------------------------------------------------------------
#
# Threads of the program: what one computes during a capture is recorded by nobody, so it is refused.
#
# A program may neither start a thread, nor hand work to a pool, nor wait for what another thread does. Packages may
# start threads for their own ends (a progress bar that looks at the time); only waiting for one is refused there too.


_STARTED, _AWAITED = "a thread being started", "waiting for another thread"
_WHY = "what another thread computes is not recorded, and would be frozen in the graph"


def _install_threads(patches: Patches) -> None:
    """Let threads that a program starts, or waits for, report to the listener."""
    patches.on_class(threading.Thread, "start", functools.partial(_starting, by_packages=False))
    patches.on_class(ThreadPoolExecutor, "submit", functools.partial(_starting, by_packages=True))
    patches.in_dict(vars(_thread), "start_new_thread", noted(functools.partial(_starting, by_packages=False), True))
    patches.on_class(threading.Thread, "join", _waiting)
    patches.on_class(threading.Condition, "wait", _waiting)
    patches.on_class(threading.Event, "wait", _waiting)


def _starting(original: Callable[..., Any], by_packages: bool) -> Callable[..., Any]:
    """What lets another thread run a function: refused where a program calls it, or a package with ``by_packages``."""

    @functools.wraps(original)
    def start(*args: Any, **kwargs: Any) -> Any:
        listener, frame = current(), sys._getframe(1)
        if listener is None:
            return original(*args, **kwargs)
        if listener.hears(frame) if by_packages else listener.is_asked(frame):
            raise listener.refusal(_STARTED, _WHY)
        with unheard():
            return original(*args, **kwargs)

    return start


def _waiting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def wait(*args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is not None and listener.hears(sys._getframe(1)):
            raise listener.refusal(_AWAITED, _WHY)
        return original(*args, **kwargs)

    return wait
