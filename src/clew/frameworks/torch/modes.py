"""The modes of the parts of a captured module: ``training`` is read by a node, so that a capture holds in each of them.

While the program runs, its parts hold a traced bool in the place of their mode. Code that hands it on hands on a node;
code that asks whether it is true asks a question, as of data. Layers that stay one call find their plain mode while they
run. Where a stand-in cannot go, parts keep their plain mode, and those whose mode the program may have read are guarded.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Container, Iterable, Iterator, Set
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import torch

from clew.capture.example.bytecode import instructions_of
from clew.capture.example.reach import asks_for_identity, attribute_names
from clew.capture.example.recorder import Pending, Recorder, Scalar
from clew.frameworks.torch.scalars import MODE, traced
from clew.ir.effects import pure
from clew.ir.node import Node
from clew.ir.types import ScalarType


@pure
def parts_in_mode(root: torch.nn.Module, mode: bool, *paths: str) -> bool:
    """Whether the parts at these paths, as far as there are any, are in a mode."""
    for path in paths:
        part: Any = root
        for atom in _atoms(path):
            part = part._modules.get(atom)
            if part is None:
                break
        if part is not None and part.training is not mode:
            return False
    return True


@functools.lru_cache(maxsize=16384)
def _atoms(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")) if path else ()


def mode_of(part: torch.nn.Module) -> bool:
    """The mode that a part is in, plain."""
    mode: Any = part.training
    return bool(mode.plain if issubclass(type(mode), Scalar) else mode)


# ---- which code asks -------------------------------------------------------------------------------------------------


class Asking(NamedTuple):
    """What functions have to do with modes: whether one compares them by identity, which no stand-in answers, and which
    of them ask for their truth."""

    by_identity: bool
    branching: tuple[CodeType, ...]


def asking(functions: Iterable[FunctionType]) -> Asking:
    """What functions have to do with modes."""
    codes = [function.__code__ for function in functions]
    naming = [code for code in codes if MODE in attribute_names(code)]
    near = [*naming, *(code for code in codes if MODE in code.co_varnames)]
    branching = [inner for code in naming for inner in _codes_in(code) if _branches_on_mode(inner)]
    return Asking(any(map(asks_for_identity, near)), tuple(branching))


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes_in(part)


@functools.lru_cache(maxsize=16384)
def _branches_on_mode(code: CodeType) -> bool:
    """Whether a function asks for the truth of what it has just read as ``training``."""
    if MODE not in code.co_names:
        return False
    instructions = instructions_of(code)
    reading = [place for place, one in enumerate(instructions) if one.argval == MODE and one.opname == "LOAD_ATTR"]
    return any(_TESTING.search(instructions[place + 1].opname) for place in reading)


_TESTING = re.compile("JUMP.*_IF_|UNARY_NOT|TO_BOOL|COPY$")


def asked_for_mode(
    root: torch.nn.Module, entered: Iterable[tuple[str, torch.nn.Module]], codes: Set[CodeType]
) -> dict[bool, list[str]]:
    """The paths of the parts whose mode the code that ran may have asked for, by that mode."""
    is_generated = type(root).__module__.startswith("clew.")  # its code asks for the modes of parts by itself
    asked = {code for code in codes if MODE in attribute_names(code)}
    parts = list(entered) if asked or is_generated else []
    kinds: set[Any] = {type(part) for part in root.modules()} if parts else set()
    methods = {kind: asked & set(_codes(kind)) for kind in kinds}
    is_free = is_generated or bool(asked.difference(*methods.values()))
    found: dict[bool, list[str]] = {}
    for path, part in parts:
        if is_free or methods[type(part)]:
            found.setdefault(part.training, []).append(path)
    return found


@functools.lru_cache(maxsize=4096)
def _codes(kind: type) -> tuple[CodeType, ...]:
    """The code of the methods of a class, and of those that it inherits from users' classes."""
    held = [value for base in kind.__mro__ if base is not torch.nn.Module for value in vars(base).values()]
    functions = [getattr(value, "fget", None) or getattr(value, "__func__", value) for value in held]
    found = [getattr(getattr(function, "__wrapped__", function), "__code__", None) for function in functions]
    return tuple(code for code in found if isinstance(code, CodeType))


# ---- the modes of one run --------------------------------------------------------------------------------------------


class _Held(NamedTuple):
    """The mode of one part: where it is, what stands for it while the program runs, and what it is."""

    holder: dict[str, Any]
    stand_in: Any
    plain: bool

    def put_plain(self) -> bool:
        """Let the plain mode be there, unless the program has set another one."""
        is_here = self.holder.get(MODE) is self.stand_in
        if is_here:
            self.holder[MODE] = self.plain
        return is_here


class Modes:
    """The modes of the parts of a captured module in one run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._held: dict[torch.nn.Module, _Held] = {}
        self._below: dict[torch.nn.Module, list[_Held]] = {}

    def take(self, paths: dict[torch.nn.Module, str], lifted: Container[tuple[int, str]]) -> None:
        """Let stand-ins be made for the modes of these parts, but for those that have entered as state."""
        for part, path in paths.items():
            holder = vars(part)
            plain = holder.get(MODE)
            if type(plain) is bool and (id(holder), MODE) not in lifted and not isinstance(part, torch.jit.ScriptModule):
                place = _Place(getattr, (f"{path}.{MODE}" if path else MODE,))
                self._held[part] = _Held(holder, traced(plain, place, self._recorder), plain)

    def has(self, part: torch.nn.Module) -> bool:
        """Whether a stand-in was made for the mode of a part."""
        return part in self._held

    @contextmanager
    def traced(self) -> Iterator[None]:
        """A block in which the program runs, and finds stand-ins."""
        for held in self._held.values():
            held.holder[MODE] = held.stand_in
        try:
            yield
        finally:
            for held in self._held.values():
                held.put_plain()

    def plainly(self, call: Callable[..., Any], module: torch.nn.Module | None = None) -> Callable[..., Any]:
        """A call of a module, or of anything if there is none, that finds plain modes."""
        inside = list(self._held.values()) if module is None else self._inside(module)
        return functools.partial(_with_plain, inside, call) if inside else call

    def _inside(self, module: torch.nn.Module) -> list[_Held]:
        known = self._below.get(module)
        if known is None:
            parts = module.modules() if module._modules else (module,)
            known = self._below[module] = [self._held[part] for part in parts if part in self._held]
        return known


def _with_plain(inside: list[_Held], call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    exchanged = [held for held in inside if held.put_plain()]
    try:
        return call(*args, **kwargs)
    finally:
        for held in exchanged:
            if held.holder.get(MODE) is held.plain:
                held.holder[MODE] = held.stand_in


class _Place(Pending):
    """The node that reads the mode of one part, made when somebody needs it."""

    __slots__ = ()

    def make(self, recorder: Recorder) -> Node:
        """The node, of the program's own graph: a mode that nobody sets is the same all through a run."""
        node = recorder.attribute(*self.args)
        object.__setattr__(node, "value_type", ScalarType("bool"))
        return node
