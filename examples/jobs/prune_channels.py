"""Prune channels of a network: those of a convolution with the smallest weights go, and so do their inputs after it."""

import torch
from torch import nn

import clew

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
images = torch.randn(2, 3, 16, 16)
captured = clew.trace(model, (images,))
first, second = captured.get_submodule("0"), captured.get_submodule("2")
with torch.no_grad():
    first.weight[::2] = first.bias[::2] = 0  # so that half of the channels can go without a difference
expected = captured(images)

kept = first.weight.abs().sum((1, 2, 3)).topk(8).indices.sort().values
smaller, after = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)
smaller.load_state_dict({"weight": first.weight[kept], "bias": first.bias[kept]})
after.load_state_dict({"weight": second.weight[:, kept], "bias": second.bias})
before = clew.profile(captured, images).macs
captured.replace_module("0", smaller)
captured.replace_module("2", after)
torch.testing.assert_close(captured(images), expected)
print(f"{before} MACs before, {clew.profile(captured, images).macs} after, the same answers")
