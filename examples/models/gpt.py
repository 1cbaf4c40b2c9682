"""GPT-style decoder of fixed length, and a Llama-style one with rotary positions, RMS norm and gated MLPs.

Token numbers (n, length) come in, scores of the next token (n, length, vocabulary) go out. The causal mask,
the position numbers and the rotary angles are buffers made for the length the model was built with. The GPT
ties its output weights to its embedding.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from .layers import causal_mask


class CausalAttention(nn.Module):
    def __init__(self, length: int, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.length, self.width, self.heads = length, width, heads
        self.attend = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", causal_mask(length).view(1, 1, length, length))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.attend(x).split(self.width, dim=2)
        query, key, value = (self.to_heads(part) for part in (query, key, value))
        scores = (query @ key.transpose(-2, -1)) * (1.0 / math.sqrt(self.width // self.heads))
        scores = scores.masked_fill(~self.mask, float("-inf"))
        weights = self.dropout(functional.softmax(scores, dim=-1))
        mixed = (weights @ value).transpose(1, 2).contiguous()
        return self.project(mixed.view(-1, self.length, self.width))

    def to_heads(self, x: Tensor) -> Tensor:
        return x.view(-1, self.length, self.heads, self.width // self.heads).transpose(1, 2)


class DecoderBlock(nn.Module):
    def __init__(self, length: int, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = CausalAttention(length, width, heads, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        hidden = functional.gelu(self.widen(self.norm2(x)), approximate="tanh")
        return x + functional.dropout(self.narrow(hidden), self.dropout, self.training)


class GPT(nn.Module):
    def __init__(
        self,
        vocabulary: int = 50257,
        length: int = 1024,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.register_buffer("steps", torch.arange(length).unsqueeze(0))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(DecoderBlock(length, width, heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.dropout(self.tokens(tokens) + self.positions(self.steps))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class RMSNorm(nn.Module):
    def __init__(self, width: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.epsilon))


def rotate_half(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class RotaryBlock(nn.Module):
    def __init__(self, length: int, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.project = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        half = width // heads // 2
        angles = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("cosine", torch.cat((angles, angles), -1).cos())
        self.register_buffer("sine", torch.cat((angles, angles), -1).sin())

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm1(x)
        query, key = self.rotate(self.split(self.query(normed))), self.rotate(self.split(self.key(normed)))
        mixed = functional.scaled_dot_product_attention(query, key, self.split(self.value(normed)), is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).flatten(2))
        normed = self.norm2(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def rotate(self, x: Tensor) -> Tensor:
        return x * self.cosine + rotate_half(x) * self.sine


class RotaryDecoder(nn.Module):
    def __init__(
        self, vocabulary: int = 32000, length: int = 512, width: int = 512, depth: int = 8, heads: int = 8
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*[RotaryBlock(length, width, heads) for _ in range(depth)])
        self.norm = RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.tokens(tokens))))
