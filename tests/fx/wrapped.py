"""Functions that both facades leave whole: ``wrap`` looks at the module that calls it, so it is called here."""

import contextlib
from math import sqrt

import torch

from .facades import importable


def by_name(x, y):
    return x + y + 1


def by_value(x):
    return x * 2 if x.sum() > 0 else x


def by_decorator(x, *, scale=1.0):
    return x * scale


def with_list(values):
    return sum(values)


def never_registered(x):
    return x - 1


def doubled(fn):
    def inner(*args, **kwargs):
        return fn(*args, **kwargs) * 2

    return inner


@doubled
def decorated_elsewhere(x):
    return x + 5


@contextlib.contextmanager
def nothing():
    yield


def inside_context(x):
    with nothing():
        return x + 1


@torch.jit.script
def scripted(x):
    return x + 1


def call_scripted(x):
    return scripted(x)


for facade in importable():
    facade.wrap("by_name")
    facade.wrap(by_value)
    by_decorator = facade.wrap(by_decorator)
    facade.wrap("with_list")
    facade.wrap("decorated_elsewhere")
    facade.wrap("inside_context")
    facade.wrap("call_scripted")
    facade.wrap("len")
    facade.wrap("getattr")


def calls_by_name(x, y):
    return by_name(x, y) * 2


def calls_by_value(x):
    return by_value(x) + 1


def calls_by_decorator(x):
    return by_decorator(x, scale=3.0)


def calls_with_list(a, b):
    return with_list([a, b])


def calls_len(x):
    return len(x)


def calls_getattr(x):
    return getattr(x, "nonexistent_attr", torch.tensor(2.0))


def calls_sqrt_of_len(x):
    return x / sqrt(len(x))


def calls_on_constants(x):
    return x + by_name(1, 2)


def calls_context(x):
    return inside_context(x) * 2


def calls_decorated(x):
    return decorated_elsewhere(x)


def calls_a_scripted_one(x):
    return call_scripted(x)


class CallsByName(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = torch.nn.ReLU()

    def forward(self, x):
        return by_name(self.relu(x), x)


class CallsLen(torch.nn.Module):
    def forward(self, x):
        return len(x)
