"""Functions among the arguments that are made anew for each call: what they do counts, not which object they are."""

from __future__ import annotations

import functools

import pytest
import torch

import clew
from clew.errors import GuardError

X = torch.arange(3.0)


def apply(x, function):
    return function(x) + 1


def give_back(x, function):
    return function(x), function


def is_known(x, function, known):
    return function(x) if function is known else x


class Scale:
    def __init__(self, factor):
        self.factor = factor
        self.calls = 0

    def times(self, x):
        self.calls += 1
        return x * self.factor


def _lambda(factor=2.0):
    return lambda x: x * factor


def _with_default(power=2):
    def inner(x, power=power):
        return x**power

    return inner


def _counting():
    count = 0

    def inner(x):
        nonlocal count
        count += 1
        return x * count

    return inner


@pytest.mark.parametrize(
    "make",
    [
        lambda: lambda x: x * 3,
        _lambda,
        _with_default,
        lambda: functools.partial(torch.clamp, min=1.0),
        lambda: functools.partial(_with_default(), power=3),
    ],
)
def test_the_same_function_made_again(make):
    graph = clew.trace(apply, (X, make()))
    assert torch.equal(graph(X + 1, make()), apply(X + 1, make()))


@pytest.mark.parametrize(
    ("make", "other"),
    [
        (lambda: lambda x: x * 3, lambda x: x * 4),
        (_lambda, _lambda(3.0)),
        (_with_default, _with_default(3)),
        (lambda: functools.partial(torch.clamp, min=1.0), functools.partial(torch.clamp, min=2.0)),
        (lambda: functools.partial(torch.clamp, min=1.0), functools.partial(torch.clamp, max=1.0)),
        (lambda: torch.nn.ReLU().forward, torch.nn.Tanh().forward),
    ],
)
def test_another_function_is_guarded(make, other):
    graph = clew.trace(apply, (X, make()))
    with pytest.raises(GuardError, match="another"):
        graph(X, other)


def test_a_function_that_is_given_back_is_the_one_given():
    graph = clew.trace(give_back, (X, _lambda()))
    function = _lambda()
    assert graph(X, function)[1] is function


def test_a_program_that_compares_functions_gets_the_same():
    first = _lambda()
    graph = clew.trace(is_known, (X, first, first))
    assert torch.equal(graph(X, first, first), X * 2)
    with pytest.raises(GuardError):
        graph(X, _lambda(), first)


def test_a_function_that_sets_its_own_variables_must_be_the_same():
    function, twin = _counting(), _counting()
    graph = clew.trace(apply, (X, function))
    for _ in range(3):
        assert torch.equal(graph(X, function), apply(X, twin))
    with pytest.raises(GuardError):
        graph(X, _counting())


def test_methods_of_objects_that_are_followed():
    graph = clew.trace(apply, (X, Scale(2.0).times))
    for factor in (2.0, 3.0):
        one, other = Scale(factor), Scale(factor)
        assert torch.equal(graph(X, one.times), apply(X, other.times))
        assert one.calls == other.calls == 1


def test_a_method_of_a_module_belongs_to_it():
    layer = torch.nn.Linear(3, 3)
    graph = clew.trace(apply, (X, layer.forward))
    assert torch.equal(graph(X + 1, layer.forward), apply(X + 1, layer.forward))
    with pytest.raises(GuardError):
        graph(X, torch.nn.Linear(3, 3).forward)


def run_model(model, x):
    return model(x).relu()


def test_a_module_among_the_arguments():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5)).eval()
    graph = clew.trace(run_model, (model, torch.randn(5, 3)))
    for count in (2, 7):
        x = torch.randn(count, 3)
        assert torch.equal(graph(model, x), run_model(model, x))
    with torch.no_grad():
        model[0].weight.mul_(2)
    x = torch.randn(3, 3)
    assert torch.equal(graph(model, x), run_model(model, x))
    with pytest.raises(GuardError):
        graph(torch.nn.Sequential(torch.nn.Linear(3, 4)), x)
    model.train()
    with pytest.raises(GuardError, match="training"):
        graph(model, x)


def test_a_module_among_the_arguments_that_trains():
    def build():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))

    model, twin = build(), build()
    graph = clew.trace(run_model, (model, torch.randn(5, 3)))
    assert torch.equal(model[1].running_mean, twin[1].running_mean)
    for count in (4, 6):
        x = torch.randn(count, 3)
        assert torch.equal(graph(model, x), run_model(twin, x))
    assert torch.equal(model[1].running_mean, twin[1].running_mean)
    assert torch.equal(model[1].num_batches_tracked, twin[1].num_batches_tracked)


def test_a_module_among_the_arguments_that_counts():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    model, twin = Counting(), Counting()
    graph = clew.trace(run_model, (model, X))
    for _ in range(3):
        assert torch.equal(graph(model, X), run_model(twin, X))
    assert model.calls == twin.calls == 3
