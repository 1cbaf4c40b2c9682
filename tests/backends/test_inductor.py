"""Inductor compiles segments right: forward, backward, random numbers, several sizes."""

from __future__ import annotations

import pytest
import torch

import clew

pytestmark = pytest.mark.slow  # each program is compiled by a C++ compiler


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm, self.drop = torch.nn.Linear(6, 6), torch.nn.BatchNorm1d(6), torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(torch.nn.functional.gelu(self.norm(self.fc(x))))
        if h.sum() > 1000:
            h = h / 2
        return h.softmax(-1) * x.shape[0]


def test_training_evaluation_and_sizes() -> None:
    torch.manual_seed(0)
    model = Net()
    twin = Net()
    twin.load_state_dict(model.state_dict())
    made = clew.compile(twin, "inductor", (torch.randn(4, 6),))
    for step, rows in enumerate((4, 7, 9)):
        x = torch.randn(rows, 6)
        results = []
        for one in (model, made):
            one.zero_grad()
            torch.manual_seed(step)
            result = one(x)
            result.pow(2).sum().backward()
            results.append((result.detach(), {name: p.grad for name, p in one.named_parameters()}, torch.rand(())))
        torch.testing.assert_close(*results)
    torch.testing.assert_close(dict(made.named_buffers()), dict(model.named_buffers()))
    model.eval(), made.eval()
    with torch.no_grad():
        torch.testing.assert_close(made(x), model(x))
