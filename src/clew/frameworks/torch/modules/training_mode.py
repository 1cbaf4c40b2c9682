"""The modes of the parts of a captured module: ``training`` is read by a node, so that a capture holds in each of them.

The program that is captured finds a traced bool where it reads a mode. Code that hands it on hands on a node; code that
asks whether it is true asks a question, as of data. Layers that stay one call, and all other threads, find the plain
mode. Where none but the plain one will do, those parts whose mode the program may have read are guarded.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Container, Iterable, Iterator, Set
from types import CodeType, FunctionType
from typing import Any, NamedTuple, cast

import torch

from clew.capture.bytecode.instructions import instructions_of
from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.recording.recorder import Pending, Recorder
from clew.capture.state.reachable import asks_for_identity, attribute_names
from clew.frameworks.torch.scalars import MODE, TracedBool, traced
from clew.ir.node import Node
from clew.ir.source import is_hidden
from clew.ir.types import ScalarType

# ---- which code asks -------------------------------------------------------------------------------------------------


class Asking(NamedTuple):
    """What functions have to do with modes: whether one needs the plain ones, since it compares them by identity, say,
    and which of them ask for their truth."""

    needs_plain: bool
    branching: tuple[CodeType, ...]


def asking(functions: Iterable[FunctionType]) -> Asking:
    """What functions have to do with modes."""
    near = [code for function in functions if _is_near(code := function.__code__)]
    needs_plain = any(asks_for_identity(code) or _reads_dict(code) for code in near)
    return Asking(needs_plain, tuple(inner for code in near for inner in _codes_in(code) if _branches_on_mode(inner)))


@functools.lru_cache(maxsize=16384)
def _is_near(code: CodeType) -> bool:
    """Whether a function names the mode, as an attribute, a text or a variable."""
    return any(MODE in (*one.co_names, *one.co_varnames, *one.co_consts) for one in _codes_in(code))


def _reads_dict(code: CodeType) -> bool:
    """Whether a function may read the mode without asking for the attribute."""
    return MODE in code.co_consts and not attribute_names(code).isdisjoint(("__dict__", "vars"))


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes_in(part)


@functools.lru_cache(maxsize=16384)
def _branches_on_mode(code: CodeType) -> bool:
    """Whether a function, none of torch's, asks for the truth of what it has just read as ``training``."""
    if MODE not in code.co_names or is_hidden(code):
        return False
    instructions = instructions_of(code)
    reading = [place for place, one in enumerate(instructions) if one.argval == MODE and one.opname == "LOAD_ATTR"]
    return any(_TESTING.search(instructions[place + 1].opname) for place in reading)


_TESTING = re.compile("JUMP.*_IF_|UNARY_NOT|COPY$")


def asked_for_mode(
    root: torch.nn.Module, entered: Iterable[tuple[str, torch.nn.Module]], codes: Set[CodeType]
) -> Iterator[tuple[str, bool]]:
    """The paths of the parts whose mode the code that ran may have asked for, each with that mode."""
    is_generated = hasattr(root, "_graph")  # its code asks for the modes of parts by itself
    asked = {code for code in codes if _is_near(code)}
    parts = list(entered) if asked or is_generated else []
    kinds: set[Any] = {type(part) for part in root.modules()} if parts else set()
    methods = {kind: asked & set(_codes(kind)) for kind in kinds}
    is_free = is_generated or bool(asked.difference(*methods.values()))
    for path, part in parts:
        if is_free or methods[type(part)]:
            yield path, part.training


@functools.lru_cache(maxsize=4096)
def _codes(kind: type) -> tuple[CodeType, ...]:
    """The code of the methods of a class, and of those that it inherits from users' classes."""
    held = [value for base in kind.__mro__ if base is not torch.nn.Module for value in vars(base).values()]
    functions = [getattr(value, "fget", None) or getattr(value, "__func__", value) for value in held]
    found = [getattr(getattr(function, "__wrapped__", function), "__code__", None) for function in functions]
    return tuple(code for code in found if isinstance(code, CodeType))


