"""Models of sound: separation, self-supervised features, recognition of speech, and classification of spectrograms.

A waveform batch (n, samples), or a batch of frames (n, frames, bins), comes in. Each model is there for an operation of
its kind: learned filters with overlapping frames, strided convolutions, relative attention beside convolutions,
`torch.stft`, and a recurrent network whose losses come from `ctc_loss`.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class SeparatorBlock(nn.Module):
    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.widen = nn.Sequential(nn.Conv1d(width, 2 * width, 1), nn.PReLU(), nn.GroupNorm(1, 2 * width))
        self.mix = nn.Conv1d(2 * width, 2 * width, 3, padding=dilation, dilation=dilation, groups=2 * width)
        self.narrow = nn.Sequential(nn.PReLU(), nn.GroupNorm(1, 2 * width), nn.Conv1d(2 * width, width, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.narrow(self.mix(self.widen(x)))


class ConvTasNet(nn.Module):
    """Separates voices: (n, samples) to (n, voices, samples), by masks over learned filters of overlapping frames."""

    def __init__(self, filters: int = 64, frame: int = 16, depth: int = 6, voices: int = 2) -> None:
        super().__init__()
        self.voices, self.frame = voices, frame
        self.encode = nn.Conv1d(1, filters, frame, stride=frame // 2, bias=False)
        self.blocks = nn.Sequential(*[SeparatorBlock(filters, 2**level) for level in range(depth)])
        self.mask = nn.Conv1d(filters, voices * filters, 1)
        self.decode = nn.ConvTranspose1d(filters, 1, frame, stride=frame // 2, bias=False)

    def forward(self, wave: Tensor) -> Tensor:
        batch, samples = wave.shape
        hop = self.frame // 2
        padding = (hop - samples % hop) % hop + hop
        encoded = self.encode(functional.pad(wave, (hop, padding))[:, None]).relu()
        masks = self.mask(self.blocks(encoded)).view(batch, self.voices, -1, encoded.shape[-1]).sigmoid()
        parts = (masks * encoded[:, None]).flatten(0, 1)
        return self.decode(parts).view(batch, self.voices, -1)[..., hop : hop + samples]


class WaveFeatures(nn.Module):
    """Features of speech: strided convolutions of a normed waveform, then attention over what is left of time."""

    def __init__(self, width: int = 64, heads: int = 4, depth: int = 2, classes: int = 32) -> None:
        super().__init__()
        shapes = ((1, 10, 5), (width, 3, 2), (width, 3, 2), (width, 2, 2))
        self.convolutions = nn.ModuleList(nn.Conv1d(i, width, k, stride=s, bias=False) for i, k, s in shapes)
        self.norm = nn.GroupNorm(width, width)
        self.positions = nn.Conv1d(width, width, 5, padding=2, groups=4)
        layer = nn.TransformerEncoderLayer(width, heads, 2 * width, 0.0, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, wave: Tensor) -> Tensor:
        x = ((wave - wave.mean(-1, keepdim=True)) / (wave.std(-1, keepdim=True) + 1e-5))[:, None]
        for index, convolve in enumerate(self.convolutions):
            x = convolve(x)
            x = functional.gelu(self.norm(x) if index == 0 else x)
        x = (x + functional.gelu(self.positions(x))).transpose(1, 2)
        return self.head(self.encoder(x))


class RelativeAttention(nn.Module):
    """Attention with a learned bias for each distance, of which there are as many as the input is long."""

    def __init__(self, width: int, heads: int, reach: int = 64) -> None:
        super().__init__()
        self.heads, self.reach = heads, reach
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.distances = nn.Parameter(torch.randn(2 * reach + 1, heads))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        query, key, value = self.project(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        steps = torch.arange(length, device=x.device)
        apart = (steps[None] - steps[:, None]).clamp(-self.reach, self.reach) + self.reach
        bias = self.distances[apart].permute(2, 0, 1)
        weights = (query @ key.transpose(-2, -1) / math.sqrt(width // self.heads) + bias).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).reshape(batch, length, width))


class ConformerBlock(nn.Module):
    """Half a feed-forward, attention, a gated convolution, and the other half."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()

        def feed_forward() -> nn.Sequential:
            return nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
            )

        self.first, self.last = feed_forward(), feed_forward()
        self.attend = nn.Sequential(nn.LayerNorm(width), RelativeAttention(width, heads))
        self.before = nn.LayerNorm(width)
        self.gates = nn.Conv1d(width, 2 * width, 1)
        self.mix = nn.Sequential(
            nn.Conv1d(width, width, 7, padding=3, groups=width),
            nn.BatchNorm1d(width),
            nn.SiLU(),
            nn.Conv1d(width, width, 1),
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.first(x) / 2
        x = x + self.attend(x)
        x = x + self.mix(functional.glu(self.gates(self.before(x).transpose(1, 2)), dim=1)).transpose(1, 2)
        return self.norm(x + self.last(x) / 2)


class Conformer(nn.Module):
    """Frames (n, frames, bins) to scores of symbols (n, about frames / 4, symbols)."""

    def __init__(self, bins: int = 80, width: int = 64, heads: int = 4, depth: int = 2, symbols: int = 30) -> None:
        super().__init__()
        self.shrink = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ReLU(), nn.Conv2d(4, 4, 3, 2, 1), nn.ReLU())
        self.enter = nn.Linear(4 * math.ceil(math.ceil(bins / 2) / 2), width)
        self.blocks = nn.Sequential(*[ConformerBlock(width, heads) for _ in range(depth)])
        self.head = nn.Linear(width, symbols)

    def forward(self, frames: Tensor) -> Tensor:
        x = self.shrink(frames[:, None]).transpose(1, 2).flatten(2)
        return self.head(self.blocks(self.enter(x))).log_softmax(-1)


class SpectrogramCNN(nn.Module):
    """Classifies a waveform by the logarithm of its mel spectrogram, which is computed inside."""

    def __init__(self, window: int = 64, bins: int = 16, width: int = 8, classes: int = 10) -> None:
        super().__init__()
        self.length = window
        self.register_buffer("window", torch.hann_window(window))
        self.register_buffer("filters", torch.rand(bins, window // 2 + 1))
        self.convolve = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )  # fmt: skip
        self.head = nn.Linear(2 * width, classes)

    def forward(self, wave: Tensor) -> Tensor:
        hop = self.length // 4
        spectrum = torch.stft(wave, self.length, hop, window=self.window, center=True, return_complex=True)
        mel = self.filters @ spectrum.abs().square()
        return self.head(self.convolve(mel.clamp(min=1e-10).log10()[:, None]).flatten(1))


class CRNN(nn.Module):
    """Reads a line: an image (n, 1, 16, width) becomes a sequence of columns, a recurrent network, and a CTC loss."""

    def __init__(self, width: int = 16, symbols: int = 12) -> None:
        super().__init__()
        self.convolve = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 1)),
        )  # fmt: skip
        self.recur = nn.LSTM(width * 4, width, bidirectional=True)
        self.head = nn.Linear(2 * width, symbols)

    def forward(self, images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        columns = self.convolve(images).flatten(1, 2).permute(2, 0, 1)
        scores = self.head(self.recur(columns)[0]).log_softmax(-1)
        steps, batch, _ = scores.shape
        lengths = torch.full((batch,), steps, dtype=torch.int64)
        wanted = torch.full((batch,), targets.shape[1], dtype=torch.int64)
        return scores, functional.ctc_loss(scores, targets, lengths, wanted)
