"""The world around a call: random numbers, modes of torch, printed text, and the time a call may take.

`seed_everything` starts all streams of random numbers; `random_state` and `modes` are pictures of what a call or a
capture may change besides its arguments; `quietly` keeps printed text and warnings from the terminal.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import logging
import math
import random
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import torch

from tests.footguns.pictures import Picture


class TooSlow(BaseException):
    """A call that did not come back in its time; no handler of a program may catch it."""


def seed_everything(seed: int) -> None:
    """Starts the streams of torch, NumPy and Python."""
    torch.default_generator.manual_seed(seed)  # torch.manual_seed asks every kind of device, which takes longer
    numpy.random.seed(seed)
    random.seed(seed)


def random_state() -> Picture:
    """Where the three streams stand."""
    name, words, position, *rest = numpy.random.get_state(legacy=True)
    streams = (
        torch.get_rng_state().numpy().tobytes(),
        (words.tobytes(), position, *rest),
        random.getstate(),
    )
    names = (" of torch", " of numpy", " of random")
    return Picture("", parts={name: Picture("", (hash(one),)) for name, one in zip(names, streams, strict=True)})


def modes() -> Picture:
    """The switches of torch, and the functions that a capture may have swapped for others."""
    facts: dict[str, Any] = {
        "gradients enabled": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "default dtype": torch.get_default_dtype(),
        "function modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "logging level": logging.getLogger().level,
    }
    facts["swapped functions"] = tuple(name for name, value in WATCHED.items() if _found(name) is not value)
    return Picture("", parts={f" {name}": Picture("", (fact,)) for name, fact in facts.items()})


def _found(name: str) -> object:
    holder, _, attribute = name.partition(".")
    return vars(HOLDERS[holder]).get(attribute)


HOLDERS = {"builtins": builtins, "math": math, "Module": torch.nn.Module, "torch": torch, "Tensor": torch.Tensor}
WATCHED_NAMES = {
    "builtins": ("len", "getattr", "isinstance", "iter", "range", "print", "type", "int", "float", "bool", "sorted"),
    "math": ("sqrt", "ceil", "floor", "log", "exp", "prod", "isclose"),
    "Module": ("__call__", "__getattr__", "__setattr__", "_call_impl"),
    "torch": ("arange", "from_numpy", "rand", "tensor", "zeros"),
    "Tensor": ("__add__", "__bool__", "__iter__", "__len__", "item", "numpy", "tolist"),
}
WATCHED = {f"{holder}.{name}": _found(f"{holder}.{name}") for holder, names in WATCHED_NAMES.items() for name in names}


@contextlib.contextmanager
def restored() -> Iterator[None]:
    """Whatever runs inside, the switches of torch and the random numbers are afterwards as they were before."""
    switches = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_default_dtype()
    streams = torch.get_rng_state(), numpy.random.get_state(), random.getstate()
    stacked = torch._C._len_torch_function_stack()
    try:
        yield
    finally:
        while torch._C._len_torch_function_stack() > stacked:
            torch._C._pop_torch_function_stack()
        torch.set_grad_enabled(switches[0])
        torch.set_autocast_enabled("cpu", switches[1])
        torch.set_default_dtype(switches[2])
        torch.set_rng_state(streams[0])
        numpy.random.set_state(streams[1])
        random.setstate(streams[2])


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Nothing printed, logged or warned of inside reaches the terminal."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Ends what runs inside when it takes too long; only the main thread of a POSIX system can do so."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise TooSlow(f"did not come back in {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
