"""What happens in a library after a capture leaves the capture alone, unless it concerns what the program has read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch

import clew

transformers = pytest.importorskip("transformers")
SIZES = {"vocab_size": 30, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
IDS = torch.arange(6).view(2, 3)


@pytest.fixture
def bert() -> Any:
    return transformers.BertModel(transformers.BertConfig(**SIZES, intermediate_size=16)).eval()


def build_another() -> None:
    config = transformers.GPT2Config(vocab_size=30, n_embd=16, n_layer=1, n_head=2, n_positions=16)
    transformers.GPT2Model(config)(input_ids=IDS)


def register_another() -> None:
    transformers.AttentionInterface.register("another", lambda *args, **kwargs: None)


def import_another() -> None:
    pass


@pytest.mark.parametrize(
    "change",
    [
        build_another,
        register_another,
        import_another,
        transformers.logging.set_verbosity_debug,
        lambda: logging.getLogger("transformers").addHandler(logging.NullHandler()),
    ],
)
def test_other_things_may_change(bert: Any, change: Callable[[], None]) -> None:
    captured = clew.trace(bert, kwargs={"input_ids": IDS})
    level = transformers.logging.get_verbosity()
    change()
    assert torch.equal(captured(input_ids=IDS)[0], bert(input_ids=IDS)[0])
    transformers.logging.set_verbosity(level)


def test_the_function_in_use_is_noticed(bert: Any) -> None:
    captured = clew.trace(bert, kwargs={"input_ids": IDS})
    registry = transformers.AttentionInterface
    known = registry()["sdpa"]
    registry.register("sdpa", lambda *args, **kwargs: known(*args, **kwargs))
    try:
        with pytest.raises(clew.GuardError, match="sdpa"):
            captured(input_ids=IDS)
    finally:
        registry.register("sdpa", known)
    assert torch.equal(captured(input_ids=IDS)[0], bert(input_ids=IDS)[0])
    local = transformers.models.bert.modeling_bert.ALL_ATTENTION_FUNCTIONS
    local["sdpa"] = lambda *args, **kwargs: known(*args, **kwargs)
    with pytest.raises(clew.GuardError, match="sdpa"):
        captured(input_ids=IDS)
    del local["sdpa"]
    assert torch.equal(captured(input_ids=IDS)[0], bert(input_ids=IDS)[0])
