"""Models captured in float32 on the CPU run in other dtypes and on other devices, and give what the originals give."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import clew

transformers = pytest.importorskip("transformers")

FLOATS = ("float64", "bfloat16", "float16")
SIZES: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}


def mlp() -> tuple[Any, dict[str, Any]]:
    layers = torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
    return torch.nn.Sequential(*layers), {"input": torch.rand(3, 8)}


def resnet() -> tuple[Any, dict[str, Any]]:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    return transformers.ResNetModel(config), {"pixel_values": torch.rand(2, 3, 32, 32)}


def vit() -> tuple[Any, dict[str, Any]]:
    model = transformers.ViTModel(transformers.ViTConfig(image_size=16, patch_size=4, **SIZES))
    return model, {"pixel_values": torch.rand(2, 3, 16, 16)}


def tokens() -> torch.Tensor:
    return torch.randint(0, 60, (2, 7))


def bert() -> tuple[Any, dict[str, Any]]:
    return transformers.BertModel(transformers.BertConfig(vocab_size=64, **SIZES)), {"input_ids": tokens()}


def padded_bert() -> tuple[Any, dict[str, Any]]:
    mask = torch.ones(2, 7, dtype=torch.int64)
    mask[0, 5:] = 0
    return bert()[0], {"input_ids": tokens(), "attention_mask": mask}


def gpt2() -> tuple[Any, dict[str, Any]]:
    config = transformers.GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=32)
    return transformers.GPT2LMHeadModel(config), {"input_ids": tokens()}


def llama() -> tuple[Any, dict[str, Any]]:
    config = transformers.LlamaConfig(vocab_size=64, num_key_value_heads=2, **SIZES)
    return transformers.LlamaForCausalLM(config), {"input_ids": tokens()}


def t5() -> tuple[Any, dict[str, Any]]:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4}
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=64, **sizes))
    return model, {"input_ids": tokens(), "decoder_input_ids": tokens()}


MODELS = (mlp, resnet, vit, bert, padded_bert, gpt2, llama, t5)


def converted(value: Any, to: str) -> Any:
    if to in ("meta", "cuda"):
        return value.to(to)
    is_float = isinstance(value, torch.nn.Module) or value.is_floating_point()
    return value.to(getattr(torch, to)) if is_float else value


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """All tensors in a result, caches of keys and values included."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item)
    elif hasattr(value, "__dict__"):
        yield from tensors_in(vars(value))


def check(make: Callable[[], tuple[Any, dict[str, Any]]], to: str) -> None:
    model, inputs = make()
    captured = clew.trace(model.eval(), kwargs=inputs)
    original, moved = converted(copy.deepcopy(model), to), converted(copy.deepcopy(captured), to)
    given = {name: converted(value, to) for name, value in inputs.items()}
    with torch.no_grad():
        wanted, found = list(tensors_in(original(**given))), list(tensors_in(moved(**given)))
    assert len(found) == len(wanted) > 0
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape, one.device) == (other.dtype, other.shape, other.device)
        assert one.is_meta or torch.equal(one, other)


@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("make", MODELS)
def test_in_another_dtype(make: Any, to: str) -> None:
    check(make, to)


@pytest.mark.parametrize("make", [make for make in MODELS if make is not padded_bert])
def test_without_data(make: Any) -> None:
    check(make, "meta")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no such device")
@pytest.mark.parametrize("make", MODELS)
def test_on_another_device(make: Any) -> None:
    check(make, "cuda")
