"""What every test stands on: the same random numbers each time, and nothing left patched behind.

A test that needs a framework imports it itself; nothing here loads one. Hypothesis runs without deadlines, because
the first call of a framework is slow, and repeats the same examples on each run unless HYPOTHESIS_PROFILE=explore
asks for new ones.
"""

from __future__ import annotations

import builtins
import gc
import math
import os
import random
import signal
import sys
from collections.abc import Iterator

import numpy
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("repeat", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

WATCHED_BUILTINS = ("len", "getattr", "isinstance", "iter", "range", "print")
WATCHED_MODULE_METHODS = ("__call__", "__getattr__", "__setattr__")


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    """Each test starts from the same seeds, whatever ran before it in this process."""
    random.seed(0)
    numpy.random.seed(0)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _nothing_left_patched() -> Iterator[None]:
    """Tracing swaps functions in for its own time only: what it may swap is the same object after the test."""
    before = watched_functions()
    yield
    changed = changed_since(before)
    assert not changed, f"the test left these patched: {', '.join(changed)}"
    patches = sys.modules.get("clew.capture.patches")
    left = 0 if patches is None else patches.patched_places()
    assert not left, f"the test left {left} places in the registry of patches"
    assert not tensors_are_sequences(), "the test left torch.Tensor as a sequence in what C code sees of it"


def watched_functions() -> dict[str, object]:
    """What a tracer may patch or switch, by name; that of torch only when torch is loaded already."""
    watched: dict[str, object] = {f"builtins.{name}": getattr(builtins, name) for name in WATCHED_BUILTINS}
    watched |= {f"math.{name}": value for name, value in vars(math).items() if callable(value)}
    watched |= {"gc": gc.isenabled(), "SIGINT": signal.getsignal(signal.SIGINT)}
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "nn"):
        watched["modes of torch's functions"] = torch._C._len_torch_function_stack()
        methods = {f"torch.nn.Module.{name}": vars(torch.nn.Module).get(name) for name in WATCHED_MODULE_METHODS}
        watched |= methods
    return watched


def changed_since(before: dict[str, object]) -> list[str]:
    """The names of the watched functions that are no longer the objects they were."""
    after = watched_functions()
    return sorted(name for name, value in before.items() if after[name] is not value)


def tensors_are_sequences() -> bool:
    """Whether torch's C code takes tensors for sequences: a method set on the class and deleted again does that."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return False
    try:
        return bool(torch.tensor([torch.tensor(1.0)]).shape != (1,))
    except TypeError:  # len() of a 0-d tensor
        return True
