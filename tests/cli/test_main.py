"""The command line: targets, inputs, what is printed, and the exit codes that scripts rely on."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from safetensors.numpy import save_file

import clew
from clew.cli import doctor, inputs, targets
from clew.cli.main import main
from clew.errors import UsageError

SOURCE = '''
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, scale=1.0):
        return torch.relu(self.drop(self.body(x))) * scale


class Needy(nn.Module):
    def __init__(self, width):
        super().__init__()


def make():
    return Net()


def first(x, n: int):
    return x[:n]


def eigenvalues(x):
    return torch.linalg.eig(x @ x.T)


def layer():
    return nn.LSTM(4, 8)


def waits(x):
    import threading
    thread = threading.Thread(target=print)
    thread.start()
    return x
'''


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "net_of_the_test.py"
    path.write_text(SOURCE)
    (tmp_path / "broken_in_the_test.py").write_text("import torch\nx = torch.ones(2) @ torch.ones(3)\n")
    (tmp_path / "arrays_of_the_test.py").write_text("import numpy as np\n\ndef double(x):\n    return np.sin(x) * 2\n")
    (tmp_path / "no_bundle.txt").write_text("nothing")
    monkeypatch.chdir(tmp_path)
    for name in ("net_of_the_test", "broken_in_the_test", "arrays_of_the_test"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The exit code of a command, and what it prints to both outputs."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err


def test_a_program_is_captured_saved_read_and_compared(file: Path, capsys: Any) -> None:
    status, told, _ = run(capsys, "trace", "net_of_the_test.py:Net", "x=f32[2,4]", "-o", "net.clew")
    assert (status, told.splitlines()[0]) == (0, "net_of_the_test.py:Net: captured, 7 nodes, 2 guards (torch)")
    status, told, _ = run(capsys, "code", "net.clew")
    assert status == 0 and told.startswith("import torch") and "return torch.relu(" in told
    status, told, _ = run(capsys, "show", "net.clew")
    assert status == 0 and "function torch.relu(" in told
    status, told, _ = run(capsys, "save", "net_of_the_test:make", "f32[3,4]", "-o", "other.clew", "--json")
    assert status == 0 and json.loads(told)["path"] == "other.clew"
    assert run(capsys, "view", "net.clew", "-o", "net.html")[0] == 0 and "<html" in Path("net.html").read_text()
    assert run(capsys, "view", "net.clew", "-o", "net.svg")[0] == 0 and "<svg" in Path("net.svg").read_text()
    assert run(capsys, "code", "net.clew", "--folder", "plain")[0] == 0 and Path("plain/model.py").exists()
    assert run(capsys, "diff", "net.clew", "net.clew")[:2] == (0, "no difference\n")
    status, told, _ = run(capsys, "diff", "net.clew", "other.clew", "--weights", "--json", "--html", "d.html")
    assert status == 1 and json.loads(told)["changes"] and Path("d.html").exists()


def test_a_capture_is_checked_explained_and_measured(file: Path, capsys: Any) -> None:
    status, told, _ = run(capsys, "verify", "net_of_the_test.py:Net", "x=f32[2,4]", "--json")
    assert status == 0 and json.loads(told)["ok"]
    status, told, _ = run(capsys, "explain", "net_of_the_test.py:Net", "x=f32[2,4]", "--json")
    assert status == 0 and json.loads(told)["captured"]
    status, told, _ = run(capsys, "explain", "net_of_the_test.py:waits", "x=f32[2,4]")
    assert status == 1 and "thread" in told
    status, told, _ = run(capsys, "profile", "net_of_the_test.py:Net", "x=f32[2,4]", "--json")
    assert status == 0 and "nodes" in json.loads(told)
    status, told, _ = run(capsys, "show", "arrays_of_the_test.py:double", "x=f64[3]")
    assert status == 0 and "function numpy.sin(" in told
    status, told, _ = run(capsys, "translate", "net_of_the_test.py:Net", "x=f32[2,4]", "--to", "jax")
    assert status == 0 and "jax" in told and "torch" not in told
    status, told, _ = run(capsys, "translate", "arrays_of_the_test.py:double", "x=f64[3]", "--to", "tensorflow")
    assert status == 0 and "tf.sin(" in told
    status, _, told = run(capsys, "translate", "net_of_the_test.py:eigenvalues", "x=f32[2,4]", "--to", "jax")
    assert status == 3 and "linalg.eig" in told
    status, told, _ = run(capsys, "code", "net_of_the_test.py:first", "x=f32[4,2]", "n=2")
    assert status == 0 and "x[:n]" in told


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["trace", "net_of_the_test.py:Nothing", "x=f32[2]"], 2, "there is no Nothing"),
        (["trace", "nowhere.py:Net", "x=f32[2]"], 2, "there is no file nowhere.py"),
        (["trace", "net_of_the_test", "x=f32[2]"], 2, "is no target"),
        (["trace", "net_of_the_test.py:Net", "x=f33[2]"], 2, "no dtype that is known"),
        (["trace", "net_of_the_test.py:waits", "x=f32[2]"], 3, "a thread being started cannot be captured"),
        (["trace", "net_of_the_test.py:Needy", "x=f32[2]"], 5, "missing 1 required positional argument: 'width'"),
        (["trace", "broken_in_the_test.py:Net", "x=f32[2]"], 5, "broken_in_the_test.py:2"),
        (["trace", "net_of_the_test.py:Net", "x=f32[2,5]"], 5, "the program failed on these inputs: RuntimeError"),
        (["show", "net_of_the_test.py"], 2, "names no program of that file"),
        (["show", "net_of_the_test.py"], 2, "net_of_the_test.py:Net"),
        (["code", "net_of_the_test.py:Net"], 2, "inputs look like x=f32[2,3]"),
        (["show", "no_bundle.txt"], 5, "is no bundle, or is damaged"),
        (["verify", "--nonsense"], 2, "No such option"),
        (["show", "missing.clew"], 5, "there is no file missing.clew"),
        (["trace", "net_of_the_test.py:Net", "x=i64[2,4]<0"], 2, "has a bound that is none"),
        (["trace", "net_of_the_test.py:Net", "x=u8[2,4]<1000"], 2, "numbers of u8 go up to 255"),
        (["view", "net_of_the_test.py:Net", "x=f32[2,4]", "-o", "net.xyz"], 2, "one of .html, .htm, .svg, .dot, .mmd"),
        (["view", "net_of_the_test.py:Net", "x=f32[2,4]", "-o", "missing/net.svg"], 5, "missing/net.svg: No such file"),
        (["translate", "net_of_the_test.py:Net", "x=f32[2,4]", "--to", "torch"], 2, "--framework numpy"),
        (["trace", "net_of_the_test.py:Needy", "x=f32[2]"], 5, "def make(): return Needy(...)"),
        (["trace", "net_of_the_test.py:Net", "x=f32[2,5]"], 5, ": return torch.relu(self.drop(self.body(x)))"),
        (["trace", "net_of_the_test.py:first", "x=f32[2]"], 2, "does not fit first(x, n: int)"),
        (["trace", "net_of_the_test.py:Net", "x=weights.pt"], 2, "save the array as .npy or .safetensors"),
    ],
)
def test_errors_are_one_message_and_a_status(
    words: list[str], status: int, message: str, file: Path, capsys: Any
) -> None:
    found, told, error = run(capsys, *words)
    assert (found, told) == (status, "")
    assert message in error and "Traceback" not in error
    assert len(error.splitlines()) < 20


def test_a_bundle_is_compared_on_inputs_that_fit_alone(file: Path, capsys: Any) -> None:
    """Without inputs both programs refuse the call, and that is no proof that they are equal."""
    assert run(capsys, "save", "net_of_the_test.py:Net", "x=f32[2,4]", "-o", "net.clew")[0] == 0
    words = ["verify", "net.clew", "--against", "net_of_the_test.py:Net"]
    status, told, error = run(capsys, *words)
    assert status == 5 and not told and "missing a required argument: 'x'" in error
    assert run(capsys, *words, "x=f32[2,4]")[0] == 1  # its own weights, not those of the other


def test_lines_are_those_of_the_program_alone(file: Path, capsys: Any) -> None:
    """A layer that is the whole program has no line of the user's, and shows none of the command line's."""
    status, told, _ = run(capsys, "trace", "net_of_the_test.py:layer", "input=f32[5,2,4]")
    assert status == 0 and "core.py" not in told and "runpy" not in told


def test_a_traceback_for_those_who_want_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_DEBUG", "1")
    with pytest.raises(UsageError):
        main(["trace", "net_of_the_test.py:Nothing", "x=f32[2]"])


def test_inputs(tmp_path: Path) -> None:
    numpy.save(tmp_path / "one.npy", numpy.arange(3.0))
    numpy.savez(tmp_path / "two.npz", x=numpy.ones(2), y=numpy.zeros(3))
    save_file({"z": numpy.ones((2, 2), "float32")}, tmp_path / "three.safetensors")
    found = inputs.read(
        ["f32[2,3]", f"{tmp_path}/one.npy", "ids=i64[4]<7", "mask=bool[2]", "n=3", "flag=true", "way='x'",
         "half=bf16[2]", f"y={tmp_path}/two.npz:y", f"{tmp_path}/three.safetensors"], "torch"
    )  # fmt: skip
    assert found.described() == [
        "f32[2,3]", "f64[3]", "ids=i64[4]", "mask=bool[2]", "n=3", "flag=True", "way='x'", "half=bf16[2]", "y=f64[3]",
        "z=f32[2,2]",
    ]  # fmt: skip
    assert int(found.kwargs["ids"].max()) < 7
    again = inputs.read(["f32[2,3]"], "torch").args[0]
    assert torch.equal(again, found.args[0]) and not torch.equal(again, inputs.read(["f32[2,3]"], "torch", 1).args[0])
    for words in (["x=f32[2", "n=1"], ["x=f32[2]", "3"], [f"x={tmp_path}/two.npz"], ["x=f32[2]<3"], ["x=1", "x=2"]):
        with pytest.raises(UsageError):
            inputs.read(words, "torch")


def test_classes_are_made_and_functions_without_parameters_called(file: Path) -> None:
    assert not targets.find("net_of_the_test.py:Net").program.training
    assert targets.find("net_of_the_test.py:make", train=True).program.training
    assert type(targets.find("net_of_the_test.py:make()").program).__name__ == "Net"
    assert targets.find("arrays_of_the_test.py:double").framework == "numpy"


def test_one_capture_of_a_lazy_graph_is_named_by_its_number(file: Path, capsys: Any) -> None:
    lazy, x = clew.trace(lambda x, k: x * k if isinstance(k, int) else x.cos()), torch.ones(2)
    lazy(x, 3)
    clew.save(lazy, "lazy.clew")
    assert "x * k" in run(capsys, "code", "lazy.clew")[1]  # the only one
    lazy(x, None)
    clew.save(lazy, "lazy.clew")
    status, _, told = run(capsys, "code", "lazy.clew")
    assert status == 2 and "lazy.clew holds 2 captures" in told and "lazy.clew:1" in told
    assert "cos" in run(capsys, "code", "lazy.clew:1")[1]
    assert run(capsys, "diff", "lazy.clew:0", "lazy.clew:1")[0] == 1
    assert run(capsys, "show", "lazy.clew:2")[0] == 2
    assert run(capsys, "view", "lazy.clew:0", "-o", "view.html")[0] == 0


def test_the_doctor_tells_what_is_too_old(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    status, told, _ = run(capsys, "doctor", "--json")
    assert status == 0 and {one["package"] for one in json.loads(told)["packages"]} >= {"numpy", "torch", "python"}
    monkeypatch.setattr(doctor, "installed_version", lambda name: {"numpy": "1.20.1", "torch": "9.9"}.get(name, "0.13"))
    states = {one.package: one.state for one in doctor.examine()}
    assert states["numpy"] == "too old" and states["torch"] == "untested"
    assert run(capsys, "doctor")[0] == 1


def test_help_has_examples_and_shells_get_completion(capsys: Any) -> None:
    status, told, _ = run(capsys, "--help")
    assert status == 0 and "x=f32[2,3,224,224]" in told and "Exit codes" in told
    for name in ("trace", "show", "view", "code", "explain", "verify", "profile", "diff", "save", "translate"):
        assert f"clew {name} " in run(capsys, name, "--help")[1]
    assert "_CLEW_COMPLETE" in run(capsys, "completion", "zsh")[1]


def test_in_a_terminal_there_is_a_spinner_and_in_a_pipe_there_is_none(file: Path) -> None:
    command = [sys.executable, "-m", "clew", "code", "arrays_of_the_test.py:double", "x=f64[3]"]
    piped = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "TERM": "xterm"})
    assert piped.stderr == "" and "numpy.sin(x)" in piped.stdout
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}) as shown:
        os.close(theirs)
        assert shown.stdout is not None
        assert b"numpy.sin(x)" in shown.stdout.read()
    seen = b""
    while chunk := _read(ours):
        seen += chunk
    assert b"capturing" in seen and seen.rstrip().endswith(b"\x1b[2K")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""


PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def test_the_page_says_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text()
    (tmp_path / "net.py").write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    for session in re.findall(r"```console\n(.*?)```", page, re.DOTALL):
        for command, wanted in re.findall(r"^\$ clew ([^\n]*)\n((?:(?!\$ )[^\n]*\n)*)", session, re.MULTILINE):
            _, told, error = run(capsys, *shlex.split(command))
            assert _without_bytes(told + error) == _without_bytes(wanted), command


def _without_bytes(text: str) -> str:
    return re.sub(r"\d+ bytes", "bytes", text).strip()


def test_the_module_and_the_command_are_one() -> None:
    assert clew.__version__ == json.loads(
        subprocess.run([sys.executable, "-m", "clew", "doctor", "--json"], capture_output=True, check=True).stdout
    )["clew"]  # fmt: skip
