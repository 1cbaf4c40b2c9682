"""WaveNet-style network: causal dilated 1d convolutions with gates, residuals and summed skips.

A waveform batch (n, 1, length) comes in, a distribution over sample levels (n, levels, length) goes out. No output
depends on a later input: each convolution is padded on the left only.
"""

from torch import Tensor, nn
from torch.nn import functional


class GatedLayer(nn.Module):
    def __init__(self, width: int, dilation: int, kernel: int = 2) -> None:
        super().__init__()
        self.padding = (kernel - 1) * dilation
        self.convolve = nn.Conv1d(width, 2 * width, kernel, dilation=dilation)
        self.residual = nn.Conv1d(width, width, 1)
        self.skip = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        signal, gate = self.convolve(functional.pad(x, (self.padding, 0))).chunk(2, dim=1)
        out = signal.tanh() * gate.sigmoid()
        return x + self.residual(out), self.skip(out)


class WaveNet(nn.Module):
    def __init__(self, width: int = 64, depth: int = 10, repeats: int = 3, levels: int = 256) -> None:
        super().__init__()
        self.stem = nn.Conv1d(1, width, 1)
        self.layers = nn.ModuleList(GatedLayer(width, 2**level) for _ in range(repeats) for level in range(depth))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, levels, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        skips = 0
        for layer in self.layers:
            x, skip = layer(x)
            skips = skips + skip
        return functional.log_softmax(self.head(skips), dim=1)
