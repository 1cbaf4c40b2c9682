"""ViT: an image cut into patches, a class token and learned positions, read by a transformer encoder.

An image batch (n, 3, size, size) comes in, class scores (n, classes) go out. Attention is written out in
plain tensor operations (one projection for queries, keys and values), so that the graph shows all of it.
"""

import torch
from torch import Tensor, nn


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.qkv = nn.Linear(width, 3 * width)
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = qkv.unbind(0)
        weights = (query @ key.transpose(-2, -1) * self.scale).softmax(dim=-1)
        mixed = (self.dropout(weights) @ value).transpose(1, 2).reshape(batch, length, width)
        return self.project(mixed)


class EncoderBlock(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(
        self,
        size: int = 224,
        patch: int = 16,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        classes: int = 1000,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.class_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Sequential(*[EncoderBlock(width, heads, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        token = self.class_token.expand(x.shape[0], -1, -1)
        x = torch.cat((token, x), dim=1) + self.positions
        x = self.norm(self.blocks(self.dropout(x)))
        return self.head(x[:, 0])
