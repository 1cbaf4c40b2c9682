"""Save and load: one file with graph, guards and weights, which another process runs without the model's source."""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

import clew


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        hidden = self.up(x)
        return self.down(torch.relu(hidden)) if hidden.mean() > 0 else self.down(torch.tanh(hidden))


folder, model, x = Path(tempfile.mkdtemp()), Gate().eval(), torch.randn(3, 4)
clew.save(clew.trace(model, (x,)), folder / "gate.clew")
torch.save({"x": x, "y": model(x).detach()}, folder / "call.pt")
elsewhere = f"""
import clew, torch
program, call = clew.load(r"{folder / 'gate.clew'}"), torch.load(r"{folder / 'call.pt'}")
torch.testing.assert_close(program(call["x"]), call["y"])
print(program.code)
"""
print(subprocess.run([sys.executable, "-c", elsewhere], check=True, capture_output=True, text=True).stdout)
print(f"{(folder / 'gate.clew').stat().st_size} bytes")
