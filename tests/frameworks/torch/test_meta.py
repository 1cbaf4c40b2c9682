"""Models without data: on the meta device, or of fake tensors, they are captured as if they were real.

The model here has the shapes of a Llama; the large one has eight billion parameters, which nobody could allocate.
"""

import copy
import resource
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

import clew


class Sizes(NamedTuple):
    width: int = 16
    hidden: int = 24
    heads: int = 4
    shared: int = 2
    layers: int = 2
    words: int = 30


LARGE = Sizes(4096, 14336, 32, 8, 32, 128256)


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotated(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Layer(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.head = sizes.width // sizes.heads
        keys = self.head * sizes.shared
        self.groups = sizes.heads // sizes.shared
        self.before, self.after = Norm(sizes.width), Norm(sizes.width)
        self.query = nn.Linear(sizes.width, sizes.width, bias=False)
        self.key = nn.Linear(sizes.width, keys, bias=False)
        self.value = nn.Linear(sizes.width, keys, bias=False)
        self.out = nn.Linear(sizes.width, sizes.width, bias=False)
        self.gate = nn.Linear(sizes.width, sizes.hidden, bias=False)
        self.up = nn.Linear(sizes.width, sizes.hidden, bias=False)
        self.down = nn.Linear(sizes.hidden, sizes.width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        normed = self.before(x)
        batch, length, _ = x.shape
        query = self.query(normed).view(batch, length, -1, self.head).transpose(1, 2)
        key = self.key(normed).view(batch, length, -1, self.head).transpose(1, 2)
        value = self.value(normed).view(batch, length, -1, self.head).transpose(1, 2)
        query, key = rotated(query, cosine, sine), rotated(key, cosine, sine)
        key, value = (part.repeat_interleave(self.groups, dim=1) for part in (key, value))
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, -1))
        normed = self.after(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    """A decoder with grouped heads, rotary positions and gated layers."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.words = nn.Embedding(sizes.words, sizes.width)
        self.layers = nn.ModuleList(Layer(sizes) for _ in range(sizes.layers))
        self.norm = Norm(sizes.width)
        self.score = nn.Linear(sizes.width, sizes.words, bias=False)
        half = sizes.width // sizes.heads // 2
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(half) / half))

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        angles = positions[:, None] * self.frequencies
        angles = torch.cat((angles, angles), dim=-1)
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin())
        return self.score(self.norm(x))


def made(sizes: Sizes, device: str = "cpu") -> tuple[nn.Module, Tensor]:
    with torch.device(device):
        return Llama(sizes).eval(), torch.zeros(2, 5, dtype=torch.int64)


def steps(captured: Any) -> list[tuple[str, str, str]]:
    """The nodes as text, without the guards and the reads of devices, which fake tensors answer for unseen."""
    graph = copy.deepcopy(captured.graph)
    for node in list(graph.nodes):
        if str(getattr(node.target, "__name__", "")).startswith("require"):
            graph.erase_node(node)
    graph.eliminate_dead_code()
    devices = {node.name: repr(torch.device("cpu")) for node in graph.nodes if node.args[1:] == ("device",)}
    nodes = [node for node in graph.nodes if node.name not in devices]
    places = devices | {node.name: f"%{place}" for place, node in enumerate(nodes)}
    return [(node.op, str(node.target), spelled((node.args, node.kwargs), places)) for node in nodes]


def spelled(value: Any, places: dict[str, str]) -> str:
    if hasattr(value, "op"):
        return places[value.name]
    if isinstance(value, dict):
        return spelled([item for pair in value.items() for item in pair], places)
    if isinstance(value, (list, tuple)):
        return f"({', '.join(spelled(item, places) for item in value)})"
    return repr(value).replace("meta", "cpu")


def test_eight_billion_parameters_without_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model, tokens = made(LARGE, "meta")
    captured = clew.trace(model, args=(tokens,))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert sum(parameter.numel() for parameter in model.parameters()) > 7.5e9
    assert captured(tokens).shape == (2, 5, LARGE.words)
    assert captured(tokens).is_meta
    assert grown < 500  # megabytes; the parameters alone would take 30,000


def test_the_graph_of_a_meta_model_is_the_real_one() -> None:
    real, meta = made(Sizes()), made(Sizes(), "meta")
    assert steps(clew.trace(meta[0], args=meta[1:])) == steps(clew.trace(real[0], args=real[1:]))


def test_the_graph_of_a_fake_model_is_the_real_one() -> None:
    real = made(Sizes())
    with FakeTensorMode():
        fake = made(Sizes())
        captured = clew.trace(fake[0], args=fake[1:])
        assert captured(fake[1]).shape == (2, 5, 30)
    assert steps(captured) == steps(clew.trace(real[0], args=real[1:]))


def test_a_graph_of_fake_tensors_asks_for_their_device() -> None:
    with FakeTensorMode():
        fake = made(Sizes())
        captured = clew.trace(fake[0], args=fake[1:])
    assert "tokens.device == cpu" in [str(guard) for guard in captured.guards]


@pytest.mark.parametrize("shape", [(1, 1), (3, 9)])
def test_a_meta_capture_is_general(shape: tuple[int, int]) -> None:
    model, tokens = made(Sizes(), "meta")
    captured = clew.trace(model, args=(tokens,))
    assert captured(torch.zeros(shape, dtype=torch.int64, device="meta")).shape == (*shape, 30)


def test_weights_loaded_afterwards_are_used() -> None:
    model, tokens = made(Sizes(), "meta")
    real = made(Sizes())[0]
    captured = clew.trace(model, args=(tokens,))
    captured.load_state_dict(real.state_dict(), assign=True)
    given = torch.tensor([[1, 2, 3]])
    assert torch.equal(captured(given), real(given))
    with pytest.raises(RuntimeError, match="device"):  # as the original does
        captured(tokens)
