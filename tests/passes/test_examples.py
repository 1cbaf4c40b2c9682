"""The examples of passes run as they stand."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["fold_batch_norm"])
def test_example(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    assert capsys.readouterr().out
