"""What may be traced, and which program it is that gets traced: decorators, forwards set on instances, callables."""

import asyncio
import functools
import types

import numpy
import pytest
import torch
from torch import nn

import clew
from clew.errors import MixedTracers, TraceError, UnsupportedArgument

X = torch.rand(3, 3)


def tenfold(function):
    @functools.wraps(function)
    def around(*args, **kwargs):
        return function(*args, **kwargs) * 10

    return around


@tenfold
def keyword_only(x, *, factor=2):
    return x * factor


@tenfold
def plain(x, factor=2):
    return x * factor


@tenfold
def variadic(x, *rest):
    return x + len(rest)


@pytest.mark.parametrize("function", [keyword_only, plain])
def test_a_decorator_is_a_part_of_the_program(function):
    traced = clew.symbolic_trace(function)
    torch.testing.assert_close(traced(X), X * 20)
    torch.testing.assert_close(traced(X, factor=3), X * 30)


def test_a_decorated_function_with_star_args_is_refused():
    with pytest.raises(TraceError, match=r"variadic is decorated and takes \*args"):
        clew.symbolic_trace(variadic)


class Identity(nn.Module):
    def forward(self, x):
        return x


def plus_one(x):
    return x + 1


def scaled(module, x, *, factor):
    return x * factor


@pytest.mark.parametrize(
    "replace",
    [
        lambda module: plus_one,
        lambda module: functools.partial(scaled, module, factor=3),
        lambda module: types.MethodType(lambda self, x: x * 2 + self.training, module),
        lambda module: nn.Softmax(dim=1).forward,
    ],
)
def test_a_forward_set_on_the_instance_is_the_one_traced(replace):
    module = Identity()
    module.forward = replace(module)
    torch.testing.assert_close(clew.symbolic_trace(module)(X), module(X))


class Static(nn.Module):
    @staticmethod
    def forward(x):
        return x + 1


def test_a_static_forward():
    torch.testing.assert_close(clew.symbolic_trace(Static())(X), X + 1)


class Mine(torch.Tensor):
    pass


class Holds(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Identity()
        self.constant = torch.ones(3).as_subclass(Mine)

    def forward(self, x):
        return hand_over(self.inner, x, torch.full((3,), 2.0).as_subclass(Mine)) + self.constant


def hand_over(module, x, y):
    return torch.overrides.handle_torch_function(hand_over, (x,), module, x, y)


def test_users_own_subclasses_of_modules_and_tensors_are_arguments():
    targets = [node.target for node in clew.symbolic_trace(Holds()).graph.nodes if node.op == "get_attr"]
    assert targets == ["inner", "_tensor_constant0", "constant"]


def test_values_of_another_trace_are_refused_where_they_are_used():
    kept = []

    def keeps(x):
        kept.append(x + 1)
        return x

    clew.symbolic_trace(keeps)
    with pytest.raises(MixedTracers, match=r"'add' belongs to another graph(.|\n)*return x \* kept"):
        clew.symbolic_trace(lambda x: uses(x, kept))


def uses(x, kept):
    return x * kept[0]


async def coroutine(x):
    return x + 1


def generator(x):
    yield x + 1


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("function", [coroutine, generator])
def test_coroutines_and_generators_are_refused(function):
    assert asyncio.iscoroutinefunction(coroutine)
    with pytest.raises(UnsupportedArgument, match="coroutine|generator"):
        clew.symbolic_trace(function)


@pytest.mark.parametrize("ask", [numpy.array, numpy.asarray, lambda x: numpy.asarray([x, x])])
def test_numpy_arrays_of_symbols_are_refused(ask):
    with pytest.raises(TraceError, match="array of NumPy"):
        clew.symbolic_trace(lambda x: ask(x))


def test_numpy_functions_of_symbols_are_refused():
    with pytest.raises(TypeError, match="does not support ufuncs"):
        clew.symbolic_trace(lambda x: numpy.sin(x))


def test_numpy_numbers_leave_the_operator_to_the_symbol():
    traced = clew.symbolic_trace(lambda x: numpy.float64(2.0) * x + x * numpy.float64(3.0))
    torch.testing.assert_close(traced(X), X * 5)


def test_modules_that_refer_to_each_other():
    class Child(nn.Module):
        def __init__(self, parent):
            super().__init__()
            self.parent = parent

        def forward(self, x):
            return x + 1

    parent = Identity()
    parent.child = Child(parent)
    parent.forward = lambda x: parent.child(x)
    torch.testing.assert_close(clew.symbolic_trace(parent)(X), X + 1)
