"""Functions handed to torch (checkpoint, vmap, grad, cond, hooks) are captured as bodies, and act as the original."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import clew
from clew.errors import CaptureError, GuardError
from clew.ir.arguments import nested_graphs


def checkpointed(x: torch.Tensor, y: torch.Tensor) -> Any:
    factor, size = y * 2, x.shape[0]

    def body(part: torch.Tensor) -> torch.Tensor:
        return torch.sin(part) * factor + size

    return checkpoint(body, x, use_reentrant=False)


def reentrant(x: torch.Tensor, y: torch.Tensor) -> Any:
    factor = y * 2
    return checkpoint(lambda part: part.sin() * factor, x, use_reentrant=True)


def vjp(x: torch.Tensor, y: torch.Tensor) -> Any:
    out, pull = torch.func.vjp(lambda part: part.sin() * y, x)
    return pull(torch.ones_like(out) * 2)


def per_sample(x: torch.Tensor, y: torch.Tensor) -> Any:
    def loss(weight: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
        return (weight * sample).sum() ** 2

    return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(y, torch.stack([x, x * 2, x * 3]))


def mask(x: torch.Tensor, y: torch.Tensor) -> Any:
    def allowed(row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
        return (row >= column) & (y[column] > 0)

    for dims in ((None, 0), (0, None)):
        allowed = torch.vmap(allowed, in_dims=dims)
    place = torch.arange(x.shape[0])
    return allowed(place, place)


def cond(x: torch.Tensor, y: torch.Tensor) -> Any:
    size = x.shape[0]
    return torch.cond(x.sum() > y.sum(), lambda a: a.sin() * y, lambda a: a + size, (x,))


def loop(x: torch.Tensor, y: torch.Tensor) -> Any:
    limit = y.abs().sum()
    return torch.while_loop(lambda i, a: i < limit, lambda i, a: (i + 1, a * 2), (torch.zeros(()), x))


PROGRAMS: list[Callable[..., Any]] = [
    checkpointed,
    reentrant,
    vjp,
    per_sample,
    mask,
    cond,
    loop,
    lambda x, y: torch.func.grad(lambda part: (part * y).sin().sum())(x),
    lambda x, y: torch.func.grad_and_value(lambda part: (part * y).sin().sum())(x),
    lambda x, y: torch.func.jvp(lambda part: part.sin() * y, (x,), (y,)),
    lambda x, y: torch.func.jacrev(lambda part: part * y)(x),
    lambda x, y: torch.func.jacfwd(lambda part: part * y)(x),
    lambda x, y: torch.func.hessian(lambda part: (part**3 * y).sum())(x),
    lambda x, y: torch.autograd.functional.jacobian(lambda part: part * y, x),
    lambda x, y: torch.vmap(lambda part: part * 2, chunk_size=2)(x),
    lambda x, y: torch.vmap(lambda parts: parts["a"] * parts["b"][0])({"a": x, "b": (y,)}),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=[f"{place}" for place in range(len(PROGRAMS))])
def test_one_capture_holds_for_other_sizes_and_values(program: Callable[..., Any]) -> None:
    captured = clew.trace(program, (torch.randn(4), torch.randn(4)))
    assert list(nested_graphs(captured.graph))
    for size, scale in ((4, 1.0), (6, -3.0)):
        x, y = torch.randn(size), torch.rand(size) * scale
        torch.testing.assert_close(captured(x, y), program(x, y), rtol=0, atol=0)


@pytest.mark.parametrize("program", [checkpointed, reentrant])
@pytest.mark.parametrize("lazy", [False, True])
def test_gradients_through_checkpoint(program: Callable[..., Any], lazy: bool) -> None:
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    captured = clew.trace(program) if lazy else clew.trace(program, (x, y))
    for _ in range(2):
        gradients = []
        for function in (captured, program):
            x.grad = None
            function(x, y).sum().backward()
            gradients.append(x.grad)
        assert torch.equal(*gradients)


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.3))
        self.tail = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = checkpoint(self.block, x, use_reentrant=self.reentrant)
        return checkpoint_sequential(self.tail, 2, hidden, use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [False, True])
def test_layers_buffers_and_random_numbers_in_checkpoint(reentrant: bool) -> None:
    original = Checkpointed(reentrant)
    other = copy.deepcopy(original)
    captured = clew.trace(other, (torch.randn(3, 4, requires_grad=True),))
    x = torch.randn(5, 4)
    for model in (original, captured):
        torch.manual_seed(0)
        model(x.clone().requires_grad_()).sum().backward()
    for mine, theirs in zip(original.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine.grad, theirs.grad)
    for name, buffer in original.named_buffers():
        assert torch.equal(buffer, captured.get_buffer(name))


def test_a_guard_in_a_body_is_a_guard() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.vmap(lambda row: row * 2 if row.shape[0] > 2 else row)(x)

    captured = clew.trace(program, (torch.ones(2, 3),))
    assert "row.shape[0] > 2" in [str(guard) for guard in captured.guards]
    with pytest.raises(GuardError):
        captured(torch.ones(2, 2))


def test_what_leaves_a_body_by_the_back_door_is_refused() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        kept: list[Any] = []

        def body(row: torch.Tensor) -> torch.Tensor:
            kept.append(row.shape[0])
            return row

        torch.vmap(body)(x)
        return x * kept[0]

    with pytest.raises(CaptureError, match="used outside of it"):
        clew.trace(program, (torch.ones(2, 3),))


def test_writes_in_a_body_are_taken_back() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        torch.vmap(lambda row: row.add_(1))(x)
        return x * 2

    x = torch.zeros(2, 3)
    captured = clew.trace(program, (x,))
    assert torch.equal(x, torch.zeros(2, 3))
    assert torch.equal(captured(x), torch.full((2, 3), 2.0)) and torch.equal(x, torch.ones(2, 3))


class Borrowed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        doubled = {name: value * 2 for name, value in self.layer.named_parameters()}
        return torch.func.functional_call(self.layer, doubled, (x,))


def test_a_layer_with_lent_weights_is_not_a_call_of_itself() -> None:
    model, x = Borrowed(), torch.randn(2, 3)
    captured = clew.trace(model, (x,))
    assert torch.equal(captured(x), model(x))


def test_a_hook_that_uses_a_traced_number() -> None:
    def program(x: torch.Tensor, factor: float) -> torch.Tensor:
        y = x * 2
        y.register_hook(lambda gradient: gradient * factor)
        return y * x

    x = torch.ones(2, requires_grad=True)
    captured = clew.trace(program, (x, 3.0))
    assert x.grad is None and not x._backward_hooks
    captured(x, 7.0).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 16.0))


def test_backward_inside_leaves_no_gradient_behind() -> None:
    def program(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        (x * weight).sum().backward()
        return weight.grad * 2

    weight = torch.ones(2, requires_grad=True)
    weight.grad = torch.ones(2)
    captured = clew.trace(program, (torch.ones(2), weight))
    assert torch.equal(weight.grad, torch.ones(2))
    assert torch.equal(captured(torch.ones(2) * 4, weight), torch.full((2,), 10.0))


def test_shapes_asked_before_a_change_in_place() -> None:
    def program(x: torch.Tensor) -> Any:
        y = x.clone()
        before = y.shape
        y.t_()
        return before[0] * 10 + y.shape[0]

    assert clew.trace(program, (torch.ones(2, 3),))(torch.ones(4, 5)) == 45


def test_opaque_calls_may_be_refused() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    def program(x: torch.Tensor) -> Any:
        return Twice.apply(x)

    x = torch.ones(2)
    assert torch.equal(clew.trace(program, (x,), opaque="call")(x), x * 2)
    with pytest.raises(CaptureError, match="would stay one call"):
        clew.trace(program, (x,), opaque="error")
    with pytest.raises(CaptureError, match="says nothing"):
        clew.trace(program, (x,), opaque="maybe")
