"""torch -> JAX: equal results, gradients and state, under ``jax.jit`` and at other sizes; refusals in one list."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew
from clew.errors import MissingInput, TranslationError


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.last = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.norm(self.first(x))))


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1, groups=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.max_pool2d(torch.relu(self.norm(self.conv(x))), 3, 2, 1)
        z = F.interpolate(self.up(y), scale_factor=2, mode="bilinear", align_corners=False)
        return F.avg_pool2d(F.adaptive_avg_pool2d(z, (4, 4)), 2)


def as_jax(value: Any) -> Any:
    return jnp.asarray(value.detach().numpy())


def check(found: Any, wanted: torch.Tensor, tolerance: float = 1e-4) -> None:
    numpy.testing.assert_allclose(numpy.asarray(found), wanted.detach().numpy(), rtol=tolerance, atol=tolerance)


def both(fn: Any, *args: Any) -> None:
    """The translation gives what the function gives, as it is and compiled."""
    made = clew.translate(clew.trace(fn, args), "jax")
    given = [as_jax(one) if isinstance(one, torch.Tensor) else one for one in args]
    check(made(*given), fn(*args))
    check(jax.jit(lambda *xs: made.pure(made.params, made.state, *xs)[0])(*given), fn(*args))


def test_a_perceptron_reads_like_jax() -> None:
    torch.manual_seed(0)
    model = Small()
    made = clew.translate(clew.trace(model, (torch.randn(2, 4),)), "jax")
    assert "@ self.first.weight.T) + self.first.bias" in made.code
    assert "jax.nn.relu(" in made.code
    assert "torch" not in made.code
    assert set(made.params) == set(dict(model.named_parameters()))
    x = torch.randn(5, 4)
    check(made(as_jax(x)), model(x))


def test_gradients_and_three_steps_of_training_are_those_of_torch() -> None:
    torch.manual_seed(0)
    model = Small()
    x, y = torch.randn(6, 4), torch.randn(6, 3)
    made = clew.translate(clew.trace(model, (x,)), "jax")

    def loss(params: Any, x: Any, y: Any) -> Any:
        return ((made.pure(params, made.state, x)[0] - y) ** 2).mean()

    step = jax.jit(jax.grad(loss))
    params, optimizer = made.params, torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
        slopes = step(params, as_jax(x), as_jax(y))
        params = {name: value - 0.1 * slopes[name] for name, value in params.items()}
    for name, value in model.named_parameters():
        check(params[name], value)


def test_convolutions_pools_and_resizing() -> None:
    torch.manual_seed(0)
    model = Convolutional().eval()
    made = clew.translate(clew.trace(model, (torch.randn(2, 3, 16, 16),)), "jax")
    for shape in ((2, 3, 16, 16), (5, 3, 16, 16)):
        x = torch.randn(shape)
        check(made(as_jax(x)), model(x))
    with pytest.raises(clew.GuardError, match="the windows of an adaptive pool depend on this size"):
        made(jnp.ones((2, 3, 24, 24)))


def test_running_statistics_are_state() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8))
    x = torch.randn(6, 4)
    made = clew.translate(clew.trace(model, (x,)), "jax")
    before = made.state
    result, state = jax.jit(made.pure)(made.params, before, as_jax(x))
    check(result, model(x))
    check(state["1.running_var"], model[1].running_var)
    assert int(state["1.num_batches_tracked"]) == 1
    assert made.state["1.running_var"] is before["1.running_var"]
    made(as_jax(x))
    check(made.state["1.running_mean"], model[1].running_mean)


def test_random_numbers_come_from_a_key() -> None:
    made = clew.translate(clew.trace(nn.Dropout(0.25), (torch.ones(4),)), "jax")
    with pytest.raises(MissingInput, match="the program draws random numbers, and the call has no key"):
        made(jnp.ones(4))
    x = jnp.ones((100, 100))
    made = clew.translate(clew.trace(nn.Dropout(0.25), (torch.ones(4, 4),)), "jax")
    y = made(x, key=jax.random.key(0))
    assert set(numpy.unique(y)) == {0.0, numpy.float32(1 / 0.75)}
    assert abs(float((y == 0).mean()) - 0.25) < 0.02
    assert bool((y == made(x, key=jax.random.key(0))).all())
    assert not bool((y == made(x, key=jax.random.key(1))).all())


def test_a_branch_on_data_is_a_branch_of_jax() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x * 2
        return x - 1

    made = clew.translate(clew.trace(fn, (torch.ones(3),)), "jax")
    assert "jax.lax.cond(" in made.code
    run = jax.jit(lambda x: made.pure({}, {}, x)[0])
    for sign in (1.0, -1.0):
        check(run(jnp.full(4, sign)), fn(torch.full((4,), sign)))


def optional_mask(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """As libraries build masks: they ask for data unless a compiler traces; here the two ways differ."""
    if torch.compiler.is_compiling() or not bool(mask.all()):
        bias = mask.float() * 2
    else:
        bias = None
    return x if bias is None else x + bias


def test_plain_calls_and_compiled_ones_do_what_the_original_does() -> None:
    x, full, padded = torch.randn(3), torch.ones(3, dtype=torch.bool), torch.tensor([True, False, True])
    for example in (full, padded):
        made = clew.translate(clew.trace(optional_mask, (x, example)), "jax")
        for mask in (full, padded):
            check(made(as_jax(x), as_jax(mask)), optional_mask(x, mask))
            made.guards.drop(kind="mode")  # which refuses to be compiled, since plain calls give something else
            compiled = jax.jit(lambda x, mask, made=made: made.pure({}, {}, x, mask)[0])
            check(compiled(as_jax(x), as_jax(mask)), x + mask.float() * 2)


def test_attention_with_a_mask_or_none() -> None:
    def fn(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        keep = None if bool(mask.all()) else mask[:, None, None, :]
        return F.scaled_dot_product_attention(x, x, x, attn_mask=keep, is_causal=bool(mask[0, 0]) and keep is None)

    x = torch.randn(2, 1, 3, 4)
    made = clew.translate(clew.trace(fn, (x, torch.ones(2, 3, dtype=torch.bool))), "jax")
    for mask in (torch.ones(2, 3, dtype=torch.bool), torch.tensor([[True, True, False], [True, True, True]])):
        check(made(as_jax(x), as_jax(mask)), fn(x, mask))


def test_gradients_stop_where_torch_stops_them() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = x.abs().max()
        return (x * x.detach() / scale).sum()

    x = torch.randn(5, requires_grad=True)
    made = clew.translate(clew.trace(fn, (x,)), "jax")
    fn(x).backward()
    check(jax.grad(lambda x: made.pure({}, {}, x)[0])(as_jax(x)), x.grad)


def test_writes_become_new_arrays() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        y[:, 0] = x[:, 1]
        y += 1
        y.mul_(x)
        return y

    both(fn, torch.randn(3, 4))


def test_weights_that_are_tied_are_one() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(7, 4, padding_idx=1)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.table(ids))

    model, ids = Tied(), torch.tensor([[0, 1, 6]])
    made = clew.translate(clew.trace(model, (ids,)), "jax")
    assert len(made.params) == 1
    (model(ids) ** 2).sum().backward()
    slopes = jax.grad(lambda p: (made.pure(p, made.state, as_jax(ids))[0] ** 2).sum())(made.params)
    check(next(iter(slopes.values())), model.table.weight.grad)


ATTENTION_MASK = torch.tensor([[True, False, True], [False, False, False]])
PROGRAMS = {
    "integer division": (lambda x: x // 3 + x % 3 * torch.div(x, 2, rounding_mode="trunc"), torch.arange(-5, 5)),
    "mean of a cast": (lambda x: x.float().mean() + x.sum() / 2, torch.arange(5)),
    "unbiased std": (lambda x: x.std(0) + x.var() + x.var(1, correction=0)[0], torch.randn(3, 4)),
    "nan in max": (lambda x: x.max() + x.amax(0), torch.tensor([1.0, float("nan")])),
    "argmax ties": (lambda x: x.argmax() + x.argmin(), torch.tensor([1.0, 3.0, 3.0, 1.0])),
    "bool arithmetic": (lambda x: (x > 0) + (x > 1) * (x < 3), torch.arange(5)),
    "scalars of where": (lambda x: torch.where(x > 0, 1.0, x), torch.randn(4)),
    "half and a number": (lambda x: (x * 2.5 + 1).float(), torch.randn(4).half()),
    "array without axes": (lambda x: x * torch.tensor(2.0, dtype=torch.float64).float(), torch.randn(4).half()),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh") + F.gelu(x), torch.randn(9)),
    "padding": (lambda x: F.pad(F.pad(x, (1, 2)), (1, 1), mode="reflect"), torch.randn(2, 5)),
    "ceil_mode": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), torch.randn(1, 1, 8, 8)),
    "counted padding": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), torch.randn(1, 1, 7, 7)),
    "bicubic": (lambda x: F.interpolate(x, size=(7, 5), mode="bicubic"), torch.randn(1, 2, 4, 4)),
    "corners": (lambda x: F.interpolate(x, size=(7, 5), mode="bilinear", align_corners=True), torch.randn(1, 2, 4, 4)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=1.5), torch.randn(1, 2, 4, 4)),
    "sort and top-k": (lambda x: x.sort(descending=True)[0] + x.topk(4)[0] + x.argsort(), torch.randn(4)),
    "gather and scatter": (lambda x: x.gather(1, x.argsort(1)).scatter_add(1, x.argsort(1), x), torch.randn(3, 4)),
    "softplus": (lambda x: F.softplus(x) + F.elu(x) + F.hardswish(x) + F.logsigmoid(x), torch.randn(9) * 30),
    "masked attention": (
        lambda x: F.scaled_dot_product_attention(x[:2], x, x, attn_mask=ATTENTION_MASK), torch.randn(3, 4)),
    "losses": (
        lambda x: F.cross_entropy(x, torch.tensor([0, 2, -100])) + F.mse_loss(x, x * 2) + F.nll_loss(
            F.log_softmax(x, 1), torch.tensor([1, 1, 0])), torch.randn(3, 4)),
    "einsum": (lambda x: torch.einsum("ij, kj -> ik", x, x), torch.randn(3, 4)),
    "splits": (lambda x: torch.cat([*x.split(2), *x.chunk(2)], 0), torch.randn(4, 2)),
    "squeeze": (lambda x: x[:, None].squeeze(1) + x.flatten().unflatten(0, (2, 3)), torch.randn(2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_semantics_that_bite(name: str) -> None:
    torch.manual_seed(0)
    fn, x = PROGRAMS[name]
    both(fn, x)


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_all_that_cannot_be_carried_is_listed_at_once() -> None:
    def fn(x: torch.Tensor) -> Any:
        return torch.unique(x), torch.linalg.eig(x), x.double().sum()

    captured = clew.trace(fn, (torch.rand(3, 3),))
    found = clew.translate(captured, "jax", dry_run=True)
    told = " ".join(map(str, found))
    assert "torch counts each nan by itself" in told
    assert "linalg.eig (" in told
    assert "no row stands for it" in told
    assert "it computes in float64, and JAX has 32 bits" in told
    assert "torch.unique(x), torch.linalg.eig(x)" in told
    with pytest.raises(TranslationError, match=r"cannot be translated to jax(.|\n)*linalg.eig(.|\n)*dry_run=True"):
        clew.translate(captured, "jax")


def test_a_write_into_an_input_is_refused() -> None:
    captured = clew.trace(lambda x: x.add_(1), (torch.ones(2),))
    with pytest.raises(TranslationError, match="it writes into an input, and arrays of jax cannot be written to"):
        clew.translate(captured, "jax")


def test_other_ranks_and_dtypes_are_guarded() -> None:
    made = clew.translate(clew.trace(lambda x: x * 2, (torch.ones(2),)), "jax")
    with pytest.raises(clew.GuardError, match=r"x.ndim == 1"):
        made(jnp.ones((2, 2)))
    with pytest.raises(clew.GuardError, match="x.dtype is float32"):
        made(jnp.ones(2, dtype=jnp.int32))


def test_weights_of_other_names_shapes_or_dtypes_are_refused() -> None:
    made = clew.translate(clew.trace(nn.Linear(2, 2), (torch.ones(1, 2),)), "jax")
    with pytest.raises(clew.ClewError, match="params must have the names of translated.params: 'bias'"):
        made.pure({"weight": made.params["weight"]}, {}, jnp.ones((1, 2)))
    with pytest.raises(clew.ClewError, match=r"weight has the shape \(3, 2\)"):
        made.params = made.params | {"weight": jnp.ones((3, 2))}
    with pytest.raises(clew.ClewError, match="weight is of dtype int32, and the program was translated for float32"):
        made.params = made.params | {"weight": jnp.ones((2, 2), dtype=jnp.int32)}


def test_no_translation_where_none_is_needed() -> None:
    captured = clew.trace(lambda x: x * 2, (torch.ones(2),))
    with pytest.raises(clew.CaptureError, match="this is a program of torch already"):
        clew.translate(captured, "torch")


@pytest.mark.parametrize("descending", [False, True])
def test_orders_have_nan_where_torch_has_it_and_keep_equal_items_in_order(descending: bool) -> None:
    floats = torch.tensor([[1.0, float("nan"), 3.0, 3.0, -float("inf")], [2.0, 1.0, 2.0, 0.0, float("nan")]])
    whole = torch.tensor([[3, 1, 3, 2, -5], [0, 0, 7, 7, 1]])
    for x in (floats, whole, whole > 1):
        both(lambda x: torch.argsort(x, descending=descending, stable=True), x)
    for x in (floats, whole):
        both(lambda x: torch.topk(x, 3, largest=descending)[0], x)


def test_which_of_equal_items_topk_takes_is_noted_with_the_line_where_it_counts() -> None:
    values = clew.translate(clew.trace(lambda x: torch.topk(x, 2)[0], (torch.ones(3),)), "jax")
    places = clew.translate(clew.trace(lambda x: torch.topk(x, 2).indices, (torch.arange(3.0),)), "jax")
    assert values.notes == ()
    (note,) = places.notes
    assert note.startswith("of equal items topk takes the first ones; torch may take others") and __file__ in note
