"""Programs in plain torch as users write them, for the day in the life of a capture.

Each is small and stands for one habit: modes, batch norm, a closure over a module, a global constant, einops, recurrent
layers. This file is the users' own source: a process that loads a saved capture does not have it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from einops import rearrange, reduce
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 16
SCALE = 0.5
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": torch.relu, "tanh": torch.tanh}


class Perceptron(nn.Module):
    """Two layers with an activation that is found in a table of the user's own."""

    def __init__(self, activation: str = "relu") -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, 2 * WIDTH)
        self.second = nn.Linear(2 * WIDTH, WIDTH)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        """Scaled by a global constant."""
        return self.second(ACTIVATIONS[self.activation](self.first(x))) * SCALE


class ResidualDropout(nn.Module):
    """In evaluation dropout returns its input, so that two names stand for one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """The residual is what came in, without dropout."""
        residual = x
        x = self.drop(x)
        return residual + self.linear(x)


class ModeBranch(nn.Module):
    """Does something else in training than in evaluation, and counts its training steps."""

    steps: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Noise in training, normed logits in evaluation."""
        hidden = self.linear(x)
        if self.training:
            self.steps += 1
            hidden = hidden + 0.1 * torch.randn_like(hidden)
            return {"logits": hidden}
        return {"logits": functional.normalize(hidden, dim=-1)}


class ResidualBlock(nn.Module):
    """Two convolutions with batch norm around a residual."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.one_norm = nn.BatchNorm2d(channels)
        self.two = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.two_norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """The residual is added before the last activation."""
        hidden = functional.relu(self.one_norm(self.one(x)), inplace=True)
        return functional.relu(self.two_norm(self.two(hidden)) + x)


class SmallResNet(nn.Module):
    """Classifies images."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(ResidualBlock(8) for _ in range(2))
        self.head = nn.Linear(8, 5)

    def forward(self, images: Tensor) -> Tensor:
        """Global average pooling before the head."""
        hidden = self.stem(images)
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(functional.adaptive_avg_pool2d(hidden, 1).flatten(1))


class SmallUNet(nn.Module):
    """One level down and up, with a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.middle = nn.Conv2d(8, 8, 3, padding=1)
        self.up = nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        """Interpolates to the very size of the skip."""
        skip = functional.gelu(self.down(images))
        low = functional.gelu(self.middle(functional.max_pool2d(skip, 2)))
        high = functional.interpolate(low, size=skip.shape[-2:], mode="nearest")
        return self.up(torch.cat([skip, high], dim=1))


class Tagger(nn.Module):
    """A bidirectional LSTM over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * WIDTH, 4)

    def forward(self, tokens: Tensor) -> Tensor:
        """Log probabilities of tags."""
        hidden, _ = self.lstm(self.words(tokens))
        return functional.log_softmax(self.head(hidden), dim=-1)


class Encoder(nn.Module):
    """torch's own encoder, with positions and a padding mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, WIDTH)
        self.positions = nn.Parameter(torch.randn(64, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 2 * WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, tokens: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Masked tokens are not attended to."""
        hidden = self.words(tokens) + self.positions[: tokens.shape[1]]
        padding = None if attention_mask is None else attention_mask == 0
        return self.encoder(hidden, src_key_padding_mask=padding)


class Autoencoder(nn.Module):
    """A convolutional autoencoder that returns the code beside the image."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 1))
        self.decode = nn.Sequential(nn.ConvTranspose2d(4, 8, 2, stride=2), nn.ReLU(), nn.Conv2d(8, 3, 1), nn.Sigmoid())

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The image and its code."""
        code = self.encode(images)
        return self.decode(code), code


class EinopsMixer(nn.Module):
    """Patches and means written with einops."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3 * 4 * 4, WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, images: Tensor) -> Tensor:
        """One vector for each image."""
        patches = rearrange(images, "b c (h p) (w q) -> b (h w) (c p q)", p=4, q=4)
        return reduce(torch.relu(self.mix(self.embed(patches))), "b n d -> b d", "mean")


class CausalAttention(nn.Module):
    """Attention by hand: a causal mask made from the length, a padding mask, the type's lowest number."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, 50)
        self.drop = nn.Dropout(0.1)

    def forward(self, tokens: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Logits of the next token."""
        batch, length = tokens.shape
        hidden = self.words(tokens)
        query, key, value = (part.view(batch, length, 2, -1).transpose(1, 2) for part in self.qkv(hidden).chunk(3, -1))
        scores = query @ key.transpose(-1, -2) / key.shape[-1] ** 0.5
        allowed = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()[None, None]
        if attention_mask is not None:
            allowed = allowed & (attention_mask != 0)[:, None, None, :]
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        mixed = (self.drop(scores.softmax(-1)) @ value).transpose(1, 2).reshape(batch, length, WIDTH)
        return self.out(hidden + mixed)


class TextConvolution(nn.Module):
    """Kernels of several widths over tokens, the largest answer of each."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, WIDTH, padding_idx=0)
        self.kernels = nn.ModuleList(nn.Conv1d(WIDTH, 4, size) for size in (2, 3))
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of three classes."""
        hidden = self.words(tokens).transpose(1, 2)
        pooled = [functional.relu(kernel(hidden)).amax(-1) for kernel in self.kernels]
        return self.head(self.drop(torch.cat(pooled, 1)))


def regularised() -> nn.Module:
    """A perceptron with batch norm and dropout."""
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Dropout(0.5), nn.Linear(WIDTH, 3)
    )


def closing_over(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """A function that closes over a module and over a number."""
    temperature = 2.0

    def predict(x: Tensor) -> Tensor:
        return torch.softmax(model(x) / temperature, dim=-1)

    return predict
