"""Frameworks do not disturb each other: clew imports none of them, and torch's captures are the same with both."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

PROGRAM = """
import sys
import clew
assert not {"torch", "tensorflow", "keras", "jax"} & set(sys.modules)
import torch
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.BatchNorm1d(4))
def f(x):
    y = model(x) * 2
    return y if y.sum() > -1e9 else -y
x = torch.arange(6.0).reshape(2, 3)
before = clew.trace(f, (x,))
assert "tensorflow" not in sys.modules
import tensorflow as tf
after = clew.trace(f, (x,))
assert clew.to_text(before.graph) == clew.to_text(after.graph), clew.to_text(after.graph)
assert before.code == after.code
assert torch.equal(before(x), f(x)) and torch.equal(after(x), f(x))
assert clew.trace(tf.eye, (2,))(2).numpy().tolist() == [[1.0, 0.0], [0.0, 1.0]]
assert type(clew.trace(tf.nn.relu, (tf.ones([2]),))(tf.ones([2]))).__name__ == "EagerTensor"
"""


def test_torch_is_unaffected() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
