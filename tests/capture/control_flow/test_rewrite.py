"""Which functions are rewritten for a capture: those whose source on disk is what was loaded, and only for its time."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import clew
from clew.capture.control_flow import rewrite

SOURCE = """
import torch

def halved(x):
    rounds = 0
    while x.norm() > 1:
        x = torch.mul(x, 0.5)
        rounds += 1
    return x, rounds

pair = (lambda x: x + 1 if x.sum() > 0 else x - 1), (lambda x: x * 2 if x.sum() > 0 else x * 3)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "edited_program.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(rewrite, "_known", {})  # equal codes of other tests
    yield importlib.import_module("edited_program")
    del sys.modules["edited_program"]


def write(module: ModuleType, text: str) -> None:
    path = Path(str(module.__file__))
    path.write_text(text)
    later = path.stat().st_mtime + 10
    os.utime(path, (later, later))


def agrees(captured: clew.GraphFunction, module: ModuleType) -> bool:
    for size in (0.1, 2.0, 3.0):
        x = torch.full((2,), size)
        (found, rounds), (wanted, times) = captured(x), module.halved(x)
        if not torch.equal(found, wanted) or rounds != times:
            return False
    return True


def test_a_function_whose_source_is_the_loaded_one_is_rewritten(module: ModuleType) -> None:
    captured = clew.trace(module.halved, args=(torch.ones(2),))
    assert "\n    while " in captured.code
    assert agrees(captured, module)


def test_a_function_whose_file_was_edited_since_is_not(module: ModuleType) -> None:
    write(module, SOURCE.replace("0.5", "0.25").replace("rounds += 1", "rounds += 7"))
    captured = clew.trace(module.halved, args=(torch.ones(2),))
    assert "\n    while " not in captured.code
    assert agrees(captured, module)


def test_a_function_that_was_loaded_again_is_rewritten_from_its_new_source(module: ModuleType) -> None:
    clew.trace(module.halved, args=(torch.ones(2),))
    write(module, SOURCE.replace("0.5", "0.25"))
    importlib.reload(module)
    captured = clew.trace(module.halved, args=(torch.ones(2),))
    assert "\n    while " in captured.code and "0.25" in captured.code
    assert agrees(captured, module)


def test_of_two_lambdas_in_one_line_the_right_one_is_rewritten(module: ModuleType) -> None:
    for function in module.pair:
        captured = clew.trace(function, args=(torch.ones(2),))
        for x in (torch.ones(2), -torch.ones(2)):
            assert torch.equal(captured(x), function(x))
