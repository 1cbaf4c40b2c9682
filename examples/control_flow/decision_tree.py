"""A recursive tree of modules: a gate at each node sends the input to one of two subtrees, down to a leaf."""

import torch
from torch import Tensor, nn


class Tree(nn.Module):
    """A node with two trees under it, or a leaf at depth zero; gives the value and the path that was taken."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.depth = depth
        if depth > 0:
            self.gate = nn.Linear(width, 1)
            self.left = Tree(width, depth - 1)
            self.right = Tree(width, depth - 1)
        else:
            self.leaf = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, list[int]]:
        if self.depth == 0:
            return self.leaf(x), []
        if self.gate(x).sum() > 0:
            value, path = self.right(torch.tanh(x))
            return value, [1, *path]
        value, path = self.left(x)
        return value, [0, *path]


def make() -> nn.Module:
    """Three levels of gates, eight leaves."""
    tree = Tree(width=3, depth=3)
    with torch.no_grad():
        for number, node in enumerate(one for one in tree.modules() if isinstance(one, Tree) and one.depth > 0):
            node.gate.weight.copy_(torch.eye(3)[number % 3 : number % 3 + 1])
            node.gate.bias.fill_(0.1)
    return tree


def inputs() -> list[tuple[Tensor, ...]]:
    """Five corners of the cube."""
    corners = [(1.0, 1.0, 1.0), (-1.0, 1.0, 1.0), (-1.0, -1.0, 1.0), (1.0, -1.0, -1.0), (-1.0, -1.0, -1.0)]
    return [(torch.tensor(corner),) for corner in corners]
