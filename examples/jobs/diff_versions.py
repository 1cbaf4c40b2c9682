"""Diff: what has changed in a model between two versions of it, in its graph and in its weights."""

import copy

import torch
from torch import nn

import clew


class Block(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.first, self.second, self.activation = nn.Linear(8, 16), nn.Linear(16, 8), activation

    def forward(self, x):
        return x + self.second(self.activation(self.first(x)))


x, old = torch.randn(2, 8), Block(torch.relu)
new = copy.deepcopy(old)
new.activation = torch.tanh
new.second.weight.data[0] += 0.1
found = clew.diff(clew.trace(old, (x,)), clew.trace(new, (x,)), weights=True)
print(found)
assert "tanh" in str(found) and "second.weight" in str(found)
assert not clew.diff(clew.trace(old, (x,)), clew.trace(copy.deepcopy(old), (x,)), weights=True)
