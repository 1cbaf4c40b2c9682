"""Which line of a model makes the first NaN."""

import torch
from torch import nn

import clew


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.out = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x, mask):
        scores = self.score(x).masked_fill(mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return self.out(weights * x)


x, mask = torch.randn(4, 8), torch.zeros(4, 8, dtype=torch.bool)
captured = clew.trace(Router(), args=(x, mask))
print(clew.find_nan(captured, x, mask))
mask[2] = True  # a row of which nothing is left
print(clew.find_nan(captured, x, mask))
