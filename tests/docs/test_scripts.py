"""The scripts in examples/ run as they stand, say what they promise, and are short."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
LONGEST = 25


def printed(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What a script prints."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [str(FOLDER / name), *arguments])
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        runpy.run_path(str(FOLDER / name), run_name="__main__")
    return output.getvalue()


@pytest.mark.parametrize("name", ["flops_per_block.py", "find_a_nan.py"])
def test_short(name: str) -> None:
    """Imports, blank lines and the docstring are nobody's own lines."""
    text = (FOLDER / name).read_text()
    aside = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    lines = [line for line in text.splitlines()[1:] if line.strip()]
    assert len(lines) - len(aside) <= LONGEST


def test_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = printed("jobs/profiling.py", monkeypatch, str(tmp_path))
    assert text.startswith("ResNet: ") and "25.6 M parameters" in text and "at the peak" in text
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert "<html" in (tmp_path / "profile.html").read_text()[:200]


def test_flops(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = printed("flops_per_block.py", monkeypatch).splitlines()
    rows = {line.split()[0]: line for line in lines}
    assert "145.824 GMACs" in rows["in"] and "124.44 M parameters" in rows["in"]
    assert "39.524 GMACs" in rows["lm_head"] and sum("transformer.h." in line for line in lines) == 12
    assert "8.858 GMACs" in rows["transformer.h.11"]


def test_int8(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed("jobs/int8_with_observers.py", monkeypatch)
    assert "(fc1): Int8Linear((128, 64), inputs in steps of" in text
    before, after, apart = re.search(r"(\d+) bytes became (\d+); logits are (.*)% apart", text).groups()
    assert int(after) < 0.4 * int(before) and 0 < float(apart) < 5 and "furthest apart: " in text


def test_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed("find_a_nan.py", monkeypatch)
    assert text.startswith("None\nweights has 8 NaN") and "weights = torch.softmax(scores, dim=-1)" in text
