"""A mixture of experts: each token goes to the two experts that its gate likes best, each expert sees its tokens only.

The slices that the experts see depend on the data, and an expert that nobody chose is not called at all.
"""

import torch
from torch import Tensor, nn


class MixtureOfExperts(nn.Module):
    """Routes tokens of shape (tokens, width)."""

    def __init__(self, width: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        weights, choice = self.gate(x).softmax(-1).topk(self.chosen, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            token, place = (choice == index).nonzero(as_tuple=True)
            if token.numel() == 0:
                continue
            out[token] += weights[token, place].unsqueeze(-1) * expert(x[token])
        return out


def make() -> nn.Module:
    """Four experts, each of which likes one direction."""
    model = MixtureOfExperts(width=4, experts=4, chosen=2)
    with torch.no_grad():
        model.gate.weight.copy_(torch.eye(4))
    return model


def inputs() -> list[tuple[Tensor, ...]]:
    """Tokens that crowd at two experts, that spread over all, and other numbers of tokens."""
    spread = torch.eye(4) + 0.5 * torch.eye(4).roll(1, 0)
    crowd = torch.tensor([[3.0, 2.0, 0.0, 0.0]]).repeat(4, 1)
    return [(crowd,), (spread,), (crowd.flip(1),), (torch.cat([crowd, spread, spread]),), (spread[:1],)]
