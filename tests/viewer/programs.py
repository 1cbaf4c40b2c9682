"""Small programs that pictures are drawn of."""

from __future__ import annotations

import operator

import torch
from torch import nn

import clew


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, 2 * width)
        self.act = nn.ReLU()
        self.second = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.second(self.act(self.first(x)))


class Model(nn.Module):
    def __init__(self, width: int = 8, depth: int = 4) -> None:
        super().__init__()
        self.inward = nn.Linear(3, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.last = Block(width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = self.inward(x)
        for block in self.blocks:
            y = block(y)
        y = self.norm(y)
        return self.last(y).reshape(x.shape[0], -1)


class Deciding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if y.sum() > 0:
            y = torch.sigmoid(y)
        else:
            y = self.layer(-y)
        while y.abs().max() > 0.1:
            y = y * 0.5
        return y


def captured_model(**options):
    torch.manual_seed(0)
    return clew.trace(Model(**options).eval(), (torch.randn(2, 3),))


def captured_deciding():
    torch.manual_seed(0)
    return clew.trace(Deciding(), (torch.randn(2, 4),))


def hostile_graph(name: str) -> clew.Graph:
    """A graph in which everything that is text is the same text."""
    graph = clew.Graph()
    x = graph.placeholder("x")
    x.name = name
    step = graph.create_node("call_function", operator.add, (x, name), name=name + "2")
    step.meta["nn_module_stack"] = {name: (name, name)}
    step.source = clew.SourceLine(name, 1, name)
    attribute = graph.create_node("call_method", name, (step,), {"text": name})
    graph.output([attribute])
    return graph


def large_graph(layers: int, steps: int) -> clew.Graph:
    """Layers of steps that are all different, so that none is folded."""
    graph = clew.Graph()
    value = start = graph.placeholder("x")
    for layer in range(layers):
        around = {"": ("", "Large"), f"layer.{layer}": (f"layer.{layer}", "Layer")}
        for step in range(steps):
            start = value if step % 6 == 0 else start
            value = graph.call_function(operator.add, (value, start if step % 6 == 5 else layer * steps + step))
            value.meta["nn_module_stack"] = around
            value.value_type = clew.parse_type("f32[8, 128]")
    graph.output(value)
    return graph
