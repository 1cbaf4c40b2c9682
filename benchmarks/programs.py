"""The programs that the benchmarks of speed measure, each with its example, and the same written by hand.

``by_hand`` gives the straight-line function that a person would write with the model's own parameters, for the models
whose replay is measured. All models are in evaluation mode, with weights from a fixed seed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertConfig, BertModel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

from models import resnet, seeded
from models import zoo as zoo

LAYERS, WIDTH = 50, 64


class Program(NamedTuple):
    """A callable and the arguments that it is captured on; ``size`` is the number of operations, where it counts."""

    title: str
    callable: Callable[..., Any]
    args: tuple[Any, ...]
    size: int = 1
    by_hand: Callable[..., Any] | None = None


class MLP(nn.Module):
    """Layers of one width, each with a ReLU."""

    def __init__(self, layers: int = LAYERS, width: int = WIDTH) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def chain(length: int) -> Program:
    """``length`` small operations, one after the other."""

    def run(x: Tensor) -> Tensor:
        for _ in range(length // 2):
            x = torch.relu(x + 1)
        return x

    return Program(f"chain of {length:,}", run, (torch.ones(4),), length)


def one_operation(x: Tensor) -> Tensor:
    """The smallest program of all."""
    return x + 1


def _seeded(make: Callable[[], Any]) -> Any:
    return seeded(make, 0)


def mlp() -> Program:
    """The MLP of fifty layers."""
    model = _seeded(MLP).eval()
    layers = [(layer.weight, layer.bias) for layer in model.layers]

    def hand(x: Tensor) -> Tensor:
        for weight, bias in layers:
            x = torch.relu(F.linear(x, weight, bias))
        return x

    return Program("MLP of 50 layers", model, (torch.ones(8, WIDTH),), by_hand=hand)


def tiny_resnet() -> Program:
    """A ResNet-18 of few channels on small images."""
    model = _seeded(lambda: resnet.resnet18(4, 5)).eval()
    return Program("tiny ResNet", model, (_seeded(lambda: torch.randn(2, 3, 32, 32)),), by_hand=resnet_by_hand(model))


def resnet50() -> Program:
    """The real ResNet-50."""
    model = _seeded(lambda: resnet.resnet50(64, 1000)).eval()
    return Program("ResNet-50, 224 px", model, (_seeded(lambda: torch.randn(1, 3, 224, 224)),))


def tiny_bert() -> Program:
    """A BERT of two small layers."""
    config = BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=100,
        max_position_embeddings=64,
    )  # fmt: skip
    model = _seeded(lambda: BertModel(config)).eval()
    model.config.return_dict = False
    return Program("tiny BERT", model, (_seeded(lambda: torch.randint(0, 100, (2, 16))),), by_hand=bert_by_hand(model))


def bert_base() -> Program:
    """The real BERT-base, on 128 tokens."""
    model = _seeded(lambda: BertModel(BertConfig())).eval()
    model.config.return_dict = False
    return Program("BERT-base", model, (_seeded(lambda: torch.randint(0, 1000, (1, 128))),))


def smallest() -> Program:
    """One operation, beside itself."""
    return Program("one-op call", one_operation, (torch.ones(4),), by_hand=one_operation)


# ---- by hand -------------------------------------------------------------------------------------------------------


def _convolution(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> Callable[[Tensor], Tensor]:
    """A convolution without bias and its normalisation in evaluation mode."""
    weight, stride, padding = conv.weight, conv.stride, conv.padding
    mean, variance, scale, shift = norm.running_mean, norm.running_var, norm.weight, norm.bias

    def run(x: Tensor) -> Tensor:
        x = torch.conv2d(x, weight, None, stride, padding)
        return torch.batch_norm(x, scale, shift, mean, variance, False, 0.1, 1e-5, True)

    return run


def resnet_by_hand(model: Any) -> Callable[[Tensor], Tensor]:
    """A ResNet of basic blocks as a function."""
    stem = _convolution(model.conv1, model.bn1)
    blocks = [
        (
            _convolution(block.conv1, block.bn1),
            _convolution(block.conv2, block.bn2),
            None if block.downsample is None else _convolution(*block.downsample),
        )
        for stage in (model.layer1, model.layer2, model.layer3, model.layer4)
        for block in stage
    ]
    weight, bias = model.fc.weight, model.fc.bias

    def run(x: Tensor) -> Tensor:
        x = torch.max_pool2d(torch.relu_(stem(x)), 3, 2, 1)
        for first, second, shortcut in blocks:
            out = second(torch.relu_(first(x)))
            out += x if shortcut is None else shortcut(x)
            x = torch.relu_(out)
        return F.linear(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1), weight, bias)

    return run


def bert_by_hand(model: Any) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """A BERT without a mask as a function."""
    embeddings, heads = model.embeddings, model.config.num_attention_heads
    words, places, kinds = (
        table.weight
        for table in (embeddings.word_embeddings, embeddings.position_embeddings, embeddings.token_type_embeddings)
    )
    norm = _norm(embeddings.LayerNorm)
    layers = [functools.partial(_bert_layer, *_parts(layer), heads) for layer in model.encoder.layer]
    pool = _linear(model.pooler.dense)

    def run(tokens: Tensor) -> tuple[Tensor, Tensor]:
        length = tokens.shape[1]
        places_used = embeddings.position_ids[:, :length]
        kinds_used = embeddings.token_type_ids[:, :length].expand(tokens.shape[0], length)
        x = torch.embedding(words, tokens, 0) + torch.embedding(kinds, kinds_used)
        x = norm(x + torch.embedding(places, places_used))
        for layer in layers:
            x = layer(x)
        return x, torch.tanh(pool(x[:, 0]))

    return run


def _linear(layer: nn.Linear) -> Callable[[Tensor], Tensor]:
    weight, bias = layer.weight, layer.bias
    return lambda x: F.linear(x, weight, bias)


def _norm(layer: nn.LayerNorm) -> Callable[[Tensor], Tensor]:
    shape, weight, bias, epsilon = layer.normalized_shape, layer.weight, layer.bias, layer.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


def _parts(layer: Any) -> list[Callable[[Tensor], Tensor]]:
    attention, inner = layer.attention, layer.attention.self
    linears = [
        inner.query,
        inner.key,
        inner.value,
        attention.output.dense,
        layer.intermediate.dense,
        layer.output.dense,
    ]
    return [*map(_linear, linears), _norm(attention.output.LayerNorm), _norm(layer.output.LayerNorm)]


def _bert_layer(
    query: Any, key: Any, value: Any, dense: Any, wide: Any, narrow: Any, norm1: Any, norm2: Any, heads: int, x: Tensor
) -> Tensor:
    batch, length, width = x.shape
    size = (batch, length, heads, width // heads)
    q, k, v = (part(x).view(size).transpose(1, 2) for part in (query, key, value))
    attended = F.scaled_dot_product_attention(q, k, v)
    x = norm1(dense(attended.transpose(1, 2).reshape(batch, length, width)) + x)
    return norm2(narrow(F.gelu(wide(x))) + x)
