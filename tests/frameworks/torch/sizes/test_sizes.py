"""Sizes inside a captured program are expressed by the sizes of what came in: few nodes, and guards on the inputs."""

from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import clew


def sizes_read(captured: object) -> list[str]:
    """What the graph reads sizes of."""
    nodes = captured.graph.nodes  # type: ignore[attr-defined]
    return [str(node.args[0]) for node in nodes if node.target is getattr and node.args[1] == "shape"]


def asked(captured: object) -> list[str]:
    """The guards that are none on types and ranks."""
    texts = map(str, captured.guards)  # type: ignore[attr-defined]
    return [text for text in texts if "type(" not in text and ".ndim" not in text]


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q, k, v = self.project(x).view(batch, length, 3, 2, -1).permute(2, 0, 3, 1, 4).unbind(0)
        if q.shape[2] > 1 and k.shape[-1] == v.shape[-1] <= 256:
            q = q * q.shape[-1] ** -0.5
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return self.out(mixed.reshape(mixed.shape[0], mixed.size(1), -1))


class Stacked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Attention() for _ in range(3))
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(self.norm(x))
        return x


@pytest.mark.parametrize("batch", [1, 2])
def test_layers_ask_the_inputs_once(batch: int) -> None:
    torch.manual_seed(0)
    model = Stacked()
    captured = clew.trace(model, (torch.randn(batch, 5, 8),), control_flow="guard")
    assert sizes_read(captured).count("x") == 1
    assert asked(captured).count("x.shape[1] > 1") == 1
    assert not [text for text in asked(captured) if "unbind" in text or "==" in text]
    for shape in ((1, 5, 8), (4, 7, 8), (3, 2, 8)):
        x = torch.randn(shape)
        torch.testing.assert_close(captured(x), model(x))
    with pytest.raises(clew.GuardError, match=r"x.shape\[1\] > 1"):
        captured(torch.randn(2, 1, 8))


def test_weights_of_another_size_take_their_place() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 6)

        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            y = self.fc(x)
            return y.sum() + torch.zeros(y.shape[-1]).sum(), y.shape[-1]

    model = Model()
    captured = clew.trace(model, (torch.ones(2, 4),))
    assert captured(torch.ones(3, 4))[1] == 6
    captured.fc.weight = nn.Parameter(torch.ones(9, 4))
    captured.fc.bias = nn.Parameter(torch.ones(9))
    assert captured(torch.ones(3, 4))[1] == 9


def test_literals_are_plain_numbers() -> None:
    def program(x: Tensor) -> Tensor:
        heads = x.view(x.shape[0], -1, 4)
        assert type(heads.shape[2]) is int
        return heads * heads.shape[2]

    captured = clew.trace(program, (torch.ones(2, 8),))
    assert torch.equal(captured(torch.ones(3, 12)), program(torch.ones(3, 12)))


def test_arithmetic_leaves_no_needless_nodes() -> None:
    def program(x: Tensor) -> Tensor:
        n = x.shape[0]
        return x.new_zeros((n * 16) // 16 + 0, n - n + 3)

    captured = clew.trace(program, (torch.ones(5),))
    arithmetic = {operator.mul, operator.floordiv, operator.add, operator.sub}
    assert not [node for node in captured.graph.nodes if node.target in arithmetic]
    assert captured(torch.ones(7)).shape == (7, 3)


CHANGING = {
    "resized": lambda x, y: _after(torch.empty(0).resize_(x.shape[0], 2), x),
    "transposed in place": lambda x, y: _after((x * 2).t_(), x),
    "given as out": lambda x, y: _after(_out(x, y), x),
    "data set": lambda x, y: _after(_with_data(x * 2, y), x),
}


def _after(changed: Tensor, x: Tensor) -> Tensor:
    return x.new_zeros(changed.shape) + changed.shape[0]


def _out(x: Tensor, y: Tensor) -> Tensor:
    found = torch.empty(3, 2)
    torch.mul(y, 2, out=found)
    return found


def _with_data(z: Tensor, y: Tensor) -> Tensor:
    z.data = y
    return z


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("name", CHANGING)
def test_shapes_that_change_in_place_are_asked_for_anew(name: str) -> None:
    program = CHANGING[name]
    captured = clew.trace(program, (torch.ones(3, 2), torch.ones(3, 2)))
    for rows in (3, 4, 5):
        x, y = torch.ones(rows, 2), torch.ones(rows + 1, 2)
        assert torch.equal(captured(x, y), program(x, y))


def test_a_call_whose_sizes_alone_are_used_still_raises() -> None:
    def program(x: Tensor) -> Tensor:
        return x.sum() * (x + torch.ones(3)).shape[0]

    captured = clew.trace(program, (torch.ones(3),))
    assert captured(torch.ones(1)) == program(torch.ones(1))
    with pytest.raises((RuntimeError, clew.GuardError)):
        captured(torch.ones(4))


def test_a_batch_of_one_is_no_literal_one() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, int]:
        z = x + y
        return z.expand(x.shape[0], -1) * z.shape[0], z.shape[0]

    captured = clew.trace(program, (torch.ones(1, 3), torch.ones(1, 3)))
    for rows in ((4, 4), (4, 1), (1, 1)):
        given = torch.ones(rows[0], 3), torch.ones(rows[1], 3)
        assert captured(*given)[1] == program(*given)[1]


def test_what_a_size_hangs_on_in_a_branch_stays_there() -> None:
    def program(x: Tensor) -> Tensor:
        y = x.reshape(-1, 2)
        if x.sum() > 0:
            y = torch.cat([y, y[:1]])
        return y * y.shape[0]

    captured = clew.trace(program, (torch.ones(4),))
    for x in (torch.ones(6), -torch.ones(6), torch.ones(2)):
        assert torch.equal(captured(x), program(x))


def test_sizes_of_data_stay_data() -> None:
    def program(x: Tensor) -> tuple[Tensor, int]:
        found = x[x > 0].relu()
        return found.reshape(found.shape[0], 1) * found.shape[0], found.numel()

    captured = clew.trace(program, (torch.tensor([1.0, -1.0, 2.0]),))
    for x in (torch.tensor([1.0, 2.0, 3.0, -1.0]), torch.tensor([-1.0])):
        assert torch.equal(captured(x)[0], program(x)[0])
        assert captured(x)[1] == program(x)[1]


def test_an_index_that_may_be_of_truths_says_nothing_about_sizes() -> None:
    def program(x: Tensor, index: Tensor) -> tuple[Tensor, int]:
        found = x[index]
        return found * 2, found.shape[0]

    captured = clew.trace(program, (torch.arange(4.0), torch.tensor([0, 1, 2, 3])))
    for index in (torch.tensor([1, 2]), torch.tensor([True, False, True, False])):
        try:
            assert captured(torch.arange(4.0), index)[1] == program(torch.arange(4.0), index)[1]
        except clew.GuardError:
            assert index.dtype is torch.bool
