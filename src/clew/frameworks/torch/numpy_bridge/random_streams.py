"""Streams of random numbers around a torch program, and the draws from that of NumPy.

Each draw is a call of its own in the graph. Functions of ``numpy.random`` that give a number are recorded here, those
that give arrays by the recorder of arrays, where NumPy is followed; so the graph draws afresh at each call, from the
same stream, and follows a seed. A draw by any other means moves a stream without a node: it is noticed, and refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from clew.capture.patches import Patches
from clew.capture.python.imported_names import noted
from clew.capture.python.random_numbers import DRAWS
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.recording.recorder import Scalar
from clew.errors import CaptureError
from clew.frameworks.numpy import files, random_streams
from clew.frameworks.torch.calls.constructors import twin_of
from clew.frameworks.torch.refusals import refusal
from clew.ir.arguments import leaves

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"

_NUMBERS = (int, float)


def draw(package: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """A draw from the stream of ``numpy.random`` by the function of this name."""
    return getattr(sys.modules[package], name)(*args, **kwargs)


DRAWS.append(draw)


class Streams(random_streams.Streams):
    """The streams during one capture: where they stood before it, and where they stand after the last recorded draw."""

    drawing = (
        "rand", "randn", "random", "random_sample", "ranf", "sample", "uniform", "normal", "standard_normal", "randint",
        "beta", "gamma", "exponential", "poisson", "binomial", "laplace", "lognormal", "seed",
    )  # fmt: skip
    making = ("default_rng", "RandomState")
    seeding = random_streams.SEEDING
    state_access = ("get_state", "set_state")
    recorder: TorchRecorder

    def record(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a draw and record it; draws that nobody saw before it stay visible as such."""
        recorder = self.recorder
        node_args, node_kwargs = recorder.argument(args), recorder.argument(kwargs)
        with self.followed():
            value = recorder.perform(target, args, kwargs)
        return recorder.result(value, recorder.create(target, node_args, node_kwargs))

    def draw(self, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A number is drawn by the graph, an array where these are followed."""
        is_scalar = all(map(_is_number, (*args, *kwargs.values()))) and kwargs.get("size") is None
        if is_scalar and not _has_size(name, args):
            return self.record(draw, ("numpy.random", name, *args), kwargs)
        arrays = self.recorder.arrays
        if arrays is None:
            return original(*args, **kwargs)
        with self.followed():
            return arrays.call(original, args, kwargs)

    def make(self, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A generator is refused without a seed, and recorded where arrays are followed."""
        if (args or tuple(kwargs.values()) or (None,))[0] is None:
            why = "it gives another value at each call, which the graph would not"
            raise refusal("a generator of NumPy without a seed", why, CannotFollow)
        arrays = self.recorder.arrays
        return original(*args, **kwargs) if arrays is None else arrays.streams.make(name, original, args, kwargs)

    def seed(self, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Of a plain seed it is made, of one that the program has calculated not."""
        if any(issubclass(type(leaf), Scalar) for leaf in leaves((args, kwargs))):
            raise refusal(f"numpy.random.{name} of a seed that the program has calculated", kind=CannotFollow)
        return original(*args, **kwargs)

    def refusal(self, what: str) -> CaptureError:
        """The error for what cannot be followed."""
        return refusal(what)


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

    def streams() -> Streams | None:
        recorder = current()
        return None if recorder is None else recorder.streams

    random_streams.install(patches, streams, Streams, note=noted)
    files.install(patches)


def _is_number(value: Any) -> bool:
    return value is None or type(value) in _NUMBERS or issubclass(type(value), Scalar)


_PLACE_OF_SIZE = {"rand": 0, "randn": 0, "random": 0, "random_sample": 0, "ranf": 0, "sample": 0, "standard_normal": 0}
_PLACE_OF_SIZE |= {"exponential": 1, "poisson": 1, "seed": 1, "gamma": 2}


def _has_size(name: str, args: tuple[Any, ...]) -> bool:
    """Whether NumPy is asked for an array."""
    return any(arg is not None for arg in args[_PLACE_OF_SIZE.get(name, 2) :])
