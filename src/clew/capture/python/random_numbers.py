"""Python's random numbers: from the stream behind ``random``, or from a ``random.Random`` around the program.

Draws go to the run's listener, which records or refuses them. A recorded draw is a call from the same stream, so that a
graph draws afresh at each call; where an object is drawn (a function, a layer, an array), its index is drawn and the
program takes a path for each. A stream that the program seeds itself gives the same numbers at each call, and is left
alone. Sources of entropy (``uuid``, ``secrets``) and generators without a seed are refused: no graph could draw the
same. What a module makes as it is imported is made once, and left alone.
"""

from __future__ import annotations

import functools
import operator
import os
import random
import sys
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clew.capture.patches import Patches
from clew.capture.python.callers import is_importing, line_of_program
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import current
from clew.capture.recording.recorder import Scalar
from clew.capture.state.containers import CHANGING
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError

if TYPE_CHECKING:
    from clew.capture.recording.example_recorder import ExampleRecorder


DRAWS: list[Any] = []
"""Functions of a graph that give another number at each call: those of random streams and of clocks."""

_NAMES = (
    "random uniform triangular randint randrange gauss normalvariate lognormvariate expovariate vonmisesvariate "
    "gammavariate betavariate paretovariate weibullvariate getrandbits seed"
).split()
_NUMBERS = (int, float, bool)
SHARED = random._inst  # type: ignore[attr-defined]
"""The stream behind the functions of ``random``."""


def draw(name: str, *args: Any, **kwargs: Any) -> Any:
    """A draw from the stream behind ``random`` by the function of this name."""
    return getattr(random, name)(*args, **kwargs)


def draw_from(stream: random.Random, name: str, *args: Any, **kwargs: Any) -> Any:
    """A draw from a stream by the method of this name."""
    return getattr(stream, name)(*args, **kwargs)


def shuffled(items: list[Any], stream: random.Random = SHARED) -> list[Any]:
    """The items in another order, drawn from a stream."""
    order = list(items)
    stream.shuffle(order)
    return order


DRAWS.extend((draw, draw_from, shuffled))


class StreamState(tuple[Any, ...]):
    """Where a stream stands, as far as a program may see it: it can go back there, and look at no number in it."""

    node: Any = None
    recorder: ExampleRecorder

    def _look(self) -> None:
        if self.recorder.open and not self.recorder.depth:
            raise _refusal("a look into the state of a stream of random numbers")

    def __getitem__(self, place: Any) -> Any:
        self._look()
        return super().__getitem__(place)

    def __iter__(self) -> Any:
        self._look()
        return super().__iter__()


def _is_number(value: Any) -> bool:
    return value is None or type(value) in _NUMBERS or issubclass(type(value), Scalar)


