"""torch -> JAX: results whose sizes the data tell, sizes that went through arrays, and values that a branch chooses."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy
import pytest
import torch
from torch import nn

import clew
from clew import tree
from clew.errors import EqualItemsWarning


def as_jax(value: Any) -> Any:
    return jnp.asarray(value.numpy()) if isinstance(value, torch.Tensor) else value


def translated(fn: Any, *args: Any) -> Any:
    """The translation, which gives what the function gives."""
    made = clew.translate(clew.trace(fn, args), "jax")
    same(made, fn, *args)
    return made


def same(made: Any, fn: Any, *args: Any) -> None:
    found, wanted = tree.flatten(made(*map(as_jax, args)))[0], tree.flatten(fn(*args))[0]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        numpy.testing.assert_allclose(numpy.asarray(one), other.detach().numpy(), rtol=1e-4, atol=1e-4)


def compiled(made: Any, *args: Any) -> Any:
    return jax.jit(lambda *xs: made.pure(made.params, made.state, *xs)[0])(*map(as_jax, args))


def test_complex_numbers() -> None:
    def fn(x: torch.Tensor) -> Any:
        z = torch.view_as_complex(x) * torch.polar(x[..., 0].abs(), x[..., 1])
        return torch.view_as_real(z), z.real, z.imag, torch.complex(z.real, z.imag).abs()

    translated(fn, torch.randn(3, 4, 2))


def test_fourier_transforms() -> None:
    def fn(x: torch.Tensor) -> Any:
        back = torch.fft.irfft(torch.fft.rfft(x), n=6)
        return torch.fft.fftn(x).real, torch.fft.rfft(x, n=5, dim=0, norm="ortho").abs(), back, torch.fft.fft2(x).imag

    translated(fn, torch.randn(4, 6))


@pytest.mark.parametrize("options", [{}, {"center": False}, {"win_length": 6, "normalized": True}, {"onesided": False}])
def test_short_fourier_transforms(options: dict[str, Any]) -> None:
    window = torch.hann_window(options.get("win_length", 8))

    def fn(x: torch.Tensor) -> Any:
        return torch.view_as_real(torch.stft(x, 8, 4, window=window, return_complex=True, **options))

    made = translated(fn, torch.randn(2, 24))
    same(made, fn, torch.randn(2, 32))


def test_places_different_items_and_counts() -> None:
    def fn(x: torch.Tensor) -> Any:
        rows, columns = torch.where(x > 1)
        values, places, counts = torch.unique(x, return_inverse=True, return_counts=True)
        return x[rows, columns], values, places, counts, torch.bincount(x.reshape(-1), minlength=9), x[:, x[0] > 0]

    made = translated(fn, torch.tensor([[1, 2, 0], [4, 1, 3]]))
    same(made, fn, torch.tensor([[5, 5, 0, 2], [0, 0, 1, 3]]))
    assert any("depends on data: the program runs, but cannot be compiled" in one for one in made.notes)


def test_sizes_that_went_through_arrays_are_known_to_compilers() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        half = torch.div(x.shape[1], 2, rounding_mode="trunc")
        return x.view(x.shape[0], half, 2).sum(-1) + torch.zeros(half)

    x = torch.randn(3, 8)
    made = translated(fn, x)
    numpy.testing.assert_allclose(compiled(made, torch.ones(2, 6)), 2 * numpy.ones((2, 3)))


class Framed(nn.Module):
    """Pads to whole frames, by sizes that are computed with buffers, as audio codecs do."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("stride", torch.tensor(4), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = torch.ceil(x.shape[-1] / self.stride).to(torch.int64)
        return nn.functional.pad(x, (0, frames * self.stride - x.shape[-1])).unfold(-1, 4, 4).sum(-1)


def test_sizes_from_buffers_are_known_to_compilers() -> None:
    model, x = Framed(), torch.randn(2, 9)
    made = translated(model, x)
    same(made, model, torch.randn(2, 15))
    assert compiled(made, torch.randn(2, 13)).shape == (2, 4)


def test_sizes_that_depend_on_data() -> None:
    def fn(lengths: torch.Tensor) -> torch.Tensor:
        return torch.arange(lengths.max())[None, :] < torch.zeros(len(lengths), lengths.max()) + lengths[:, None]

    made = translated(fn, torch.tensor([2, 5, 3]))
    same(made, fn, torch.tensor([7, 1]))


def test_vmap_is_that_of_jax() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return torch.vmap(lambda row, whole: row @ whole + y.sum(), in_dims=(0, None), out_dims=1)(x, x.T)

    made = translated(fn, torch.randn(3, 4))
    same(made, fn, torch.randn(5, 4))
    assert "jax.vmap(" in made.code


