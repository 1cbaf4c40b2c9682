"""Attributes that a program puts on tensors: ``x.seen = True``.

Which attributes it asks tensors for is noted too, those that they do not have: nobody else's matter to it.
On a tensor of the outside (an argument, a parameter, one around the program) they are set at the end of the graph, like
all other state, and taken away after the capture. On a tensor of the program's own they matter where it is given away:
``outputs`` sets them there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from clew.capture.patches import Patches
from clew.capture.state.containers import SIMPLE
from clew.frameworks.torch.refusals import refusal
from clew.ir.effects import pure

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"


class Carrier:
    """A tensor of the outside, for guards on what it carries."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __repr__(self) -> str:
        return "a tensor"


def described(attributes: dict[str, Any]) -> tuple[tuple[str, str, Any], ...]:
    """Attributes as a guard compares them: name and class of each, and its value or identity."""
    shown = {name: value if type(value) in SIMPLE else id(value) for name, value in attributes.items()}
    return tuple((name, type(attributes[name]).__name__, shown[name]) for name in sorted(attributes))


@pure
def attributes_on(carrier: Carrier) -> tuple[tuple[str, str, Any], ...]:
    """What a tensor carries now."""
    return described(vars(carrier.tensor))


class Carriers:
    """The tensors on which the program has put attributes, with those that they carried before."""

    def __init__(self, recorder: TorchRecorder) -> None:
        self.recorder = recorder
        self._before: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.asked: set[str] = set()
        """The attributes that tensors were asked for and did not have."""

    def add(self, tensor: Any) -> None:
        """An attribute of a tensor is about to be set."""
        self._before.setdefault(id(tensor), (tensor, dict(vars(tensor))))

    def knows(self, tensor: Any) -> bool:
        """Whether the program was seen putting attributes on a tensor."""
        return id(tensor) in self._before

    def before(self, tensor: Any) -> dict[str, Any]:
        """The attributes that a tensor carried before the program ran."""
        known = self._before.get(id(tensor))
        return vars(tensor) if known is None else known[1]

    def put_on(self, array: Any) -> dict[str, Any]:
        """The attributes that the program has put on a tensor of its own."""
        known = self._before.get(id(array))
        return dict(vars(array)) if known is not None and self._is_own(array) else {}

    def _is_own(self, tensor: Any) -> bool:
        return self.recorder.known(tensor) is not None and not self.recorder.is_outside(tensor)

    def changed(self) -> Iterator[tuple[Any, dict[str, Any], dict[str, Any]]]:
        """Tensors that are not the program's own, with what they carried before, and what they carry now."""
        for tensor, before in self._before.values():
            if not self._is_own(tensor) and vars(tensor) != before:
                yield tensor, before, dict(vars(tensor))

    def commit(self, plain: Callable[[Any], Any]) -> None:
        """The run counts: what the tensors carry stays, with plain numbers."""
        for tensor, _ in self._before.values():
            vars(tensor).update({name: plain(value) for name, value in vars(tensor).items()})

    def put_back(self) -> None:
        """Let all tensors carry what they carried."""
        for tensor, before in self._before.values():
            if vars(tensor) != before:
                vars(tensor).clear()
                vars(tensor).update(before)


def install(patches: Patches, current: Current) -> None:
    """Let tensors report to the capture that ``current`` names when attributes are put on them."""
    torch.overrides.get_overridable_functions()  # which torch finds once and for all: not while the class is replaced
    patches.on_class(torch.Tensor, "__setattr__", functools.partial(_setting, current=current), inherited=True)
    patches.on_class(torch.Tensor, "__getattr__", functools.partial(_missing, current=current), default=_no_attribute)


def _setting(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def __setattr__(tensor: Any, name: str, value: Any) -> None:
        kind: Any = type(tensor)
        if not _is_property(kind, name):
            recorder = current()
            if recorder is not None and recorder.running:
                _note(recorder, tensor)
        original(tensor, name, value)

    return __setattr__


def _no_attribute(tensor: Any, name: str) -> Any:
    raise AttributeError(f"{type(tensor).__name__!r} object has no attribute {name!r}", name=name, obj=tensor)


def _missing(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def __getattr__(tensor: Any, name: str) -> Any:
        recorder = current()
        if recorder is not None and recorder.running and not _is_of_torch(sys._getframe(1)):
            recorder.array_attributes.asked.add(name)
        return original(tensor, name)

    return __getattr__


def _is_of_torch(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in ("torch", "clew")


@functools.lru_cache(maxsize=1024)
def _is_property(kind: Any, name: str) -> bool:
    """Whether a class of tensors does something of its own when this attribute is set, instead of keeping it."""
    held = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return hasattr(type(held), "__set__")


def _note(recorder: TorchRecorder, tensor: Any) -> None:
    recorder.array_attributes.add(tensor)
    if recorder.bodies.open and recorder.is_outside(tensor):
        raise refusal("an attribute put on a tensor of the outside, in a branch or loop,")
