"""Breaking it: what a user sees when a pass is wrong, a pattern finds nothing, and an input does not fit."""

import torch
from torch import nn

import clew


def forget_the_scale(program):
    """Meant to drop a division; it drops the wrong one."""
    for node in program.graph.find(op=torch.div):
        node.replace_all_uses_with(node.args[0])
        program.graph.erase_node(node)
    return program


class Attention(nn.Module):
    def forward(self, q, k, v):
        weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
        return weights @ v if q.dim() == 3 else v


given = tuple(torch.randn(2, 5, 4) for _ in range(3))
captured = clew.trace(Attention(), given)
try:
    clew.Pipeline([clew.common_subexpressions, forget_the_scale])(captured)
except clew.ClewError as error:
    print(error)
print(clew.bisect([forget_the_scale], clew.trace(Attention(), given), given))
print(clew.explain_match(clew.trace(Attention(), given), lambda q, k, v: torch.softmax(q @ k.mT, 1) @ v))
print(clew.verify(clew.trace(Attention(), given), Attention()))
