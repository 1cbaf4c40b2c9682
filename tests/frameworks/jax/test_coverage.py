"""Every public function of ``jax.lax`` and ``jax.numpy`` that takes arrays is captured, and its graph does the same."""

from __future__ import annotations

import warnings
from typing import Any

import jax.numpy as jnp
import pytest
from jax import lax
from jax.extend.core import primitives

import clew
from clew.frameworks.jax.names import qualified_name
from clew.ir.names import find

from .calls import EXCEPTIONS, LAX, NUMPY, case_of, public_functions
from .compare import assert_same

_HOMES = {"lax": lax, "jnp": jnp}
FUNCTIONS = [
    (home, name)
    for home, module in _HOMES.items()
    for name, _ in public_functions(module)
    if f"{home}.{name}" not in EXCEPTIONS
]


@pytest.mark.parametrize("home,name", FUNCTIONS, ids=[f"{home}.{name}" for home, name in FUNCTIONS])
def test_a_function_is_captured(home: str, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = case_of(home, name, vars(_HOMES[home])[name])
        assert case is not None, "no arguments fit: list it in LAX, NUMPY or EXCEPTIONS"
        program, arrays = case
        graph = clew.trace(program, arrays)
        assert_same(program(*arrays), graph(*arrays))


def test_the_lists_name_what_exists() -> None:
    known = {f"{home}.{name}" for home, module in _HOMES.items() for name in vars(module)}
    listed = {*EXCEPTIONS, *(f"lax.{name}" for name in LAX), *(f"jnp.{name}" for name in NUMPY)}
    assert not listed - known
    assert all(reason for reason in EXCEPTIONS.values())


def test_every_primitive_has_a_name_that_text_can_hold() -> None:
    found: list[Any] = [value for name, value in vars(primitives).items() if name.endswith("_p")]
    assert len(found) > 150
    for primitive in found:
        name = qualified_name(primitive)
        assert name is not None, primitive
        assert find(name) is primitive
