"""Captured programs that rely on variables around them are saved; where they are loaded, these must be alike."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import clew

from . import saved_programs

ROOT = Path(__file__).parents[2]
X = torch.tensor([-1.0, 2.0])
CASES = {
    "": None,
    "saved_programs.SCALES[0] = 5.0": None,
    "saved_programs.SHIFT = saved_programs.SHIFT + 1": "SHIFT",
    "saved_programs.TABLE['abs'] = torch.neg": "TABLE",
    "saved_programs.scaled.__closure__[1].cell_contents = 7": "times",
}
"""What happens in the other process before the capture is loaded there, and the variable whose guard tells of it, if
the graph does not read it at each call."""
LOADING = """
import os, pickle, sys, torch, clew
from tests.runtime import saved_programs

def told(before):
    exec(before)
    captured = pickle.load(open(sys.argv[1], "rb"))
    x = torch.tensor([3.0, -4.0])
    try:
        return str(torch.equal(captured(x), saved_programs.scaled(x)))
    except clew.GuardError as error:
        return f"guarded {error}"

for number, before in enumerate(sys.argv[2:]):
    child = os.fork()  # each in a process of its own, which need not import everything again
    if child == 0:
        with open(f"{sys.argv[1]}.{number}", "w") as file:
            file.write(told(before))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.fixture(scope="module")
def told_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each case says where the capture is loaded."""
    path = tmp_path_factory.mktemp("saved") / "captured"
    path.write_bytes(pickle.dumps(clew.trace(saved_programs.scaled, (X,))))
    command = [sys.executable, "-c", LOADING, str(path), *CASES]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": "src", "PATH": ""})
    assert ran.returncode == 0, ran.stderr
    return {before: path.with_name(f"captured.{number}").read_text() for number, before in enumerate(CASES)}


@pytest.mark.parametrize(("before", "name"), CASES.items())
def test_variables_in_another_process(told_elsewhere: dict[str, str], before: str, name: str | None) -> None:
    told = told_elsewhere[before]
    assert told == "True" if name is None else told.startswith("guarded") and name in told


def test_what_changes_after_loading_is_read_or_guarded() -> None:
    loaded = pickle.loads(pickle.dumps(clew.trace(saved_programs.scaled, (X,))))
    assert torch.equal(loaded(X), saved_programs.scaled(X))
    assert torch.equal(pickle.loads(pickle.dumps(loaded))(X), saved_programs.scaled(X))
    saved_programs.SCALES[0] = 4.0
    assert torch.equal(loaded(X), saved_programs.scaled(X))
    saved_programs.SCALES[0] = 2.0
    assert torch.equal(loaded(X), saved_programs.scaled(X))
    saved_programs.SHIFT.add_(1.0)
    with pytest.raises(clew.GuardError, match="SHIFT"):
        loaded(X)
    saved_programs.SHIFT.sub_(1.0)


def test_a_closure_without_a_name_is_nowhere_else() -> None:
    factors = [2.0]

    def program(x: torch.Tensor) -> torch.Tensor:
        return x * factors[0]

    captured = clew.trace(program, (X,))
    loaded = pickle.loads(pickle.dumps(captured))
    factors[0] = 3.0
    assert torch.equal(captured(X), X * 3.0)
    assert torch.equal(loaded(X), X * 2.0)


def test_a_transformer_is_saved_whole(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = transformers.BertModel(transformers.BertConfig(**sizes, intermediate_size=16)).eval()
    captured = clew.trace(model, kwargs={"input_ids": torch.arange(6).view(2, 3)})
    torch.save(captured, tmp_path / "captured")
    loaded = torch.load(tmp_path / "captured", weights_only=False)
    ids = torch.randint(0, 30, (3, 4))
    assert torch.equal(loaded(input_ids=ids)[0], model(input_ids=ids)[0])
