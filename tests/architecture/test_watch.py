"""The watch over patched functions, which every test stands under, does see a patch."""

from __future__ import annotations

import gc
import math
import subprocess
import sys

import pytest
import torch

from tests.conftest import changed_since, tensors_are_sequences, watched_functions


def test_a_patch_is_seen_and_its_undoing_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before = watched_functions()
    with monkeypatch.context() as patch:
        patch.setattr(math, "sqrt", lambda value: value)
        patch.setattr(torch.nn.Module, "__call__", lambda self: self)
        assert changed_since(before) == ["math.sqrt", "torch.nn.Module.__call__"]
    assert changed_since(before) == []


def test_a_collector_that_is_left_switched_off_is_seen() -> None:
    before = watched_functions()
    gc.disable()
    try:
        assert changed_since(before) == ["gc"]
    finally:
        gc.enable()


def test_a_method_that_was_set_on_tensors_is_seen_after_it_is_gone() -> None:
    """In a process of its own, because the class does not become what it was."""
    assert not tensors_are_sequences()
    program = """
import torch
from tests.conftest import tensors_are_sequences
torch.Tensor.__getitem__ = lambda tensor, index: None
del torch.Tensor.__getitem__
print(tensors_are_sequences())
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "True"
