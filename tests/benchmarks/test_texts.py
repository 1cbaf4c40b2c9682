"""The comparison of texts: a changed graph is noticed, an unchanged one is not, wherever functions of Clew live."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import clew
from benchmarks import texts
from benchmarks.texts import differences, main, text_of

X = torch.ones(3)


def guarded(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.shape[0] > 2 else x


def changed(x: torch.Tensor) -> torch.Tensor:
    return x + 2 if x.shape[0] > 2 else x


def branching(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.sum() > 0 else x - 1


@pytest.mark.parametrize("program", [guarded, branching])
def test_two_captures_of_one_program_have_the_same_text(program: Any) -> None:
    options = {"control_flow": "capture"} if program is branching else {}
    assert text_of(clew.trace(program, (X,), **options)) == text_of(clew.trace(program, (X,), **options))


def test_a_text_holds_the_graph_its_guards_and_its_code() -> None:
    text = text_of(clew.trace(guarded, (X,), control_flow="guard"))
    assert text.startswith("graph(%x)") and "x.shape[0]" in text and "return x + 1" in text


def test_where_functions_of_clew_live_and_addresses_are_no_part_of_a_text() -> None:
    before = "clew.capture.example.notes.require(x) <function at 0x7f0123456789>"
    assert texts._stable(before) == texts._stable("clew.capture.guards.notes.require(x) <function at 0x7fabcdef0123>")
    assert texts._stable("clew.ir.cond(x)") != texts._stable("clew.ir.loop(x)")


def test_a_change_is_shown_line_by_line() -> None:
    before, now = ({"one": text_of(clew.trace(program, (X,)))} for program in (guarded, changed))
    assert list(differences(before, before)) == []
    (found,) = differences(before, now)
    assert found.startswith("--- one before\n+++ one now\n")
    assert any(line.startswith("-") and "+ 1" in line for line in found.splitlines())
    assert any(line.startswith("+") and "+ 2" in line for line in found.splitlines())
    assert len(list(differences(before, {}))) == len(list(differences({}, before))) == 1


def test_the_command_tells_what_differs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    programs = {"models/one": guarded, "models/two": branching, "models/gone": guarded}
    monkeypatch.setattr(texts, "STORE", tmp_path / "texts.json")
    monkeypatch.setattr(texts, "texts", lambda suite: ((name, text(name)) for name in programs))

    def text(name: str) -> str:
        return text_of(clew.trace(programs[name], (X,), control_flow="capture"))

    dump = tmp_path / "dump.json"
    assert main(["--suite", "models", "--write", "--dump", str(dump)]) == 0
    assert json.loads(dump.read_text()).keys() == programs.keys()
    assert main(["--suite", "models"]) == main(["--suite", "models", "--diff", str(dump)]) == 0
    capsys.readouterr()
    programs["models/one"] = changed
    del programs["models/gone"]
    assert main(["--suite", "models"]) == 1
    assert capsys.readouterr().out.splitlines() == ["models/gone", "models/one", "2 of 2 texts differ"]
    assert main(["--suite", "models", "--diff", str(dump)]) == 1
    assert "+++ models/one now" in capsys.readouterr().out


def test_captures_and_refusals_of_a_judge_are_kept_and_trace_is_put_back() -> None:
    original, kept = clew.trace, []

    def refused(x: torch.Tensor) -> Any:
        return torch.compile(guarded)(x)

    with texts._kept_captures(kept.append):
        assert clew.trace(guarded, (X,))(X).tolist() == [2.0] * 3
        with pytest.raises(clew.errors.CaptureError):
            clew.trace(refused, (X,))
    assert clew.trace is original
    assert kept[0] == text_of(clew.trace(guarded, (X,)))
    assert "compile inside the program cannot be captured" in kept[1]
