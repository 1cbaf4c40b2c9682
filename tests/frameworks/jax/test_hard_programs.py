"""No hard program of JAX is silently wrong: each call gives what the original gives, or is refused."""

from __future__ import annotations

import dataclasses
import random
from types import SimpleNamespace
from typing import Any

import jax
import numpy
import pytest

import clew
from clew.frameworks.jax.types import kind_of
from tests.frameworks.hard_programs import Judge, checked, lazily
from tests.frameworks.jax.compare import bits
from tests.frameworks.jax.hard import PROGRAMS, UNTESTED


def difference(wanted: Any, got: Any) -> str:
    """What differs between two values, in words; empty if nothing does."""
    if type(wanted) is not type(got):
        return f"a {type(got).__name__} instead of a {type(wanted).__name__}"
    if isinstance(wanted, dict):
        if list(wanted) != list(got):
            return f"keys {list(got)} instead of {list(wanted)}"
        wanted, got = list(wanted.values()), list(got.values())
    if isinstance(wanted, (list, tuple)) or hasattr(wanted, "popleft"):
        if len(wanted) != len(got):
            return f"{len(got)} items instead of {len(wanted)}"
        return next((told for pair in zip(wanted, got, strict=True) if (told := difference(*pair))), "")
    if isinstance(wanted, (jax.Array, numpy.ndarray, numpy.generic)):
        same = kind_of(wanted) == kind_of(got) and bits(wanted) == bits(got)
        return "" if same else f"{got!r} instead of {wanted!r}"
    if hasattr(wanted, "__dict__") and not callable(wanted):
        return difference(vars(wanted), vars(got))
    same = wanted is got or wanted == got or (wanted != wanted and got != got)
    return "" if same else f"{got!r} instead of {wanted!r}"


def copied(value: Any) -> Any:
    """The same leaves in containers of their own; arrays of JAX never change."""
    if isinstance(value, tuple):
        items = [copied(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if type(value) is list:
        return [copied(item) for item in value]
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, (numpy.ndarray, set, dict)) or hasattr(value, "popleft"):
        return value.copy()
    if isinstance(value, SimpleNamespace):
        return SimpleNamespace(**copied(vars(value)))
    if dataclasses.is_dataclass(value) and not jax.tree_util.all_leaves([value]):
        return type(value)(**{name: copied(part) for name, part in vars(value).items()})
    return value


def reset() -> None:
    """Put back what programs of the register set."""
    random.seed(3)
    numpy.random.seed(3)
    jax.config.update("jax_default_matmul_precision", None)


JUDGE = Judge(difference, copied, reset)


@pytest.fixture(autouse=True)
def _settings() -> Any:
    yield
    reset()


def test_there_are_enough() -> None:
    assert len(PROGRAMS) >= 60


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in UNTESTED])
def test_traced(name: str) -> None:
    checked(JUDGE.outcomes(PROGRAMS[name], clew.trace), PROGRAMS[name])


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in UNTESTED])
def test_lazy(name: str) -> None:
    JUDGE.outcomes(PROGRAMS[name], lazily(clew.trace))