# ---- compiled functions that take a mode -----------------------------------------------------------------------------

_WITH_SWITCHES = (
    "dropout dropout_ alpha_dropout alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout "
    "feature_alpha_dropout_ native_dropout batch_norm native_batch_norm instance_norm rrelu rrelu_"
)


def install(patches: Patches, current: Callable[[], Any]) -> None:
    """Let the program find modes that are data, and functions of torch's C library, which do not take such, hand their
    calls to the recorder."""
    patches.add_to_class(torch.nn.Module, MODE, _Mode(current))
    for name in _WITH_SWITCHES.split():
        patches.in_dict(vars(torch), name, noted(functools.partial(_with_switch, current)))


def _with_switch(current: Callable[[], Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        is_traced = TracedBool in map(type, args) or TracedBool in map(type, kwargs.values())
        recorder = current() if is_traced else None
        return original(*args, **kwargs) if recorder is None else recorder.call(original, args, kwargs)

    return call


# ---- the modes of one run --------------------------------------------------------------------------------------------


class Modes:
    """The modes of the parts of a captured module in one run: those that it knows are data."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[torch.nn.Module, tuple[bool, Any]] = {}
        self.set: dict[torch.nn.Module, bool] = {}
        """The parts whose mode the program has set, each with the mode that it was in."""

    def take(self, paths: dict[torch.nn.Module, str], lifted: Container[tuple[int, str]]) -> None:
        """Let the modes of these parts be data, but for those that have entered as state."""
        for part, path in paths.items():
            plain, kind = vars(part).get(MODE), cast(Any, type(part))
            if type(plain) is bool and (id(vars(part)), MODE) not in lifted and not _has_another(kind):
                place = _Place(getattr, (f"{path}.{MODE}" if path else MODE,))
                self._known[part] = plain, traced(plain, place, self._recorder)

    def has(self, part: torch.nn.Module) -> bool:
        """Whether the mode of a part is data."""
        return part in self._known

    def seen(self, part: torch.nn.Module, mode: Any) -> Any:
        """The mode of a part as the program shall see it: what the program has put there itself is as it is."""
        known = self._known.get(part)
        return mode if known is None or part in self.set else known[1]

    def note_set(self, part: torch.nn.Module) -> None:
        """The program sets the mode of a part."""
        known = self._known.get(part)
        if known is not None:
            self.set.setdefault(part, known[0])


class _Place(Pending):
    """The node that reads the mode of one part, made when somebody needs it."""

    __slots__ = ()

    def made_by(self, recorder: Recorder) -> Node:
        """The node, of the program's own graph: a mode that nobody sets is the same all through a run."""
        node = recorder.attribute_node(*self.args)
        object.__setattr__(node, "value_type", ScalarType("bool"))
        return node


@functools.lru_cache(maxsize=4096)
def _has_another(kind: Any) -> bool:
    """Whether a class has a mode of its own, in the place of the attribute of its instances."""
    return any(MODE in vars(base) for base in kind.__mro__ if base is not torch.nn.Module)


class _Mode:
    """The descriptor in ``torch.nn.Module`` during captures; all others find and set the attribute as it is."""

    def __init__(self, current: Callable[[], Any]) -> None:
        self._current = current

    def __get__(self, part: Any, kind: Any = None) -> Any:
        held = {} if part is None else part.__dict__
        if MODE not in held:
            raise AttributeError(MODE)
        recorder = self._current()
        return held[MODE] if recorder is None or not recorder.running else recorder.modes.seen(part, held[MODE])

    def __set__(self, part: Any, mode: Any) -> None:
        recorder = self._current()
        if recorder is not None and recorder.running:
            recorder.modes.note_set(part)
        part.__dict__[MODE] = mode

    def __delete__(self, part: Any) -> None:
        del part.__dict__[MODE]
