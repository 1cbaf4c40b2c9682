"""torch functions without a row, recurrent layers, loops, data in plain calls: equal to torch, at other sizes too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew
from clew import tree
from clew.translate.program import conversion


def same(fn: Callable[..., Any], made: Any, args: tuple[Any, ...], to: str = "jax") -> None:
    source, convert = conversion("torch", to)
    wanted = tree.flatten(fn(*args))[0]
    found = tree.flatten(made(*(convert(source.to_numpy(one)) for one in args)))[0]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        numpy.testing.assert_allclose(numpy.asarray(one), other.detach().numpy(), rtol=1e-4, atol=1e-5)


def both(fn: Callable[..., Any], *calls: tuple[Any, ...], to: str = "jax") -> Any:
    made = clew.translate(clew.trace(fn, calls[0]), to)
    for args in calls:
        same(fn, made, args, to)
    return made


IMAGES = (torch.linspace(-1, 1, 384).reshape(2, 3, 8, 8), torch.linspace(1, -2, 900).reshape(3, 3, 10, 10))
PARTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "xlogy": (lambda x: torch.special.xlogy(x.abs(), x.abs()), (IMAGES[0],), (IMAGES[1],)),
    "diag_embed": (lambda x: torch.diag_embed(x), (torch.rand(3, 4),), (torch.rand(2, 5),)),
    "local_response_norm": (lambda x: F.local_response_norm(x, 2), (IMAGES[0],), (IMAGES[1],)),
    "grid_sample": (
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        (IMAGES[0], torch.rand(2, 5, 5, 2) * 2 - 1),
        (IMAGES[1], torch.rand(3, 4, 6, 2) * 2 - 1),
    ),
    "triplet": (lambda x: F.triplet_margin_loss(x, x + 1, x * 2), (torch.rand(3, 4),), (torch.rand(5, 4),)),
    "fold": (lambda x: F.fold(F.unfold(x, 2, stride=2), (8, 8), 2, stride=2), (IMAGES[0],), (IMAGES[0] * 2,)),
}


@pytest.mark.parametrize("name", PARTS)
def test_functions_without_a_row_are_taken_apart_and_their_sizes_stay_free(name: str) -> None:
    fn, first, second = PARTS[name]
    both(fn, first, second)


def test_what_a_decomposition_relies_on_is_a_guard() -> None:
    made = both(lambda x, grid: F.grid_sample(x, grid, align_corners=False), PARTS["grid_sample"][1])
    with pytest.raises(clew.GuardError, match="taken apart for sizes like the example's"):
        made(jnp.ones((2, 3, 8, 8)), jnp.ones((5, 4, 6, 2)))


@pytest.mark.parametrize("to", ["jax", "numpy", "tensorflow"])
def test_recurrent_layers_take_any_length(to: str) -> None:
    torch.manual_seed(0)
    calls = (torch.randn(2, 3, 4),), (torch.randn(3, 5, 4),)
    both(nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True), *calls, to=to)
    both(nn.GRU(4, 3), *calls, to=to)


def test_a_recurrent_layer_is_a_scan_and_learns_as_in_torch() -> None:
    torch.manual_seed(0)
    model, x = nn.LSTM(4, 3), torch.randn(5, 2, 4)
    made = clew.translate(clew.trace(model, (x,)), "jax")
    assert "jax.lax.scan" in made.code
    assert clew.verify(made, model, ((x,), {})).ok


def shrink(x: torch.Tensor, limit: torch.Tensor) -> Any:
    count = torch.zeros(())
    while x.abs().sum() > limit:
        x = x / 2
        count = count + 1
    return x, count


def test_a_loop_on_data_compiles_and_its_gradients_flow_in_plain_calls() -> None:
    limit = torch.tensor(1.0)
    made = both(shrink, (torch.ones(4) * 3, limit), (torch.ones(4) * 100, limit), (torch.zeros(4), limit))
    assert made.notes == ()
    same(shrink, jax.jit(made), (torch.ones(4) * 100, limit))
    slope = jax.grad(lambda x: made(x, jnp.asarray(1.0))[0].sum())(jnp.ones(4) * 3)
    x = (torch.ones(4) * 3).requires_grad_()
    shrink(x, limit)[0].sum().backward()
    numpy.testing.assert_allclose(slope, x.grad)


@pytest.mark.parametrize("to", ["jax", "numpy", "tensorflow"])
def test_sizes_that_depend_on_data_are_those_of_torch_in_plain_calls(to: str) -> None:
    x, y = torch.tensor([[1.0, -1.0], [2.0, 3.0]]), torch.tensor([[-1.0, -1.0], [-2.0, 3.0], [1.0, 1.0]])
    for fn in (lambda x: torch.nonzero(x), lambda x: x[x > 0] * 2, lambda x: torch.masked_select(x, x > 1)):
        both(fn, (x,), (y,), to=to)
    both(lambda x: torch.unique_consecutive(x), (torch.tensor([1, 1, 2, 1]),), (torch.tensor([3]),), to=to)
    counts = torch.tensor([1, 2]), torch.tensor([3, 0])
    for fn in (
        lambda x, n: torch.repeat_interleave(x, n, dim=0),
        lambda x, n: torch.cat([part.cumsum(0) for part in torch.split(x.repeat(2, 1)[:3], n.tolist())]),
        lambda x, n: x * n.sum().item(),
    ):
        both(fn, (x, counts[0]), (x, counts[1]), to=to)


def test_a_compiler_refuses_sizes_that_depend_on_data_and_notes_say_so() -> None:
    made = clew.translate(clew.trace(lambda x: x[x > 0] * 2, (torch.ones(3),)), "jax")
    assert "how many items there are depends on data: the program runs, but cannot be compiled" in made.notes[0]
    with pytest.raises(clew.GuardError, match="the program asks for data"):
        jax.jit(made)(jnp.ones(3))


@pytest.mark.parametrize("to", ["jax", "numpy", "tensorflow"])
def test_groups_of_products(to: str) -> None:
    def fn(x: torch.Tensor, weight: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        counts = torch.histc(chosen.float(), bins=3, min=0, max=2).to(torch.int32)
        return torch._grouped_mm(x, weight, offs=counts.cumsum(0, dtype=torch.int32))

    x, weight = torch.randn(5, 8), torch.randn(3, 8, 16)
    both(fn, (x, weight, torch.tensor([0, 0, 1, 2, 2])), (x, weight, torch.tensor([1, 1, 1, 2, 2])), to=to)


def test_dropout_inside_of_attention_draws_from_the_key() -> None:
    q = torch.randn(2, 4, 8)
    made = clew.translate(clew.trace(lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5), (q,)), "jax")
    given = jnp.asarray(q.numpy())
    one, other, again = (made(given, key=jax.random.key(number)) for number in (0, 1, 0))
    assert bool((one == again).all()) and not bool((one == other).all())


@pytest.mark.parametrize("to", ["jax", "numpy"])
def test_linear_systems(to: str) -> None:
    x = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
    for fn in (torch.linalg.inv, torch.linalg.det, torch.linalg.cholesky, torch.linalg.eigvalsh):
        both(lambda x, fn=fn: fn(x), (x,), to=to)
    for unit in (False, True):
        both(lambda x, y, u=unit: torch.linalg.solve_triangular(x, y, upper=True, unitriangular=u), (x, x + 1), to=to)
    both(lambda x, y: torch.linalg.solve(x, y), (x, x + 1), to=to)


def test_writes_by_masks_whose_values_have_the_other_axes() -> None:
    def fn(x: torch.Tensor, ids: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        x = x * 1
        x[ids == 1] = row
        return x

    both(fn, (torch.ones(2, 3), torch.tensor([0, 1]), torch.arange(3.0)))


def test_a_call_that_is_tried_is_the_call() -> None:
    table = torch.arange(6.0).reshape(3, 2)

    def fn(ids: torch.Tensor) -> torch.Tensor:
        try:
            found = F.embedding(ids, table)
        except IndexError as error:
            raise IndexError("ids of 0 to 2") from error
        return found * 2

    both(fn, (torch.tensor([0, 2]),), (torch.tensor([1, 1, 0]),))


def test_a_call_that_fails_by_data_is_refused_where_it_is_tried() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        try:
            return torch.linalg.cholesky(x)
        except RuntimeError as error:
            if "positive-definite" not in str(error):
                raise
        return x

    with pytest.raises(clew.ClewError, match="it catches the error of a call"):
        clew.translate(clew.trace(fn, (torch.eye(2),)), "jax")


def test_a_program_of_which_compiled_calls_cannot_be_carried_runs_in_plain_ones() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling():
            return torch.linalg.eigvals(x).real
        return x * 2

    made = both(fn, (torch.eye(2),), (torch.ones(3, 3),))
    assert made.notes[0].startswith("it runs, but cannot be compiled: linalg.eigvals (")
    with pytest.raises(clew.GuardError, match="no compiler traces the program"):
        jax.jit(made)(jnp.eye(2))


# ---- verify ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["jax", "numpy", "tensorflow"])
def test_verify_compares_with_the_original_of_another_framework(to: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
    made = clew.translate(clew.trace(model, (torch.randn(5, 4),)), to)
    found = clew.verify(made, model, ((torch.randn(2, 4),), {}))
    assert [(case.name, case.status) for case in found.cases] == [("example", "equal"), ("noise", "equal")]


def test_verify_names_the_first_node_that_differs_and_the_tolerance() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), torch.randn(5, 4)
    made = clew.translate(clew.trace(model, (x,)), "jax")
    made.params = made.params | {"2.bias": made.params["2.bias"] + 0.5}
    case = clew.verify(made, model, ((x,), {})).cases[0]
    assert (case.status, case.node) == ("WRONG", "linear_1")
    assert "15 of 15 numbers differ, by up to 0.5 (allowed: 0.0001)" in case.detail
    assert clew.verify(made, model, ((x,), {}), atol=0.6, gradients=False).ok


def test_verify_tells_a_guard_and_another_gradient() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    made = clew.translate(clew.trace(fn, (torch.ones(2),)), "jax")
    assert clew.verify(made, fn, ((torch.ones(2, 2),), {})).cases[0].status == "guarded"
    layer, x = nn.Linear(3, 2), torch.ones(1, 3)
    translated = clew.translate(clew.trace(layer, (x,)), "jax")
    layer.weight.register_hook(lambda slope: slope * 3)
    assert "the gradient of weight" in clew.verify(translated, layer, ((x,), {})).cases[0].detail
