"""Arguments that the example leaves out are inputs with their defaults: a later call may give them."""

from __future__ import annotations

import functools
import inspect

import numpy
import pytest
import torch
from torch import nn

import clew

X = torch.arange(4.0)


def program(x, scale=2.0, shift=3, labels=None, unused=None, *rest, keep=True, **options):
    y = x * scale + shift
    if labels is not None:
        y = y - labels
    return y if keep else -y


def test_the_signature_is_that_of_the_original():
    captured = clew.trace(program, (X,))
    assert inspect.signature(captured) == inspect.signature(program)
    assert "labels=None, unused=None, *rest, keep=True, **options" in captured.code


@pytest.mark.parametrize("given", [{}, {"scale": 0.5}, {"shift": 7, "scale": -1.0}, {"unused": X}, {"other": 3}])
def test_numbers_left_out_and_what_is_never_read_may_be_given_later(given):
    captured = clew.trace(program, (X,))
    assert torch.equal(captured(X, **given), program(X, **given))


def test_by_position_too():
    captured = clew.trace(program, (X,))
    assert torch.equal(captured(X, 4.0, -2, None, "text", 5, 6), program(X, 4.0, -2))


def test_what_was_asked_is_guarded():
    captured = clew.trace(program, (X,))
    with pytest.raises(clew.GuardError, match=r"labels is None(.|\n)*give it in the example"):
        captured(X, labels=X)
    assert torch.equal(captured(X, keep=False), program(X, keep=False))
    with pytest.raises(clew.GuardError, match=r"type\(keep\) is bool"):
        captured(X, keep=0)
    with pytest.raises(clew.GuardError, match=r"type\(shift\) is int"):
        captured(X, shift=1.5)


def test_a_read_through_locals_is_a_read():
    def sees_all(x, extra=None):
        return x if locals()["extra"] is None else x + 1

    with pytest.raises(clew.GuardError, match="extra is None"):
        clew.trace(sees_all, (X,))(X, X)


def test_a_read_by_a_function_inside_is_a_read():
    def outer(x, extra=None):
        def inner():
            return extra

        return x if inner() is None else x + 1

    with pytest.raises(clew.GuardError, match="extra is None"):
        clew.trace(outer, (X,))(X, X)


def test_a_wrapper_sees_which_arguments_were_given():
    def counting(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            return function(*args, **kwargs) + len(kwargs)

        return call

    @counting
    def scaled(x, scale=2.0):
        return x * scale

    captured = clew.trace(scaled, (X,))
    assert torch.equal(captured(X), X * 2)
    with pytest.raises(clew.GuardError, match="scale"):
        captured(X, scale=2.5)


class Layer(nn.Module):
    def forward(self, x, scale=2.0, mask=None):
        return x * scale if mask is None else x * mask


def test_modules():
    captured = clew.trace(Layer(), (X,))
    assert torch.equal(captured(X, scale=5.0), X * 5)
    with pytest.raises(clew.GuardError, match="mask is None"):
        captured(X, mask=X)


def test_a_hook_sees_which_arguments_were_given():
    layer = Layer()
    layer.register_forward_pre_hook(lambda part, args, kwargs: ((args[0] + len(kwargs),), kwargs), with_kwargs=True)
    captured = clew.trace(layer, (X,))
    assert torch.equal(captured(X), X * 2)


def test_recursion_finds_the_plain_default():
    def down(x, depth=2):
        return x if depth == 0 else down(x + depth, 0) + inner(x)

    def inner(x, depth=2):
        return x * depth

    captured = clew.trace(down, (X,))
    assert torch.equal(captured(X), down(X))


def test_numpy():
    def program(x, power=2, bias=None, shift=1.0):
        return x**power + shift if bias is None else x + bias

    captured, x = clew.trace(program, (numpy.arange(3.0),)), numpy.arange(4.0)
    assert numpy.array_equal(captured(x, shift=0.25), program(x, shift=0.25))
    assert numpy.array_equal(captured(x, 3), program(x, 3))
    assert numpy.array_equal(captured(x, bias=x), program(x, bias=x))  # None or not is a branch


def test_positional_only_parameters_stay_as_they_were():
    def program(x, scale=2.0, /, shift=1.0):
        return x * scale + shift

    captured = clew.trace(program, (X,))
    assert torch.equal(captured(X, shift=4.0), program(X, shift=4.0))
    assert torch.equal(captured(X), program(X))
    with pytest.raises(clew.GuardError, match="scale"):
        captured(X, 3.0)
