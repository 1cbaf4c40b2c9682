"""Random numbers: each draw is a call of its own in the graph, from the same stream as the original's.

The functions of ``numpy.random`` and the methods of generators are recorded here, those of Python's ``random`` as the
run hears of them. A generator that the program makes from a seed is made by the graph at each call; one from outside is
used where it is. A draw by any other means moves a stream without a node: it is noticed, and refused.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy

from clew.capture.patches import Patches
from clew.capture.python.listener import current
from clew.capture.python.random_numbers import SHARED
from clew.frameworks.numpy.array_proxy import SLOTS, Reliance, Traced, is_traced, made_stand_in, relying
from clew.frameworks.numpy.opaque_calls import cannot_follow
from clew.ir.types import ObjectType

if TYPE_CHECKING:
    from clew.frameworks.numpy.recorder import ArrayRollback, NumpyRecorder


Current: TypeAlias = "Callable[[], NumpyRecorder | None]"
_getstate = random.Random.getstate  # as it is outside of captures
_LEGACY = [name for name in dir(numpy.random) if callable(getattr(numpy.random, name)) and name[0].islower()]
_UNSEEN = frozenset(
    {"test", "get_state", "set_state", "get_bit_generator", "set_bit_generator", "default_rng", "bytes"}
)
MAKING = ("default_rng", "RandomState", "Generator")
"""What makes generators of random numbers."""
DRAWING = tuple(name for name in _LEGACY if name not in _UNSEEN)
"""The functions that draw from the stream behind ``numpy.random``, or set it."""


class Streams:
    """The streams during one capture: where they stand after the last recorded draw."""

    def __init__(self, rollback: ArrayRollback, recorder: NumpyRecorder) -> None:
        self.rollback = rollback
        self.recorder = recorder
        self.expected = self._states()
        self.followed_ones: list[Any] = []
        self.own: list[random.Random] = []
        """Streams of Python's random numbers around the program, whose draws are recorded too."""
        self.known: list[Any] = []
        """The generators that the program uses, those that it made itself too."""

    def _states(self) -> tuple[Any, Any]:
        """Where the streams stand; NumPy makes arrays to tell, which are none of the program's."""
        with self.recorder.paused():
            state: Any = numpy.random.get_state(legacy=True)
            return _getstate(SHARED), (state[1].tobytes(), *state[2:])

    def moved_unseen(self) -> bool:
        """Whether something else than a recorded draw has moved a stream."""
        return self._states() != self.expected

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Draws inside belong to a call of the graph, which draws them again."""
        known = not self.moved_unseen()
        yield
        if known:
            self.expected = self._states()

    def record(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a draw of Python's and record it."""
        with self.followed():
            return self.recorder.call(target, args, kwargs)

    def stand_in(self, recorder: NumpyRecorder, stream: Any, place: Any) -> Any:
        """The proxy of a generator from outside."""
        self.rollback.watch_stream(stream)
        self.followed_ones.append(stream)
        self.known.append(stream)
        return _stand_in(stream, place, recorder)


class TracedStream(Traced):
    """Stands for a generator of random numbers; its methods are recorded."""

    __slots__ = SLOTS

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.plain, name)
        if name.startswith("_") or name in ("bit_generator", "spawn", "get_state", "set_state", "bytes"):
            raise cannot_follow(f"the attribute {name} of a generator of random numbers")
        return functools.partial(self._draw, name) if callable(found) else found

    def _draw(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        recorder = self.recorder
        recorder.check_used()
        written = args[:1] if name == "shuffle" else ()
        args, kwargs = recorder.whole_arguments(args, kwargs)
        return recorder.record("call_method", name, (self, *args), kwargs, written)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: Any) -> Any:
        return self is other

    def __ne__(self, other: Any) -> Any:
        return self is not other

    def __bool__(self) -> bool:
        return True


def _stand_in(stream: Any, place: Any, recorder: NumpyRecorder) -> Any:
    return relying(made_stand_in(TracedStream, stream, place, recorder), Reliance.NOTHING)


_PLACES = {id(getattr(numpy.random, name)): name for name in (*DRAWING, *MAKING)}
"""The functions of ``numpy.random`` that are replaced, by their identity when no capture runs."""


