"""Multiply-adds of whole models: those that torch's own counter finds, and those that were published."""

import pytest
import torch
from models import captured_zoo
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

import clew


def counted_by_torch(model: nn.Module, *args: object, **kwargs: object) -> int:
    """Torch counts what it has formulas for, which its fused kernels are not among."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            with torch.backends.mkldnn.flags(enabled=False):
                model(*args, **kwargs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    return counter.get_total_flops()


@pytest.mark.parametrize("name", captured_zoo)
def test_as_torch_counts(name: str) -> None:
    entry = captured_zoo[name]
    model = entry.build().eval()
    found = clew.profile(clew.trace(model, args=entry.inputs()), *entry.inputs())
    uncounted = sum(row.macs for row in found.nodes if row.operation == "Bilinear")  # torch has no formula for it
    assert found.unknown == []
    assert 2 * (found.macs - uncounted) == counted_by_torch(model, *entry.inputs())


def tokens(length: int) -> dict[str, object]:
    return {"input_ids": torch.zeros(1, length, dtype=torch.int64), "attention_mask": torch.ones(1, length)}


def published() -> dict[str, tuple[nn.Module, tuple[object, ...], dict[str, object], float, float]]:
    """Model, arguments, figure and how exactly it was published.

    ResNet-50 and ViT-B/16: the multiply-adds that torchvision states for its weights. BERT-base: the FLOPs of 128
    tokens in the papers on TinyBERT and MobileBERT, which count what is no product too. GPT-2: the FLOPs of products
    for 1024 tokens in the notebook of nanoGPT on the sizes of transformers.
    """
    picture = torch.empty(1, 3, 224, 224)
    gpt = GPT2Config(attn_implementation="eager")
    return {
        "resnet50": (ResNetForImageClassification(ResNetConfig(num_labels=1000)), (picture,), {}, 2 * 4.09e9, 0.001),
        "vit_b_16": (ViTForImageClassification(ViTConfig(num_labels=1000)), (picture,), {}, 2 * 17.564e9, 0.0001),
        "bert": (BertModel(BertConfig()), (tokens(128)["input_ids"],), {}, 22.5e9, 0.01),
        "gpt2": (GPT2LMHeadModel(gpt), (), {**tokens(1024), "use_cache": False}, 291_648_307_200, 0.0),
    }


@pytest.mark.parametrize("name", ["resnet50", "vit_b_16", "bert", "gpt2"])
def test_published_figures(name: str) -> None:
    with torch.device("meta"), torch.no_grad():
        model, args, kwargs, figure, tolerance = published()[name]
        model.eval()
        found = clew.profile(clew.trace(model, args=args, kwargs=kwargs), *args, **kwargs)
        assert 2 * found.macs == counted_by_torch(model, *args, **kwargs)
    assert found.unknown == [] and found.seconds is None
    assert found.parameters == sum(weight.numel() for weight in model.parameters())
    assert abs((found.flops if name == "bert" else 2 * found.macs) - figure) <= tolerance * figure
    assert sum(one.macs for one in found.by_module(depth=1)[1:]) == found.macs