def test_vmap_of_a_mask_function() -> None:
    def fn(rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        def allowed(i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
            return (i >= j) & (i - j < 3)

        return torch.vmap(torch.vmap(allowed, in_dims=(None, 0)), in_dims=(0, None))(rows, columns)

    made = translated(fn, torch.arange(5), torch.arange(6))
    same(made, fn, torch.arange(3), torch.arange(9))


def test_what_a_branch_chose_is_known_in_the_next_branch_on_it() -> None:
    def fn(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        is_padded = bool((lengths < x.shape[1]).any())
        found = (x[:, :2].shape, x.sum(1)) if is_padded else None
        x = x * 2
        if is_padded:
            shape, total = found
            x = x.reshape(shape[0], -1) + total[:, None]
        return x

    x = torch.randn(2, 4)
    made = translated(fn, x, torch.tensor([3, 4]))
    same(made, fn, x, torch.tensor([4, 4]))


def test_marks_of_compilers_are_left_out() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y._dynamo_static_input_type = "unguarded"
        return y

    translated(fn, torch.randn(3))


def test_an_error_with_values_in_its_text() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        total = x.sum().item()
        if total < 0:
            raise ValueError(f"the sum is {total}")
        return x * total

    made = translated(fn, torch.ones(3))
    with pytest.raises(ValueError, match="the sum is -3"):
        made(-jnp.ones(3))


def test_arrays_in_a_dict_of_a_layer_are_state() -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = {"cpu": torch.arange(3.0)}

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.tables[str(x.device)]

    made = translated(Cached(), torch.randn(2, 3))
    assert [tuple(one.shape) for one in made.state.values()] == [(3,)]


def test_an_attribute_of_an_object_is_refused() -> None:
    owner = SimpleNamespace()

    def fn(x: torch.Tensor) -> torch.Tensor:
        owner.last = x.shape[0]
        return x + 1

    refused = clew.translate(clew.trace(fn, (torch.ones(3),)), "jax", dry_run=True)
    assert [one.reason for one in refused] == ["it reads an object around the program, which it sets an attribute of"]


def test_no_key_is_asked_for_where_nobody_uses_what_is_drawn() -> None:
    class Dropped(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            left_out = self.training and bool(torch.rand([]) < 0.5)
            chance = torch.rand([])
            return x if left_out or (self.training and chance < 0.1) else x * 2

    made = translated(Dropped().eval(), torch.ones(3))
    assert not made.needs_key


def test_a_branch_that_is_not_taken_may_write() -> None:
    class Masked(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            if self.training:
                y[:, 0] = y[:, 1]
            return y + x

    translated(Masked().eval(), torch.ones(3, 2))


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scattered_reductions(reduce: str, include_self: bool) -> None:
    def fn(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.scatter_reduce(1, index, source, reduce=reduce, include_self=include_self)

    made = translated(fn, torch.randn(2, 5), torch.tensor([[0, 1, 1], [4, 4, 4]]), torch.randn(2, 3))
    same(made, fn, torch.randn(2, 5), torch.tensor([[2, 2, 2], [0, 1, 2]]), torch.randn(2, 3))


def test_a_program_that_gives_other_results_when_it_is_compiled_is_not_compiled() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling() or bool((x > 5).any()):
            return x * 3
        return x * 2

    x = torch.randn(3)
    made = translated(fn, x)
    assert any("gives other results for the example then" in one for one in made.notes)
    with pytest.raises(clew.GuardError, match="asks whether a compiler traces it"):
        compiled(made, x)
    made.guards.drop(kind="mode")
    numpy.testing.assert_allclose(compiled(made, x), 3 * x.numpy(), rtol=1e-6)


def test_equal_items_at_the_end_of_a_topk_are_warned_of() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.topk(2, dim=-1).indices

    made = translated(fn, torch.tensor([[3.0, 1.0, 2.0]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(jnp.array([[1.0, 4.0, 1.0, 5.0]]))
        made(jnp.array([[5.0, -jnp.inf, -jnp.inf]]))
        compiled(made, torch.ones(2, 3))
    with pytest.warns(EqualItemsWarning, match="of equal items topk takes the first ones.*1 times here .*x.topk"):
        made(jnp.array([[1.0, 4.0, 4.0, 4.0], [1.0, 2.0, 3.0, 4.0]]))


def test_functions_of_mathematical_physics() -> None:
    def fn(x: torch.Tensor) -> Any:
        small = torch.sigmoid(x)
        return torch.erfinv(small), torch.erfc(x), torch.lgamma(small), torch.digamma(small), torch.special.i0e(x)

    translated(fn, torch.randn(5))


def test_a_compiled_call_that_needs_data_says_where() -> None:
    made = translated(lambda x: x[x > 0], torch.randn(4))
    with pytest.raises(clew.GuardError, match=r"the program asks for data(.|\n)*how many items there are.*x\[x > 0\]"):
        jax.jit(made)(jnp.ones(4))


def test_arrays_of_another_framework_are_refused() -> None:
    made = translated(lambda x: x * 2, torch.randn(4))
    with pytest.raises(clew.GuardError, match=r"torch.float32(.|\n)*takes arrays of jax, of this dtype"):
        made(torch.ones(4))


def test_windows_that_overlap_in_memory() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        chunks = x.transpose(1, 2).contiguous().view(x.shape[0], torch.div(x.shape[2], 4, rounding_mode="trunc"), 4, -1)
        size, stride = list(chunks.size()), list(chunks.stride())
        size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
        return chunks.as_strided(size=size, stride=stride)

    made = translated(fn, torch.randn(2, 3, 8))
    same(made, fn, torch.randn(3, 3, 12))
    assert compiled(made, torch.ones(2, 3, 8)).shape == (2, 3, 4, 3)
