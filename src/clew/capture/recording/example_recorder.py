"""The recorder of a run on an example: each call of the program is made for real, on plain values, and recorded.

NumPy and torch capture so (JAX and TensorFlow trace their programs by their own means). In comes what the run knows of
the program, its state and the variables around it; ``depth`` tells whether a recorded call is being made right now,
whose inside is not recorded again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from clew.capture.bytecode.try_blocks import NEVER
from clew.capture.recording.folding import Folding
from clew.capture.recording.opaque_calls import CallVariables
from clew.capture.recording.recorder import Recorder
from clew.errors import CaptureError
from clew.ir.source import user_source

if TYPE_CHECKING:
    from clew.capture.state.state import State
    from clew.capture.state.surroundings import Surroundings
    from clew.ir.node import Node


class RandomStreams(Protocol):
    """The streams of Python's random numbers, and of a framework's, during one run."""

    own: list[random.Random]

    def moved_unseen(self) -> bool:
        """Whether something else than a recorded draw has moved a stream."""

    def followed(self) -> AbstractContextManager[None]:
        """Draws inside belong to a call of the graph, which draws them again."""

    def record(self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a draw of Python's and record it."""


class Paused:
    """A block inside of which nothing is recorded."""

    __slots__ = ("recorder",)

    def __init__(self, recorder: ExampleRecorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        self.recorder.depth += 1

    def __exit__(self, *error: object) -> None:
        self.recorder.depth -= 1


class ExampleRecorder(Recorder):
    """Records one run of a program on an example."""

    state: State
    """What the program keeps from call to call."""
    surroundings: Surroundings
    """The variables and functions around the program."""
    streams: RandomStreams

    def __init__(self) -> None:
        super().__init__()
        self.folding = Folding(caches=True, bakes=False)
        self.call_variables: dict[Any, CallVariables] = {}
        self.raised: Exception | None = None
        self.finishing = False  # whether the program has ended, and its result is being recorded
        self.depth = 0
        self.acts: list[Callable[[], None]] = []
        """What the program has shown or told somebody, to be done if the run counts as a call."""

    def tell(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        """Record a call that only shows or tells something, which the run itself does not make."""
        return self.create(function, args, kwargs, errors=NEVER)

    def paused(self) -> Paused:
        """What happens inside is one recorded call, and is not recorded again."""
        return Paused(self)

    def perform(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a call on plain values, which is not recorded."""
        raise NotImplementedError

    def apart(self, value: Any) -> Any:
        """What is taken out of a list: other objects for arrays that belong to a node already, which keep it."""
        if type(value) is tuple or type(value) is list:
            return type(value)([self.apart(part) for part in value])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self.apart, value))
        return value

    def check_opaque(self, target: Any, why: str) -> None:
        """A call is about to be kept whose inside the graph does not hold: refused if the user wants none of these."""
        if self.options.refuses_opaque:
            source = user_source()
            name = getattr(target, "__qualname__", None) or getattr(target, "__name__", str(target))
            fixes = ('let it be a call of the graph: opaque="call"',)
            where = "" if source is None else source.describe()
            raise CaptureError(f"{name} would stay one call of the graph", where=where, why=why, fixes=fixes)
