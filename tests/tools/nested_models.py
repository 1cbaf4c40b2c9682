"""Small modules whose calls are laid out in ways that a nested form has to get right."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


class Block(nn.Module):
    """A module that does one of two things, with a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.rand(4))

    def forward(self, x: torch.Tensor, flag: bool = False) -> torch.Tensor:
        y = self.linear(x) * self.scale
        return y.relu() if flag else y + x


class CalledTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block(x)
        return self.block(x)


class TwoWays(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block(x)
        x = self.block(x, True)
        return self.block(x) + self.block(x, True)


class Tied(nn.Module):
    """Two blocks that share a parameter, and a third name for the first of them."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"a": Block(), "b": Block()})
        self.parts["b"].scale = self.parts["a"].scale
        self.again = self.parts["a"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in self.parts:
            x = self.parts[name](x)
        return self.again(x)


class SharedLeaf(nn.Module):
    """Layers that share one leaf module."""

    def __init__(self, depth: int = 3) -> None:
        super().__init__()
        norm = nn.LayerNorm(4)
        layers = [nn.Sequential(nn.Linear(4, 4), nn.Sequential(norm, nn.ReLU())) for _ in range(depth)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Branching(nn.Module):
    """A module inside of a branch and of a loop, whose bodies keep its calls, and one around them."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(self.block(x))
        return self.block(x) if x.sum() > 0 else x - 1


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while x.abs().sum() > 1:
            x = self.linear(x).tanh() * 0.25
        return x


class Layers(nn.Module):
    """Nested containers."""

    def __init__(self, depth: int = 3) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            nn.ModuleDict({"blocks": nn.ModuleList(Block() for _ in range(depth)), "last": Block()}) for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for stage in self.stages:
            for block in stage["blocks"]:
                x = block(x)
            x = stage["last"](x, True)
        return x


class Collecting(nn.Module):
    """Layers that give two values; one goes on, the others are collected."""

    def __init__(self, depth: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Pair() for _ in range(depth))

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> dict[str, Any]:
        kept = []
        for layer in self.layers:
            x, squares = layer(x, bias)
            kept.append(squares)
        return {"x": x, "kept": kept}


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.linear(x) + bias
        return x, x * x


class Writing(nn.Module):
    """State, buffers that are written in place, and a norm that counts."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Counter() for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.norm = nn.BatchNorm1d(4)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.total.add_(x.detach().sum(0))
        x = self.norm(x) + self.total
        x += self.calls
        return x


class Crossing(nn.Module):
    """What the inner module keeps is read and changed by the one around it: values go in and out twice."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Remembering()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen: list[torch.Tensor] = []
        x = self.inner(x, seen, lambda y: y * 2 + seen[0])
        return x + seen[1]


class Remembering(nn.Module):
    def forward(self, x: torch.Tensor, seen: list[torch.Tensor], ask: Any) -> torch.Tensor:
        seen.append(x + 1)
        y = ask(x.sin())
        seen.append(y)
        return y.cos()


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(Block(), Block())
        self.layers[0].register_forward_hook(lambda module, args, output: output * 2)
        self.layers[1].register_forward_pre_hook(lambda module, args: (args[0] + 1,))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class WithBlocks(nn.Module):
    """Context managers inside of a module, around one, and around a part of the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Quiet(), Block()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        with torch.no_grad():
            y = self.second(x)
        return self.second(x) + y


class Quiet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            factor = self.scale * 2
        return x * self.scale + factor


class Random(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Noise() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Noise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(x) + torch.randn_like(x)


class ReadsOthers(nn.Module):
    """A module that uses a parameter of the module around it, and one that is called by another's path."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4))
        self.block = Block()
        self.user = User([self])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.user(self.block(x))


class User(nn.Module):
    def __init__(self, around: list[nn.Module]) -> None:
        super().__init__()
        self.around = around
        self.own = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.around[0].block(self.own(x)) * self.around[0].weight


MODELS: dict[str, tuple[Any, int]] = {
    "called_twice": (CalledTwice, 1),
    "two_ways": (TwoWays, 1),
    "tied": (Tied, 1),
    "shared_leaf": (SharedLeaf, 1),
    "branching": (Branching, 1),
    "layers": (Layers, 1),
    "collecting": (Collecting, 2),
    "writing": (Writing, 1),
    "crossing": (Crossing, 1),
    "hooked": (Hooked, 1),
    "with_blocks": (WithBlocks, 1),
    "random": (Random, 1),
    "reads_others": (ReadsOthers, 1),
}
