"""MLP-Mixer: one MLP across patches and one across channels, in turn.

An image batch (n, 3, size, size) comes in, class scores (n, classes) go out. The number of patches is fixed
when the model is built.
"""

from torch import Tensor, nn


def mlp(width: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class MixerBlock(nn.Module):
    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.across_patches = mlp(patches, width // 2)
        self.norm2 = nn.LayerNorm(width)
        self.across_channels = mlp(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.across_patches(self.norm1(x).mT).mT
        return x + self.across_channels(self.norm2(x))


class MlpMixer(nn.Module):
    def __init__(self, size: int = 224, patch: int = 16, width: int = 512, depth: int = 8, classes: int = 1000) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        self.blocks = nn.Sequential(*[MixerBlock((size // patch) ** 2, width) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = self.norm(self.blocks(x))
        return self.head(x.mean(dim=1))
