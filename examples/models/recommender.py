"""Recommenders: DLRM, wide and deep, and a two-tower model whose inputs and outputs are dictionaries.

Dense features and lists of category numbers come in, a click probability or similarity goes out.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


def mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers with ReLU between them, none after the last."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class DLRM(nn.Module):
    """Embedding bags and a dense MLP meet in all pairwise dot products, by one batched product."""

    def __init__(self, dense: int = 13, tables: Sequence[int] = (1000,) * 8, width: int = 16, hidden: int = 64) -> None:
        super().__init__()
        self.bottom = mlp((dense, hidden, width))
        self.bags = nn.ModuleList(nn.EmbeddingBag(size, width, mode="sum") for size in tables)
        count = len(tables) + 1
        rows, columns = torch.tril_indices(count, count, offset=-1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)
        self.top = mlp((width + len(rows), hidden, 1))

    def forward(self, dense: Tensor, sparse: list[Tensor], offsets: list[Tensor]) -> Tensor:
        x = self.bottom(dense)
        bags = [bag(sparse[index], offsets[index]) for index, bag in enumerate(self.bags)]
        vectors = torch.stack([x, *bags], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        pairs = products[:, self.rows, self.columns]
        return torch.sigmoid(self.top(torch.cat([x, pairs], dim=1))).squeeze(-1)


class WideAndDeep(nn.Module):
    """A linear model over the features beside a deep one over their embeddings, added together."""

    def __init__(self, dense: int = 13, categories: int = 1000, fields: int = 8, width: int = 16) -> None:
        super().__init__()
        self.wide = nn.Linear(dense, 1)
        self.bias = nn.EmbeddingBag(categories, 1)
        self.embed = nn.Embedding(categories, width)
        self.deep = mlp((dense + fields * width, 4 * width, 2 * width, 1))

    def forward(self, dense: Tensor, categories: Tensor) -> Tensor:
        wide = self.wide(dense) + self.bias(categories)
        deep = self.deep(torch.cat((dense, self.embed(categories).flatten(1)), 1))
        return (wide + deep).sigmoid()


class Tower(nn.Module):
    def __init__(self, vocabulary: int, dense: int, width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = mlp((width + dense, 2 * width, width))

    def forward(self, features: dict[str, Tensor]) -> Tensor:
        x = torch.cat([self.embed(features["id"]), features["dense"]], dim=-1)
        return functional.normalize(self.layers(x), dim=-1)


class TwoTower(nn.Module):
    """Users and items become unit vectors; each user is scored against every item of the batch."""

    def __init__(self, users: int = 1000, items: int = 1000, dense: int = 8, width: int = 32) -> None:
        super().__init__()
        self.user = Tower(users, dense, width)
        self.item = Tower(items, dense, width)
        self.temperature = nn.Parameter(torch.tensor(0.1))

    def forward(self, batch: dict[str, dict[str, Tensor]]) -> dict[str, Tensor | list[Tensor]]:
        user, item = self.user(batch["user"]), self.item(batch["item"])
        scores = user @ item.t() / self.temperature.exp()
        return {"scores": scores, "best": scores.argmax(dim=1), "vectors": [user, item]}