def _record(recorder: ExampleRecorder, stream: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    if stream is None:
        return recorder.streams.record(draw, (name, *args), kwargs)
    return recorder.streams.record(draw_from, (stream, name, *args), kwargs)


def _draw(
    name: str, recorder: ExampleRecorder, stream: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A number; a draw by means of anything but numbers is made, and noticed as one that nobody follows."""
    if not all(map(_is_number, (*args, *kwargs.values()))):
        return original(*args, **kwargs)
    return _record(recorder, stream, name, *args, **kwargs)


def _choice(
    recorder: ExampleRecorder, stream: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    items = (*args, *kwargs.values())[0]
    if not len(items):
        return original(*args, **kwargs)
    return _picked(recorder, items, _record(recorder, stream, "randrange", len(items)))


def _choices(
    recorder: ExampleRecorder, stream: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Several of some items: their places are drawn in the same way. How many is a plain number: a list comes out."""
    items = args[0] if args else kwargs.get("population", ())
    rest = {name: int(value) if name == "k" else value for name, value in kwargs.items() if name != "population"}
    given = [part for value in (*args[1:], *rest.values()) for part in (value if isinstance(value, list) else [value])]
    if not len(items) or not all(map(_is_number, given)):
        return original(*args, **kwargs)
    places = _record(recorder, stream, "choices", range(len(items)), *args[1:], **rest)
    return [_picked(recorder, items, place) for place in places]


def _sample(
    recorder: ExampleRecorder, stream: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Some of the items, each at most once."""
    if len(args) != 1 + ("k" not in kwargs) or set(kwargs) - {"k"} or not isinstance(args[0], (list, tuple, range)):
        return original(*args, **kwargs)
    items, count = args[0], int(kwargs.get("k", args[-1]))
    if type(items) is range or all(map(_is_number, items)):
        return _record(recorder, stream, "sample", items, count)
    places = _record(recorder, stream, "sample", range(len(items)), count)
    return [_picked(recorder, items, place) for place in places]


def _shuffle(
    recorder: ExampleRecorder, stream: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    items = (*args, *kwargs.values())[0]
    if type(items) is not list:
        return original(*args, **kwargs)
    of_numbers = all(map(_is_number, items))
    given = (items if of_numbers else list(range(len(items))), *(() if stream is None else (stream,)))
    order = recorder.streams.record(shuffled, given, {})
    items[:] = order if of_numbers else [_picked(recorder, list(items), place) for place in order]
    return None


def _picked(recorder: ExampleRecorder, items: Any, place: Any) -> Any:
    """The item at a place that was drawn: a number is looked up by the graph, anything else has a path for each."""
    if type(items) is range:
        return items.start + items.step * place
    plain = recorder.concrete(list(items))
    if len({type(item) for item in plain}) == 1 and type(plain[0]) in _NUMBERS:
        node = recorder.create(operator.getitem, (recorder.argument(list(items)), recorder.resolve(place.place)))
        return recorder.result(plain[place.plain], node)
    for index in range(len(items) - 1):
        if place == index:
            return items[index]
    return items[len(items) - 1]


def _getstate(
    recorder: ExampleRecorder, stream: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    state = StreamState(recorder.perform(original, (), {}))
    target, given = (draw, ("getstate",)) if stream is None else (draw_from, (recorder.argument(stream), "getstate"))
    state.node, state.recorder = recorder.create(target, given), recorder
    return state


def _setstate(
    recorder: ExampleRecorder, stream: Any, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    state = (*args, *kwargs.values())[0]
    if type(state) is not StreamState or state.recorder is not recorder:
        raise _refusal("setstate of a stream of random numbers to a state that is not from this call")
    target, given = (draw, ()) if stream is None else (draw_from, (recorder.argument(stream),))
    with recorder.streams.followed():
        recorder.perform(original, (tuple.__getitem__(state, slice(None)),), {})
    recorder.create(target, (*given, "setstate", state.node))
    return None


def recorders() -> dict[str, Any]:
    """What records each way to draw, by the name of the function."""
    recorded: dict[str, Any] = {name: functools.partial(_draw, name) for name in _NAMES}
    recorded |= {"choice": _choice, "choices": _choices, "sample": _sample, "shuffle": _shuffle}
    return recorded | {"getstate": _getstate, "setstate": _setstate}


def _refusal(what: str) -> CaptureError:
    fix = 'keep the function that does it as one call: clew.wrap("its_name") at module level'
    why = "the capture cannot follow it, and guessing could be wrong"
    return CaptureError(f"{what} cannot be captured", where=line_of_program(), why=why, fixes=(fix,))


# ---- what is replaced ------------------------------------------------------------------------------------------------

_REPLACED = tuple(recorders())
_ENTROPY = ((os, "urandom"), (os, "getrandom"), (random, "_urandom"), (uuid, "uuid1"), (uuid, "uuid4"))
CHANGING.update(getattr(home, name) for home, name in _ENTROPY if hasattr(home, name))


def install(patches: Patches) -> None:
    """Let draws from the stream behind ``random``, and sources of entropy, report to the listener."""
    for name in _REPLACED:
        patches.in_dict(vars(random), name, noted(functools.partial(_of_module, name=name), changes=True))
    for home, name in _ENTROPY:
        if hasattr(home, name):
            patches.in_dict(vars(home), name, noted(_refusing, changes=True))
    patches.on_class(random.Random, "__init__", _seeding)


def _refusing(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is not None and listener.hears(sys._getframe(1)):
            raise listener.refusal("entropy of the system")
        return original(*args, **kwargs)

    return refuse


def _seeding(original: Callable[..., Any]) -> Callable[..., Any]:
    """``random.Random`` without a seed."""

    def __init__(self: Any, x: Any = None) -> None:
        listener = current()
        if listener is not None and x is None and listener.hears(sys._getframe(1)) and not is_importing():
            raise listener.refusal(
                "a generator of Python without a seed", "it gives other values at each call of the original"
            )
        original(self, x)

    return __init__


def install_in(patches: Patches, surroundings: Surroundings) -> None:
    """Let draws from the streams of a program report too, if it has any."""
    for name in _REPLACED if surroundings.python_streams() else ():
        patches.on_class(random.Random, name, functools.partial(_of_stream, name=name), inherited=True)


def _of_module(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The replacement of a function of ``random``."""

    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        listener = current()
        if listener is None or not listener.hears(sys._getframe(1)):
            return original(*args, **kwargs)
        return listener.draw(name, None, original, args, kwargs)

    return function


def _of_stream(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The replacement of a method of ``random.Random``."""

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        listener = None if self is SHARED else current()
        if listener is None or not listener.has_stream(self):
            return original(self, *args, **kwargs)
        return listener.draw(name, self, functools.partial(original, self), args, kwargs)

    return method
