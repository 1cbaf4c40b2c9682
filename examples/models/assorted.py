"""Small models of other kinds: sets of points, graphs, text, super-resolution, pyramids, experts, flows, pairs.

Each is there for a shape of program that the larger models lack: the same module called twice, in-place writes
into a slice, several outputs, keyword-only arguments, `einsum`, `where`, sorting, or factories on a traced value.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class PointNet(nn.Module):
    """Classifies a set of points (n, 3, points), whatever their order, after rotating it by a learned matrix."""

    def __init__(self, width: int = 64, classes: int = 40) -> None:
        super().__init__()
        self.align = nn.Sequential(nn.Conv1d(3, width, 1), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten())
        self.matrix = nn.Linear(width, 9)
        self.features = nn.Sequential(nn.Conv1d(3, width, 1), nn.BatchNorm1d(width), nn.ReLU())
        self.head = nn.Linear(width, classes)
        self.register_buffer("identity", torch.eye(3))

    def forward(self, points: Tensor) -> Tensor:
        rotation = self.matrix(self.align(points)).view(-1, 3, 3) + self.identity
        features = self.features(torch.einsum("nij,njp->nip", rotation, points))
        return self.head(torch.max(features, 2)[0])


class GraphConvolution(nn.Module):
    """Two rounds of averaging over neighbours, given as an adjacency matrix (nodes, nodes)."""

    def __init__(self, features: int = 32, hidden: int = 64, classes: int = 7) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden, bias=False)
        self.second = nn.Linear(hidden, classes, bias=False)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        connected = adjacency + torch.eye(adjacency.shape[0])
        weight = connected.sum(1).rsqrt()
        spread = weight[:, None] * connected * weight[None, :]
        x = functional.relu(spread.matmul(self.first(x)))
        x = functional.dropout(x, p=0.3, training=self.training)
        return functional.log_softmax(spread.matmul(self.second(x)), dim=1)


class TextCNN(nn.Module):
    """Convolutions of several lengths over word vectors, each pooled to its strongest answer."""

    def __init__(self, vocabulary: int = 5000, width: int = 64, kernels: Sequence[int] = (2, 3, 4)) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.convolutions = nn.ModuleDict({f"size{size}": nn.Conv1d(width, width, size) for size in kernels})
        self.head = nn.Linear(width * len(kernels), 2)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens).transpose(1, 2)
        pooled = [convolve(x).relu().amax(-1) for convolve in self.convolutions.values()]
        return self.head(functional.dropout(torch.cat(pooled, 1), training=self.training))


class SuperResolution(nn.Module):
    """Enlarges an image by computing all the new pixels as channels and then rearranging them."""

    def __init__(self, factor: int = 2, width: int = 32) -> None:
        super().__init__()
        self.factor = factor
        self.stem = nn.Conv2d(3, width, 5, padding=2)
        self.body = nn.Sequential(nn.PReLU(width), nn.Conv2d(width, 3 * factor**2, 3, padding=1))
        self.shuffle = nn.PixelShuffle(factor)

    def forward(self, x: Tensor) -> Tensor:
        plain = functional.interpolate(x, scale_factor=self.factor, mode="nearest")
        return (plain + self.shuffle(self.body(self.stem(x)))).clamp_(0.0, 1.0)


class FeaturePyramid(nn.Module):
    """A detector's neck and heads: each level adds the enlarged one above it; one head serves all levels."""

    def __init__(self, width: int = 32, levels: int = 3, anchors: int = 3, classes: int = 4) -> None:
        super().__init__()
        self.bottom = nn.ModuleList(nn.Conv2d(3 if i == 0 else width, width, 3, 2, 1) for i in range(levels))
        self.lateral = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(levels))
        self.scores = nn.Conv2d(width, anchors * classes, 3, padding=1)
        self.boxes = nn.Conv2d(width, anchors * 4, 3, padding=1)

    def forward(self, images: Tensor) -> dict[str, list[Tensor]]:
        maps = []
        x = images
        for convolve in self.bottom:
            x = functional.leaky_relu(convolve(x), 0.1)
            maps.append(x)
        top = None
        results = []
        for lateral, features in zip(reversed(self.lateral), reversed(maps), strict=True):
            level = lateral(features)
            top = level if top is None else level + functional.interpolate(top, size=level.shape[-2:])
            results.append(top)
        return {"scores": [self.scores(x) for x in results], "boxes": [self.boxes(x).exp() for x in results]}


class MixtureOfExperts(nn.Module):
    """Every expert answers; the best few by the gate are kept and weighted."""

    def __init__(self, width: int = 32, experts: int = 4, chosen: int = 2) -> None:
        super().__init__()
        self.chosen = chosen
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor, *, bias: float = 0.0) -> tuple[Tensor, Tensor]:
        scores = self.gate(x) + bias
        best, _ = scores.topk(self.chosen, dim=-1)
        kept = torch.where(scores >= best[..., -1:], scores, torch.full_like(scores, float("-inf")))
        weights = kept.softmax(-1)
        answers = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return (answers * weights.unsqueeze(-2)).sum(-1), weights


class Coupling(nn.Module):
    """Rescales one half of the features by a function of the other half."""

    def __init__(self, width: int, swap: bool) -> None:
        super().__init__()
        self.swap = swap
        self.net = nn.Sequential(nn.Linear(width // 2, width), nn.Tanh(), nn.Linear(width, width))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        fixed, moved = torch.chunk(x, 2, dim=1)
        if self.swap:
            fixed, moved = moved, fixed
        shift, scale = self.net(fixed).tensor_split(2, dim=1)
        moved = moved * scale.tanh().exp() + shift
        parts = (moved, fixed) if self.swap else (fixed, moved)
        return torch.cat(parts, 1), scale.tanh().sum(1)


class RealNVP(nn.Module):
    """A normalising flow: the log likelihood of each row under a standard normal, pushed through couplings."""

    def __init__(self, width: int = 8, depth: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Coupling(width, bool(index % 2)) for index in range(depth))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        determinant = x.new_zeros(x.shape[0])
        for layer in self.layers:
            x, change = layer(x)
            determinant += change
        return x, determinant - 0.5 * (x**2).sum(1)


class Siamese(nn.Module):
    """One encoder for both inputs: every module of it stands twice in the graph."""

    def __init__(self, features: int = 16, width: int = 32) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, width), nn.BatchNorm1d(width), nn.Mish(), nn.Dropout(0.1))
        self.distance = nn.Bilinear(width, width, 1)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        first, second = self.encoder(left), self.encoder(right)
        return self.distance(first, second) - functional.cosine_similarity(first, second).abs()[:, None]


class MaskedDenoiser(nn.Module):
    """Hides a slice of its input in place, in a copy, and reports how well the rest explains it."""

    def __init__(self, features: int = 16, hidden: slice = slice(4, 8)) -> None:
        super().__init__()
        self.hidden = hidden
        self.net = nn.Sequential(nn.Linear(features, features), nn.Softplus(), nn.Linear(features, features))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        masked = x.clone()
        masked[:, self.hidden].zero_()
        masked.mul_(1.5)
        guess = self.net(masked)
        loss = functional.mse_loss(guess[:, self.hidden], x[:, self.hidden])
        return {"guess": guess, "loss": loss, "order": torch.sort(guess, dim=1, descending=True).indices}
