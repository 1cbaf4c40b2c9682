"""A value around a program is set to another one after the capture: each kind of value, in each place."""

from __future__ import annotations

import enum
import functools
import re
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import clew

X = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


class Mode(enum.Enum):
    FIRST, SECOND = 2, 5


class Two:
    k = 2


class Five:
    k = 5


MODULES = (types.ModuleType("two"), types.ModuleType("five"))
MODULES[0].k, MODULES[1].k = 2, 5  # type: ignore[attr-defined]

Body = Callable[[Any, Any], Any]
VALUES: dict[str, tuple[Any, Any, Body]] = {
    "none": (None, 2, lambda x, v: x if v is None else x * v),
    "ellipsis": (..., 0, lambda x, v: x[v]),
    "tuple": ((1, (2, 3)), (1, (5, 3)), lambda x, v: x * v[1][0]),
    "tuple_of_tensors": ((X[0],), (X[1],), lambda x, v: x * v[0]),
    "tuple_of_layers": ((nn.ReLU(),), (nn.Tanh(),), lambda x, v: v[0](x)),
    "enum": (Mode.FIRST, Mode.SECOND, lambda x, v: x * v.value),
    "dtype": (torch.float32, torch.float64, lambda x, v: x.to(v)),
    "class": (Two, Five, lambda x, v: x * v.k),
    "class_of_layers": (nn.ReLU, nn.Tanh, lambda x, v: v()(x)),
    "layer": (nn.ReLU(), nn.Tanh(), lambda x, v: v(x)),
    "module": (*MODULES, lambda x, v: x * v.k),
    "builtin": (torch.sin, torch.cos, lambda x, v: v(x)),
    "partial": (functools.partial(torch.mul, other=2), functools.partial(torch.mul, other=5), lambda x, v: v(x)),
    "method": (Two().__getattribute__, Five().__getattribute__, lambda x, v: x * v("k")),
    "descriptor": (torch.Tensor.sin, torch.Tensor.cos, lambda x, v: v(x)),
    "frozen_set": (frozenset({2}), frozenset({5}), lambda x, v: x * sum(v)),
    "pattern": (re.compile("a"), re.compile("b"), lambda x, v: x * 2 if v.match("a") else x),
}

Made = tuple[Callable[[Any], Any], Callable[[Any], None]]
"""A program, and what sets its value."""


def _in_a_closure(value: Any, body: Body) -> Made:
    def program(x: Any) -> Any:
        return body(x, value)

    def change(other: Any) -> None:
        nonlocal value
        value = other

    return program, change


def _in_an_object(value: Any, body: Body) -> Made:
    class Holder:
        def __init__(self) -> None:
            self.value = value

        def run(self, x: Any) -> Any:
            return body(x, self.value)

    holder = Holder()
    return holder.run, lambda other: setattr(holder, "value", other)


def _in_a_class(value: Any, body: Body) -> Made:
    class Holder:
        pass

    Holder.value = value  # type: ignore[attr-defined]
    return lambda x: body(x, Holder.value), lambda other: setattr(Holder, "value", other)


def _in_a_module_around(value: Any, body: Body) -> Made:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.__dict__["value"] = value

        def forward(self, x: Any) -> Any:
            return body(x, self.value)

    holder = Holder()
    return lambda x: holder(x), lambda other: vars(holder).update(value=other)


def _in_a_method_of_a_module(value: Any, body: Body) -> Made:
    program, change = _in_a_module_around(value, body)
    (holder,) = [one.cell_contents for one in change.__closure__ or ()]
    return holder.forward, change


def _in_an_attribute_of_the_function(value: Any, body: Body) -> Made:
    def program(x: Any) -> Any:
        return body(x, program.value)  # type: ignore[attr-defined]

    program.value = value  # type: ignore[attr-defined]
    return program, lambda other: setattr(program, "value", other)


def _in_a_default(value: Any, body: Body) -> Made:
    def inner(x: Any, value: Any = value) -> Any:
        return body(x, value)

    return lambda x: inner(x), lambda other: setattr(inner, "__defaults__", (other,))


PLACES = [
    _in_a_closure,
    _in_an_object,
    _in_a_class,
    _in_a_module_around,
    _in_a_method_of_a_module,
    _in_an_attribute_of_the_function,
    _in_a_default,
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", VALUES)
def test_another_value_is_followed_or_noticed(kind: str, place: Callable[[Any, Body], Made]) -> None:
    first, second, body = VALUES[kind]
    program, change = place(first, body)
    captured = clew.trace(program, (X,))
    assert torch.equal(captured(X), program(X))
    change(second)
    try:
        result = captured(X)
    except clew.GuardError:
        return
    wanted = program(X)
    assert result.dtype == wanted.dtype
    assert torch.equal(result, wanted)
