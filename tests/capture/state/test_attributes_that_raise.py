"""Objects around a program that raise when anything is asked of them, as stand-ins for missing packages do."""

import pytest
import torch

import clew


class Missing:
    """Raises whatever is asked."""

    def __getattr__(self, name):
        raise ImportError(f"the package that has {name} is not installed")

    def __call__(self, *args):
        raise ImportError("the package is not installed")


missing = Missing()
table = {"loader": Missing()}


def named(x):
    return missing.load(x) if x is None else x + 1


def in_a_container(x):
    return table["loader"](x) if x is None else x + 1


def given(x, loader=Missing()):
    return loader(x) if x is None else x + 1


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.loader = Missing()
        self.loaders = [Missing()]

    def forward(self, x):
        return self.loaders[0](self.loader) if x is None else x + 1


@pytest.mark.parametrize("program", [named, in_a_container, given, Model()], ids=("global", "dict", "default", "model"))
def test_what_is_not_used_is_not_asked(program):
    captured = clew.trace(program, args=(torch.ones(2),))
    assert captured(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]


class Doubled(torch.autograd.Function):
    """Stays one call, in which ``type`` is named."""

    @staticmethod
    def forward(ctx, x):
        return x * 2 if type(x) is not None else x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def asks_for_types(x):
    return Doubled.apply(x) + 1 if type(x.shape[0]) is int else x


def test_what_stands_for_type_is_looked_at_too():
    captured = clew.trace(asks_for_types, args=(torch.ones(2),))
    assert captured(torch.ones(3)).tolist() == [3.0, 3.0, 3.0]
