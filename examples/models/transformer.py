"""Transformers built from torch.nn's own attention: an encoder for text, and an encoder with a decoder.

Token numbers come in, a pooled vector or scores go out. `nn.MultiheadAttention` stays whole as one node and gives
a pair of which only the first part is used.
"""

import torch
from torch import Tensor, nn

from .layers import causal_mask


class TextEncoder(nn.Module):
    """BERT in outline: token, position and segment embeddings, encoder layers, pooling over real tokens."""

    def __init__(
        self, vocabulary: int = 30522, length: int = 512, width: int = 768, depth: int = 12, heads: int = 12
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width, padding_idx=0)
        self.positions = nn.Parameter(torch.randn(length, width) * 0.02)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True)
            for _ in range(depth)
        )
        self.pool = nn.Linear(width, width)

    def forward(self, tokens: Tensor, segments: Tensor | None = None) -> Tensor:
        x = self.tokens(tokens) + self.positions
        if segments is not None:
            x = x + self.segments(segments)
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        real = tokens.ne(0).unsqueeze(-1).to(torch.float32)
        mean = (x * real).sum(1) / real.sum(1).clamp(min=1.0)
        return torch.tanh(self.pool(mean))


class DecoderLayer(nn.Module):
    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.itself = nn.MultiheadAttention(width, heads, batch_first=True)
        self.other = nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.register_buffer("hidden", ~causal_mask(length))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        mixed, _ = self.itself(x, x, x, attn_mask=self.hidden, need_weights=False)
        x = self.norms[0](x + mixed)
        x = self.norms[1](x + self.other(x, memory, memory)[0])
        return self.norms[2](x + self.mlp(x))


class Translator(nn.Module):
    def __init__(
        self, vocabulary: int = 8000, width: int = 256, heads: int = 4, depth: int = 3, length: int = 64
    ) -> None:
        super().__init__()
        self.source = nn.Embedding(vocabulary, width)
        self.target = nn.Embedding(vocabulary, width)
        self.encoder = nn.TransformerEncoderLayer(width, heads, 2 * width, batch_first=True)
        self.layers = nn.ModuleList(DecoderLayer(width, heads, length) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory = self.encoder(self.source(source))
        x = self.target(target)
        for layer in self.layers:
            x = layer(x, memory)
        return self.head(x)
