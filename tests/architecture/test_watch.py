"""The watch over patched functions, which every test stands under, does see a patch."""

from __future__ import annotations

import math

import pytest
import torch

from tests.conftest import changed_since, watched_functions


def test_a_patch_is_seen_and_its_undoing_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before = watched_functions()
    with monkeypatch.context() as patch:
        patch.setattr(math, "sqrt", lambda value: value)
        patch.setattr(torch.nn.Module, "__call__", lambda self: self)
        assert changed_since(before) == ["math.sqrt", "torch.nn.Module.__call__"]
    assert changed_since(before) == []
