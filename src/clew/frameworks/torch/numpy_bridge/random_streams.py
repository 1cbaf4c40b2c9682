"""Streams of random numbers around a torch program, and the draws from that of NumPy.

Each draw is a call of its own in the graph. Functions of ``numpy.random`` that give a number are recorded here, those
of Python in ``python_random``; so the graph draws afresh at each call, from the same stream, and follows a seed. A draw
by any other means moves a stream without a node: it is noticed, and refused.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy.random
import torch

from clew.capture.patches import Patches
from clew.capture.python.clocks import ClassProxy
from clew.capture.python.imported_names import noted
from clew.capture.python.random_numbers import DRAWS
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.recording.recorder import Scalar
from clew.frameworks.numpy.random_streams import make_stream
from clew.frameworks.torch.calls.constructors import twin_of
from clew.frameworks.torch.refusals import refusal
from clew.ir.arguments import leaves

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"

_NUMPY = (
    "rand randn random random_sample ranf sample uniform normal standard_normal randint beta gamma exponential poisson "
    "binomial laplace lognormal seed"
).split()
_NUMBERS = (int, float)
_SHARED = random._inst  # type: ignore[attr-defined]
_getstate, _setstate = random.Random.getstate, random.Random.setstate
"""As they are outside of captures."""


def draw(package: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """A draw from the stream of ``numpy.random`` by the function of this name."""
    return getattr(sys.modules[package], name)(*args, **kwargs)


DRAWS.append(draw)


def _is_same(one: Any, other: Any) -> bool:
    return bool((one == other).all()) if isinstance(one, numpy.ndarray) else one == other


class Streams:
    """The streams during one capture: where they stood before it, and where they stand after the last recorded draw.

    ``own`` are those of the program's, besides the streams behind ``random`` and ``numpy.random``.
    """

    def __init__(self, recorder: TorchRecorder) -> None:
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
        python, *own = map(_getstate, (_SHARED, *self.own))
        with self.recorder.paused():
            return python, numpy.random.get_state(legacy=True), own

    def put(self, states: tuple[Any, Any, list[Any]]) -> None:
        """Let the streams stand there again."""
        with self.recorder.paused():
            numpy.random.set_state(states[1])
        for stream, state in zip((_SHARED, *self.own), (states[0], *states[2]), strict=True):
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

    def record(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a draw and record it; draws that nobody saw before it stay visible as such."""
        recorder = self.recorder
        node_args, node_kwargs = recorder.argument(args), recorder.argument(kwargs)
        with self.followed():
            value = recorder.perform(target, args, kwargs)
        return recorder.result(value, recorder.create(target, node_args, node_kwargs))


class Generators:
    """Generators of torch around a program: where each stands after the last draw that was recorded."""

    def __init__(self) -> None:
        self._expected: dict[int, tuple[Any, Any]] = {}
        self._twins: dict[int, tuple[Any, Any]] = {}

    def twin(self, generator: Any, recorder: TorchRecorder) -> Any:
        """What stands for a generator among the arguments."""
        if id(generator) not in self._twins:
            twin = twin_of(generator, recorder)
            self._twins[id(generator)] = (generator, twin)
            recorder.aliases[id(twin)] = (twin, generator)
        return self._twins[id(generator)][1]

    def commit(self) -> None:
        """The run counts: let the generators that were given stand where their twins stand."""
        for generator, twin in self._twins.values():
            generator.set_state(torch._C.Generator.get_state(twin))

    def watch(self, generator: Any) -> None:
        """Note where a generator stands before the run."""
        self._expected.setdefault(id(generator), (generator, generator.get_state()))

    def watches(self, generator: Any) -> bool:
        """Whether a generator was there before the run, in a variable or in an attribute."""
        return id(generator) in self._expected

    def drawn(self, generator: Any) -> None:
        """A recorded call has drawn from a generator."""
        if id(generator) in self._expected:
            self._expected[id(generator)] = (generator, generator.get_state())

    def moved_unseen(self) -> bool:
        """Whether something else than a recorded draw has moved a generator."""
        return any(not state.equal(generator.get_state()) for generator, state in self._expected.values())


def install(patches: Patches, current: Current) -> None:
    """Let draws report to the capture that ``current`` names, if one is recording."""
    for name in _NUMPY:
        make = functools.partial(_drawing, package=numpy.random.__name__, name=name, current=current)
        patches.in_dict(vars(numpy.random), name, noted(make))
    for name in ("SeedSequence", "PCG64", "MT19937", "Philox", "SFC64", "PCG64DXSM"):
        patches.in_dict(vars(numpy.random), name, functools.partial(_Seeding, current=current))
    making = functools.partial(_making, current=current)
    patches.in_dict(vars(numpy.random), "default_rng", noted(making))
    patches.in_dict(vars(numpy.random), "RandomState", lambda original: ClassProxy(original, {}, making(original)))
    for name in ("get_state", "set_state"):
        patches.in_dict(vars(numpy.random), name, noted(functools.partial(_standing_still, current=current)))


def _making(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """What makes a generator of NumPy's: refused without a seed, recorded where arrays are followed."""

    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        has_seed = (args or tuple(kwargs.values()) or (None,))[0] is not None
        recorder = current()
        if recorder is not None and not has_seed:
            why = "it gives another value at each call, which the graph would not"
            raise refusal("a generator of NumPy without a seed", why, CannotFollow)
        if recorder is not None and recorder.arrays is not None:
            return make_stream(recorder.arrays, original, args, kwargs)
        return original(*args, **kwargs)

    return make


class _Seeding:
    """Stands for a class of NumPy's that takes a seed: of a plain one it makes an object, a traced one is refused."""

    def __init__(self, original: Any, current: Current) -> None:
        self._original, self._current = original, current

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._current() is not None and any(issubclass(type(leaf), Scalar) for leaf in leaves((args, kwargs))):
            what = f"numpy.random.{self._original.__name__} of a seed that the program has calculated"
            raise refusal(what, kind=CannotFollow)
        return self._original(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self._original)


def _standing_still(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """Where a stream stands: no node of the graph could remember it, or go back there."""

    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if current() is not None and not sys._getframe(1).f_globals.get("__name__", "").startswith("clew."):
            raise refusal(f"{original.__name__} of a stream of random numbers")
        return original(*args, **kwargs)

    return refuse


def _is_number(value: Any) -> bool:
    return value is None or type(value) in _NUMBERS or issubclass(type(value), Scalar)


def _drawing(original: Callable[..., Any], package: str, name: str, current: Current) -> Callable[..., Any]:
    @functools.wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        is_scalar = all(map(_is_number, (*args, *kwargs.values()))) and kwargs.get("size") is None
        if recorder is None or not is_scalar or (package == "numpy.random" and _has_size(name, args)):
            arrays = None if recorder is None or package == "random" else recorder.arrays
            if recorder is None or arrays is None:
                return original(*args, **kwargs)
            with recorder.streams.followed():
                return arrays.call(original, args, kwargs)
        return recorder.streams.record(draw, (package, name, *args), kwargs)

    return function


_PLACE_OF_SIZE = {"rand": 0, "randn": 0, "random": 0, "random_sample": 0, "ranf": 0, "sample": 0, "standard_normal": 0}
_PLACE_OF_SIZE |= {"exponential": 1, "poisson": 1, "seed": 1, "gamma": 2}


def _has_size(name: str, args: tuple[Any, ...]) -> bool:
    """Whether NumPy is asked for an array."""
    return any(arg is not None for arg in args[_PLACE_OF_SIZE.get(name, 2) :])
