"""Real models for tests of backward passes: a module, the arguments of a call, and what is wanted of its result.

Models of transformers are built from small configurations with random weights; nothing is read from anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import nn

Made = tuple[nn.Module, tuple[Any, ...], dict[str, Any]]
TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]])
SMALL = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
SMALL |= {"max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def perceptron() -> Made:
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 3)), (torch.randn(5, 4),), {}


class Convolutions(nn.Module):
    """Batch norm in training, activations in place, a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.block = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(inplace=True))
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = x + self.block(x)
        x = nn.functional.max_pool2d(x, 2)
        return self.head(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


def convolutions() -> Made:
    return Convolutions(), (torch.randn(2, 3, 8, 8),), {}


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 8)
        self.lstm, self.gru = nn.LSTM(8, 8, batch_first=True, bidirectional=True), nn.GRU(16, 8)
        self.out = nn.Linear(8, 5)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found, (last, _) = self.lstm(self.embedding(tokens))
        found, _ = self.gru(found)
        return self.out(found), last


def recurrent() -> Made:
    return Recurrent(), (TOKENS,), {}


def encoder() -> Made:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (torch.randn(2, 5, 16),), {}


class Tied(nn.Module):
    """One weight under two names, and an argument that needs a gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Embedding(40, 16), nn.Linear(16, 40, bias=False)
        self.last.weight = self.first.weight

    def forward(self, tokens: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy((self.last(self.first(tokens) * scale)).flatten(0, 1), tokens.flatten())


def tied() -> Made:
    return Tied(), (TOKENS, torch.randn(16, requires_grad=True)), {}


def bert() -> Made:
    return transformers.BertModel(transformers.BertConfig(**SMALL)), (TOKENS,), {}


def gpt2() -> Made:
    config = transformers.GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=32)
    return transformers.GPT2LMHeadModel(config), (), {"input_ids": TOKENS, "labels": TOKENS, "use_cache": False}


def llama() -> Made:
    config = transformers.LlamaConfig(**SMALL, num_key_value_heads=1)
    return transformers.LlamaForCausalLM(config), (), {"input_ids": TOKENS, "labels": TOKENS, "use_cache": False}


def mixtral() -> Made:
    """Its experts are one grouped product, whose fake kernel takes bfloat16 alone."""
    config = transformers.MixtralConfig(**SMALL, num_key_value_heads=1, num_local_experts=4)
    return transformers.MixtralForCausalLM(config), (), {"input_ids": TOKENS, "labels": TOKENS, "use_cache": False}


def t5() -> Made:
    config = transformers.T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
    config.decoder_start_token_id = 0
    return transformers.T5ForConditionalGeneration(config), (), {"input_ids": TOKENS, "labels": TOKENS}


def vit() -> Made:
    config = transformers.ViTConfig(**_encoder(), image_size=16, patch_size=8)
    return transformers.ViTForImageClassification(config), (torch.randn(2, 3, 16, 16),), {}


def resnet() -> Made:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    return transformers.ResNetForImageClassification(config), (torch.randn(2, 3, 32, 32),), {}


def convnext() -> Made:
    config = transformers.ConvNextConfig(hidden_sizes=[8, 8, 16, 16], depths=[1, 1, 1, 1])
    return transformers.ConvNextForImageClassification(config), (torch.randn(1, 3, 32, 32),), {}


def _encoder() -> dict[str, Any]:
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    return {name: SMALL[name] for name in names}


MODELS: dict[str, Callable[[], Made]] = {
    one.__name__: one
    for one in (perceptron, convolutions, recurrent, encoder, tied, bert, gpt2, llama, mixtral, t5, vit, resnet,
                convnext)
}  # fmt: skip
