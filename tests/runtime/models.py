"""Modules that the tests of this folder trace, importable by their names so that they can be pickled."""

import torch
from torch import nn

import clew


class Block(nn.Module):
    """Everything a module may hold: nests, buffers of both kinds, a plain number."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.weight = nn.Parameter(torch.randn(3))
        self.register_buffer("shift", torch.randn(3))
        self.register_buffer("hidden", torch.randn(3), persistent=False)

    def forward(self, x):
        return self.norm(self.linear(x)) * self.weight + self.shift - self.hidden


class Tied(nn.Module):
    """Two layers with one weight, and one layer under two names."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.third = self.first

    def forward(self, x):
        return self.third(self.second(self.first(x)))


class Custom(nn.Module):
    """A leaf of the user's own, whose repr is no constructor call."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


class Special(clew.GraphModule):
    """A graph module of the user's own."""

    def greet(self):
        return f"I am {type(self).__name__}"


def double_output(module, inputs, output):
    """A forward hook that can be pickled."""
    return output * 2


def small_graph():
    graph = clew.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.add, (x, 1))
    graph.output(graph.call_function(torch.mul, (y, 2)))
    return graph
