"""Exports: one capture as plain Python, for torch.fx's tools, for torch.export and in core ATen operators."""

import torch
from torch import nn

import clew

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4)).eval()
x = torch.randn(2, 3, 8, 8)
expected = model(x)
captured = clew.trace(model, (x,))
ways = {
    "torch.fx": clew.to_fx(captured),
    "torch.export": torch.export.export(captured, (x,)).module(),
    "core ATen": clew.decompose(captured, (x,)),
    "back from torch.fx": clew.from_fx(clew.to_fx(captured)),
}
for name, module in ways.items():
    torch.testing.assert_close(module(x), expected)
    print(f"{name}: {len(list(module.graph.nodes))} nodes")
print(captured.code)
