"""LoRA: the layers of a captured model are wrapped, the small matrices are trained, then merged into the weights."""

import torch
from torch import nn

import clew


class LoRA(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randn(64, 8)
captured = clew.trace(nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8)), (x,))
for node in captured.graph.find(op=nn.Linear):
    captured.wrap_module(node.target, LoRA)
optimizer = torch.optim.Adam([one for one in captured.parameters() if one.requires_grad], lr=0.02)
for _ in range(100):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(captured(x), y)
    loss.backward()
    optimizer.step()
tuned = captured(x)
for path, part in [(path, part) for path, part in captured.named_modules() if isinstance(part, LoRA)]:
    part.base.weight.data += part.up.weight @ part.down.weight
    captured.replace_module(path, part.base)
torch.testing.assert_close(captured(x), tuned)
print(f"loss {loss:.3f}; merged: {list(captured.state_dict())}")
