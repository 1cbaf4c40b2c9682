"""Standalone code runs in a process that has neither Clew nor the source of the model, and gives the same."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from torch import nn

import clew
from clew.errors import CodegenError
from examples.models.resnet import resnet18

WEIGHTS = np.arange(3.0)
RUN = """
import importlib.abc, pickle, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("clew", "transformers", "safetensors", "tests", "examples"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, sys.argv[1])
import model
call = pickle.load(open(sys.argv[1] + "/call.pickle", "rb"))
program = model.load()
pickle.dump([program(*args) for args in call], open(sys.argv[1] + "/result.pickle", "wb"))
"""


class Tied(nn.Module):
    """Tied weights, a module used twice, layers without a plain constructor, state that changes, a branch, a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.norm = nn.LayerNorm(4)
        self.lstm = nn.LSTM(4, 4, 2, batch_first=True)
        self.attention = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight
        self.drop = nn.Dropout(0.5)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, ids: torch.Tensor, shift: float = 0.5) -> dict[str, torch.Tensor]:
        hidden = self.norm(self.norm(self.embed(ids)))
        hidden = self.drop(self.attention(self.lstm(hidden)[0]))
        self.seen += hidden.detach().sum((0, 1))
        total = hidden.sum()
        for row in hidden:
            if row.sum() > 0:
                total = total + row.sum()
        return {"logits": self.head(hidden) + shift, "total": total, "seen": self.seen.clone()}


def of_numpy(x: np.ndarray) -> Any:
    return np.sort(x * WEIGHTS), x.shape[0]


def of_jax(x: Any) -> Any:
    return jnp.where(x > 0, x, 0.0) @ jnp.arange(3.0)


def branching(x: torch.Tensor, n: int = 3) -> torch.Tensor:
    total = x.sum()
    for row in x:
        if row.sum() > 0:
            total = total + row.sum() * n
    return total


CASES: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "tied": (lambda: Tied().eval(), [(torch.tensor([[1, 2]]),), (torch.tensor([[3, 0, 6], [1, 1, 1]]), 2.5)]),
    "resnet": (lambda: resnet18().eval(), [(torch.randn(1, 3, 32, 32),), (torch.randn(2, 3, 32, 32),)]),
    "branching": (lambda: branching, [(torch.randn(4, 3),), (torch.randn(2, 3), 5)]),
    "numpy": (lambda: of_numpy, [(np.array([3.0, 1, 2]),)]),
    "jax": (lambda: of_jax, [(jnp.array([1.0, -2, 3]),)]),
}


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)]


@pytest.mark.parametrize("name", CASES)
def test_it_runs_without_clew(name: str, tmp_path: Path) -> None:
    make, calls = CASES[name]
    program = make()
    captured = clew.trace(program, calls[0])
    captured.to_python(tmp_path)
    source = (tmp_path / "model.py").read_text()
    assert "import clew" not in source and "from clew" not in source
    (tmp_path / "call.pickle").write_bytes(pickle.dumps(calls))
    subprocess.run([sys.executable, "-c", RUN, str(tmp_path)], check=True, cwd=tmp_path)
    found = pickle.loads((tmp_path / "result.pickle").read_bytes())
    wanted = [program(*args) for args in calls]
    for one, other in zip(leaves(wanted), leaves(found), strict=True):
        np.testing.assert_array_equal(one, other)


def loaded(folder: Path) -> Any:
    scope: dict[str, Any] = {"__name__": "model", "__file__": str(folder / "model.py")}
    exec(compile((folder / "model.py").read_text(), "model.py", "exec"), scope)
    return scope["load"]()


def test_guards_are_asserts_or_left_out(tmp_path: Path) -> None:
    captured = clew.trace(branching, (torch.randn(4, 3),))
    captured.to_python(tmp_path / "strict")
    with pytest.raises(AssertionError, match=r"type\(n\) is int"):
        loaded(tmp_path / "strict")(torch.randn(2, 3), "3")
    captured.to_python(tmp_path / "loose", guards=False)
    assert "assert" not in (tmp_path / "loose" / "model.py").read_text().partition("def forward")[2]
    assert float(loaded(tmp_path / "loose")(torch.ones(2, 3), 2.0)) == float(branching(torch.ones(2, 3), 2.0))


def test_parameters_have_their_names_and_train(tmp_path: Path) -> None:
    model = Tied().eval()
    clew.trace(model, (torch.tensor([[1, 2]]),)).to_python(tmp_path)
    found = loaded(tmp_path)
    assert {name for name, _ in found.named_parameters()} == {name for name, _ in model.named_parameters()}
    assert found.head.weight is found.embed.weight
    found(torch.tensor([[1, 2]]))["logits"].sum().backward()
    assert found.embed.weight.grad is not None


def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    class Own(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    captured = clew.trace(nn.Sequential(Own(), nn.ReLU()), (torch.ones(2),), leaves=(Own,))
    with pytest.raises(CodegenError, match=r"the module 0 is a .*Own, which is no part of the framework"):
        captured.to_python(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    hooked = clew.trace(nn.Sequential(nn.Linear(2, 2)), (torch.ones(2),))
    hooked.get_submodule("0").register_forward_hook(lambda *args: None)
    with pytest.raises(CodegenError, match="has hooks"):
        hooked.to_python(tmp_path / "out")


def test_tensors_that_share_memory_are_refused(tmp_path: Path) -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("whole", torch.zeros(4))
            self.register_buffer("first", self.whole[:2])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.whole + self.first.sum()

    captured = clew.trace(Shared(), (torch.ones(4),))
    with pytest.raises(CodegenError, match="shares memory with"):
        captured.to_python(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(CodegenError, match="is a file, and a program is written to a folder"):
        clew.trace(torch.nn.Linear(2, 2), (torch.ones(1, 2),)).to_python(tmp_path / "taken")