def install(patches: Patches, current: Current, functions: Iterable[Any]) -> None:
    """Let draws, and generators that are made, report to the capture that ``current`` names, if one is recording."""
    makers: dict[int, Callable[[Any], Any]] = {}
    for identity, name in _PLACES.items():
        makers[identity] = functools.partial(_Maker if name in MAKING else _drawing, current=current)
        patches.in_dict(vars(numpy.random), name, makers[identity])
    for name in ("get_state", "set_state"):
        patches.in_dict(vars(numpy.random), name, functools.partial(_refusing, current=current))
    for names in {id(function.__globals__): function.__globals__ for function in functions}.values():
        for own in [own for own, value in names.items() if id(value) in makers]:
            patches.in_dict(names, own, makers[id(names[own])])


def _refusing(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """Where a stream stands: no node of the graph could remember it, or go back there."""

    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if current() is not None and not sys._getframe(1).f_globals.get("__name__", "").startswith("clew."):
            raise cannot_follow(f"{original.__name__} of a stream of random numbers")
        return original(*args, **kwargs)

    return refuse


def _drawing(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def draw(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None:
            return original(*(value.plain if is_traced(value) else value for value in args), **kwargs)
        with recorder.streams.followed():
            return recorder.call(original, args, kwargs)

    return draw


class _Maker:
    """Stands for a class of generators: it makes recorded ones, and answers as the class for all else."""

    def __init__(self, original: Any, current: Current) -> None:
        self._original = original
        self._current = current

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = self._current()
        if recorder is None:
            return self._original(*args, **kwargs)
        return make_stream(recorder, self._original, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._original)

    def __or__(self, other: Any) -> Any:
        """In annotations of modules that are imported while the program runs."""
        return self._original | getattr(other, "_original", other)

    __ror__ = __or__


def make_stream(recorder: NumpyRecorder, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A generator that the program makes of a seed, by this class or function."""
    given = [value for value in (*args, *kwargs.values()) if value is not None]
    if not given:
        raise cannot_follow("a generator of random numbers without a seed")
    if isinstance(given[0], TracedStream):
        return given[0]
    node_args, node_kwargs = recorder.argument(args), recorder.argument(kwargs)
    if isinstance(given[0], (numpy.random.BitGenerator, numpy.random.SeedSequence)):
        raise cannot_follow("a generator over a bit generator that the program made")
    value = recorder.perform(original, args, kwargs)
    node = recorder.create(original, node_args, node_kwargs, is_result=True)
    object.__setattr__(node, "value_type", ObjectType(f"numpy.random.{type(value).__name__}"))
    recorder.streams.known.append(value)
    return _stand_in(value, node, recorder)


# ---- draws in programs of frameworks that trace without values -------------------------------------------------------
#
# Random numbers of NumPy in a program of a framework that traces without values: they would be frozen, so are refused.
# Functions of ``numpy.random`` are replaced for the time of a capture, in NumPy and in the modules of the program.
# Generators from around the program are compared with where they stood, when it has run.


def install_refusing(patches: Patches, functions: Iterable[FunctionType]) -> None:
    """Let draws, and generators that are made without a seed, be refused."""
    makers = {id(getattr(numpy.random, name)): _refusing_draw for name in DRAWING}
    makers |= {id(getattr(numpy.random, name)): _Making for name in MAKING}
    for name in (*DRAWING, *MAKING):
        patches.in_dict(vars(numpy.random), name, makers[id(getattr(numpy.random, name))])
    for names in {id(function.__globals__): function.__globals__ for function in functions}.values():
        for own in [own for own, value in names.items() if id(value) in makers]:
            patches.in_dict(names, own, makers[id(names[own])])


def _refusing_draw(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def draw(*args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is not None and listener.hears(sys._getframe(1)):
            raise listener.refusal(f"numpy.random.{original.__name__}")
        return original(*args, **kwargs)

    return draw


class _Making:
    """Stands for what makes generators: without a seed it is refused; it answers as the original for all else."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        listener = current()
        has_seed = any(value is not None for value in (*args, *kwargs.values()))
        if listener is not None and not has_seed and listener.hears(sys._getframe(1)):
            raise listener.refusal("a generator of NumPy without a seed")
        return self._original(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._original)
