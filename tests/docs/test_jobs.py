"""The scripts of examples/jobs run, and none has more than 25 lines of its own."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import pytest

JOBS = sorted(
    path for path in (Path(__file__).resolve().parents[2] / "examples" / "jobs").glob("*.py") if path.stem[0] != "_"
)


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_a_job_runs(path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_module(f"examples.jobs.{path.stem}", run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_there_are_eighteen():
    assert len(JOBS) == 18


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_a_job_is_short(path):
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    aside = {ast.Import, ast.ImportFrom}
    others = [node for node in tree.body if type(node) in aside] + [tree.body[0]]  # the first is the docstring
    taken = {line for node in others for line in range(node.lineno, node.end_lineno + 1)}
    own = [line for number, line in enumerate(text.splitlines(), 1) if line.strip() and number not in taken]
    assert len(own) <= 25
