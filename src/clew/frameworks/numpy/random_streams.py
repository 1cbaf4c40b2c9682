"""NumPy's random numbers: each draw is a call of its own in the graph, from the same stream as the original's.

The replacements of the functions of ``numpy.random`` are the same for all frameworks and ask the streams of the run
(``Streams``): they record a draw, make a generator, or refuse. A generator that the program makes from a seed is made
by the graph at each call; one from outside is used where it is. Draws from Python's ``random`` come as the run hears of
them. A draw by any other means moves a stream without a node: it is noticed, and refused.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy

from clew.capture.patches import Patches
from clew.capture.python.clocks import ClassProxy
from clew.capture.python.listener import current as current_listener
from clew.capture.python.random_numbers import SHARED
from clew.errors import CaptureError
from clew.frameworks.numpy.array_proxy import SLOTS, Reliance, Traced, is_traced, made_stand_in, relying
from clew.frameworks.numpy.opaque_calls import cannot_follow
from clew.ir.types import ObjectType

if TYPE_CHECKING:
    from clew.capture.recording.example_recorder import ExampleRecorder
    from clew.frameworks.numpy.recorder import ArrayRollback, NumpyRecorder


_getstate, _setstate = random.Random.getstate, random.Random.setstate
"""As they are outside of captures."""
_LEGACY = [name for name in dir(numpy.random) if callable(getattr(numpy.random, name)) and name[0].islower()]
_UNSEEN = frozenset(
    {"test", "get_state", "set_state", "get_bit_generator", "set_bit_generator", "default_rng", "bytes"}
)
DRAWING = tuple(name for name in _LEGACY if name not in _UNSEEN)
"""The functions that draw from the stream behind ``numpy.random``, or set it."""
MAKING = ("default_rng", "RandomState", "Generator")
"""What makes generators of random numbers."""
SEEDING = ("SeedSequence", "PCG64", "MT19937", "Philox", "SFC64", "PCG64DXSM")
"""Classes that take a seed."""


# ---- the replacements of the functions of numpy.random ---------------------------------------------------------------


class Draws:
    """What a run makes of what its program asks of ``numpy.random``. By default all of it is refused: in the graph of a
    framework that traces without values it would be frozen."""

    drawing: ClassVar[tuple[str, ...]] = DRAWING
    making: ClassVar[tuple[str, ...]] = MAKING
    seeding: ClassVar[tuple[str, ...]] = ()
    state_access: ClassVar[tuple[str, ...]] = ()
    """Functions that tell where a stream stands, or let it stand elsewhere, which no node of a graph could remember."""

    def draw(self, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The program draws from the stream behind ``numpy.random`` by the function of this name."""
        listener = current_listener()
        if listener is not None and listener.hears(sys._getframe(2)):
            raise listener.refusal(f"numpy.random.{name}")
        return original(*args, **kwargs)

    def make(self, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The program makes a generator."""
        listener = current_listener()
        has_seed = any(value is not None for value in (*args, *kwargs.values()))
        if listener is not None and not has_seed and listener.hears(sys._getframe(2)):
            raise listener.refusal("a generator of NumPy without a seed")
        return original(*args, **kwargs)

    def seed(self, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The program makes something that a generator is seeded with."""
        return original(*args, **kwargs)

    def access_state(self, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The program asks where a stream stands, or sets that."""
        if sys._getframe(2).f_globals.get("__name__", "").startswith("clew."):
            return original(*args, **kwargs)
        raise self.refusal(f"{name} of a stream of random numbers")

    def refusal(self, what: str) -> CaptureError:
        """The error for what cannot be followed."""
        return cannot_follow(what)


Current = Callable[[], Draws | None]
"""What the run that is recording right now in this context makes of draws."""
Maker = Callable[[Any], Any]
_GROUPS = {"draw": "drawing", "make": "making", "seed": "seeding", "access_state": "state_access"}
"""What is asked of ``Draws``, and which of its names are replaced for that."""
_NAMES = {id(getattr(numpy.random, name)): name for name in (*DRAWING, *MAKING, *SEEDING, "get_state", "set_state")}
"""The functions and classes of ``numpy.random`` that are replaced, by their identity when no capture runs."""


def install(
    patches: Patches,
    current: Current,
    kind: type[Draws],
    functions: Iterable[FunctionType] = (),
    note: Callable[[Maker], Maker] = lambda make: make,
) -> None:
    """Let what a ``kind`` of draws wants to hear of report to the run that ``current`` names, if one is recording: in
    NumPy, and where modules of these functions hold it; ``note`` is told of each replacement."""
    wanted = {name: asked for asked, group in _GROUPS.items() for name in getattr(kind, group)}
    makers: dict[int, Maker] = {}
    for identity, name in _NAMES.items():
        if name in wanted:
            makers[identity] = functools.partial(_reporting, name=name, asked=wanted[name], current=current)
            patches.in_dict(vars(numpy.random), name, note(makers[identity]))
    for names in {id(function.__globals__): function.__globals__ for function in functions}.values():
        for own in [own for own, value in names.items() if id(value) in makers]:
            patches.in_dict(names, own, makers[id(names[own])])


def _reporting(original: Any, name: str, asked: str, current: Current) -> Any:
    """The replacement of a function or a class: it asks the draws of the run, if there is one."""

    def call(*args: Any, **kwargs: Any) -> Any:
        draws = current()
        if draws is None:
            return original(*(value.plain if is_traced(value) else value for value in args), **kwargs)
        return getattr(draws, asked)(name, original, args, kwargs)

    is_class = isinstance(original, (type, ClassProxy))
    return ClassProxy(original, {}, call) if is_class else functools.wraps(original)(call)


# ---- where the streams stand -----------------------------------------------------------------------------------------


class Streams(Draws):
    """The streams during one capture: where they stand after the last recorded draw.

    ``own`` are those of the program's, besides the streams behind ``random`` and ``numpy.random``.
    """

    recorder: ExampleRecorder

    def __init__(self, recorder: ExampleRecorder) -> None:
        self.recorder = recorder
        self.own: list[random.Random] = []
        self.expected = self.now()

    def follow(self, own: list[random.Random]) -> None:
        """Draws from these are recorded too."""
        if own:
            self.own = own
            self.expected = self.now()

    def now(self) -> tuple[Any, Any, list[Any]]:
        """Where the streams stand; NumPy makes arrays to tell, which are none of the program's."""
        python, *own = map(_getstate, (SHARED, *self.own))
        with self.recorder.paused():
            return python, numpy.random.get_state(legacy=True), own

    def put(self, states: tuple[Any, Any, list[Any]]) -> None:
        """Let the streams stand there again."""
        with self.recorder.paused():
            numpy.random.set_state(states[1])
        for stream, state in zip((SHARED, *self.own), (states[0], *states[2]), strict=True):
            _setstate(stream, state)

    def moved_unseen(self) -> bool:
        """Whether something else than a recorded draw has moved a stream."""
        left, right = self.now(), self.expected
        return left[0] != right[0] or left[2] != right[2] or not all(map(_is_same, left[1], right[1]))

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Draws inside belong to a call of the graph, which draws them again."""
        known = not self.moved_unseen()
        yield
        if known:
            self.expected = self.now()


def _is_same(one: Any, other: Any) -> bool:
    return one.tobytes() == other.tobytes() if isinstance(one, numpy.ndarray) else bool(one == other)


# ---- in programs on NumPy's arrays -----------------------------------------------------------------------------------


class NumpyStreams(Streams):
    """The streams during the capture of a program on arrays, and the generators that it uses."""

    state_access = ("get_state", "set_state")
    recorder: NumpyRecorder

    def __init__(self, rollback: ArrayRollback, recorder: NumpyRecorder) -> None:
        self.rollback = rollback
        self.followed_ones: list[Any] = []
        self.known: list[Any] = []
        """The generators that the program uses, those that it made itself too."""
        super().__init__(recorder)

    def draw(self, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a draw of NumPy's and record it."""
        return self.record(original, args, kwargs)

    def make(self, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A generator of the graph's."""
        return make_stream(self.recorder, original, args, kwargs)

    def record(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a draw and record it."""
        with self.followed():
            return self.recorder.call(target, args, kwargs)

    def stand_in(self, recorder: NumpyRecorder, stream: Any, place: Any) -> Any:
        """The proxy of a generator from outside."""
        self.rollback.watch_stream(stream)
        self.followed_ones.append(stream)
        self.known.append(stream)
        return _stand_in(stream, place, recorder)


class TracedStream(Traced):
    """A proxy of a generator of random numbers; its methods are recorded."""

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
