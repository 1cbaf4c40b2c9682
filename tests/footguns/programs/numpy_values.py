"""Values that go from torch to NumPy and back: numbers, sizes, tables, branches, random numbers, other packages."""

import functools
import math

import einops
import numpy as np
import scipy.ndimage
import scipy.special
import torch

from tests.footguns.ledger import Case, call, program


def _ones(*shape):
    return lambda: call(torch.ones(*shape))


def _given(*values):
    return lambda: call(torch.tensor(values))


@program("numpy_sqrt_of_a_size", kind="numpy_values")
def _():
    def f(q, k):
        scale = 1 / np.sqrt(q.shape[-1])
        q *= scale
        return torch.softmax(q @ k.T, -1), scale, np.log2(k.shape[0])

    return Case(
        f,
        example=lambda: call(torch.ones(2, 4), torch.ones(3, 4)),
        others=[lambda: call(torch.ones(3, 9), torch.ones(5, 9)), lambda: call(torch.ones(1, 1), torch.ones(2, 1))],
    )


@program("numpy_product_of_sizes", kind="numpy_values")
def _():
    def f(x):
        count = np.prod(x.shape[1:])
        return x.reshape(-1, count), x.view(len(x), int(count)), torch.zeros(count), torch.full((2,), count)

    return Case(f, example=_ones(2, 3, 2), others=[_ones(3, 4, 1), _ones(1, 2, 5)])


@program("numpy_numbers_as_arguments", kind="numpy_values")
def _():
    def f(x, scale, shift):
        x += shift
        return x * scale, scale * x, x.clamp(max=scale), torch.full((2,), scale), x**scale, type(scale).__name__

    return Case(
        f,
        example=lambda: call(torch.ones(2), np.float64(2.0), np.int64(1)),
        others=[
            lambda: call(torch.ones(3), np.float64(5.0), np.int64(-3)),
            lambda: call(torch.ones(2), np.float32(2.0), np.int64(1)),
            lambda: call(torch.ones(2), 2.0, 1),
        ],
    )


@program("numpy_number_in_place", kind="numpy_values")
def _():
    def f(x):
        peak = x.numpy().max()
        x /= peak
        x[0] = peak.item()
        return x, peak

    return Case(f, example=_given(1.0, 4.0), others=[_given(2.0, 8.0, 1.0), lambda: call(torch.ones(2).double())])


@program("numpy_number_torch_refuses", kind="numpy_values")
def _():
    def f(x):
        x[0] = x.numpy().max()
        return x

    return Case(f, example=_ones(2), others=[_ones(3)])


@program("tensor_times_array", kind="numpy_values")
def _():
    def f(x):
        weights = np.linspace(0, 1, x.shape[0])
        return x * weights, x == weights, np.maximum(x, 0.5), np.sin(x), x @ weights

    return Case(
        f,
        example=lambda: call(torch.ones(3, dtype=torch.float64)),
        others=[lambda: call(torch.zeros(5, dtype=torch.float64)), lambda: call(torch.ones(2))],
    )


@program("array_times_tensor_fails", kind="numpy_values")
def _():
    def f(x):
        try:
            return np.ones(3) * x
        except TypeError:
            return x - 1

    return Case(f, example=_ones(3), others=[_ones(2)])


@program("numpy_functions_on_tensors", kind="numpy_values")
def _():
    def f(x):
        stacked = np.stack([x, x * 2])
        joined = np.concatenate([x, np.zeros(2)])
        return stacked, torch.from_numpy(joined), np.array([x[0], 2.0]), np.percentile(x, 50), np.where(x > 1, x, 0)

    return Case(f, example=_given(1.0, 2.0, 3.0), others=[_given(5.0, 0.5), _given(1, 2, 3)])


@program("tensors_of_lists_of_arrays", kind="numpy_values")
def _():
    def f(x):
        rows = [row.numpy() * 2 for row in x]
        return (
            torch.tensor(np.array(rows)),
            torch.tensor([row.sum() for row in rows]),
            torch.stack(list(map(torch.tensor, rows))),
        )

    return Case(f, example=_ones(2, 3), others=[lambda: call(torch.arange(6.0).view(2, 3)), _ones(3, 3)])


@program("branch_on_numbers_of_an_array", kind="numpy_values")
def _():
    def f(x):
        array = x.numpy()
        if array.mean() > 0 and not np.isnan(array).any():
            return x * 2
        if np.allclose(array, -1):
            return x * 3
        return torch.from_numpy(np.abs(array))

    return Case(
        f, example=_ones(3), others=[lambda: call(-torch.ones(2)), _given(-3.0, 1.0), _given(float("nan"), 1.0)]
    )


@program("loop_over_a_list_of_an_array", kind="numpy_values")
def _():
    def f(x):
        total = torch.zeros(1)
        for value in x.numpy().tolist():
            total = total + value
        counts = [int(v) for v in np.bincount((x > 0).numpy().astype(np.int64), minlength=2)]
        return total, counts

    return Case(f, example=_given(1.0, 2.0), others=[_given(5.0, -2.0), _given(1.0, 2.0, 3.0)])


@program("while_an_array_is_large", kind="numpy_values")
def _():
    def f(x):
        array, rounds = x.numpy().copy(), 0
        while np.abs(array).max() > 1:
            array /= 2
            rounds += 1
        return torch.from_numpy(array), rounds

    return Case(f, example=_given(3.0, 1.0), others=[_given(0.5, 0.1), _given(100.0, 3.0, 7.0)])


@program("padded_to_the_longest", kind="numpy_values")
def _():
    def f(rows):
        longest = max(len(row) for row in rows)
        table = np.zeros((len(rows), longest), dtype=np.float32)
        for i, row in enumerate(rows):
            table[i, : len(row)] = row.numpy()
        return torch.as_tensor(table)

    return Case(
        f,
        example=lambda: call([torch.ones(2), torch.ones(3)]),
        others=[lambda: call([torch.ones(4), torch.ones(1) * 2]), lambda: call([torch.ones(1)])],
    )


@program("numpy_streams", kind="numpy_values")
def _():
    def f(x, generator):
        noise = generator.normal(size=x.shape)
        keep = np.random.rand(len(x)) < 0.5
        order = generator.permutation(len(x))
        return x + torch.from_numpy(noise), torch.from_numpy(keep), x[order], np.random.randint(0, 10, size=2)

    return Case(
        f,
        example=lambda: call(torch.ones(3), np.random.default_rng(0)),
        others=[
            lambda: call(torch.zeros(4), np.random.default_rng(5)),
            lambda: call(torch.ones(2), np.random.default_rng(1)),
        ],
    )


@program("numpy_generator_made_inside", kind="numpy_values")
def _():
    def f(x, seed):
        generator = np.random.default_rng(seed)
        state = np.random.RandomState(3)
        return x * generator.uniform() + torch.tensor(state.randn(len(x)))

    return Case(f, example=lambda: call(torch.ones(3), 1), others=[lambda: call(torch.ones(4), 7)])


@program("numpy_seeded_globally", kind="numpy_values")
def _():
    def f(x):
        np.random.seed(4)
        mask = np.random.binomial(1, 0.5, size=x.shape)
        index = np.random.choice(len(x), 2, replace=False)
        return x * torch.from_numpy(mask), x[torch.from_numpy(index)]

    return Case(f, example=_ones(3), others=[lambda: call(torch.arange(5.0))])


@program("scipy_on_tensors", kind="numpy_values")
def _():
    def f(x):
        smooth = scipy.ndimage.gaussian_filter1d(x.numpy(), 1.0)
        return torch.from_numpy(smooth) + torch.from_numpy(scipy.special.erf(x.numpy()))

    return Case(f, example=_ones(4), others=[lambda: call(torch.arange(6.0)), lambda: call(torch.ones(3).double())])


@functools.lru_cache(maxsize=8)
def _table(length, width):
    return np.arange(length)[:, None] * np.ones(width, dtype=np.float32)


@program("cached_table_of_numpy", kind="numpy_values")
def _():
    def f(x):
        return x + torch.from_numpy(_table(*x.shape)), _table(2, 2)

    return Case(f, example=_ones(2, 3), others=[_ones(4, 2), _ones(2, 3)], reset=_table.cache_clear)


@program("positions_by_the_sinusoid", kind="numpy_values")
def _():
    class Positions(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.width = width

        def forward(self, x):
            angles = [
                [p / np.power(1e4, 2 * (i // 2) / self.width) for i in range(self.width)] for p in range(x.size(1))
            ]
            table = np.array(angles)
            table[:, 0::2] = np.sin(table[:, 0::2])
            table[:, 1::2] = np.cos(table[:, 1::2])
            return x + torch.FloatTensor(table).unsqueeze(0)

    return Case(make=lambda: Positions(4), example=_ones(2, 3, 4), others=[_ones(1, 3, 4), _ones(2, 5, 4)])


@program("settings_of_numpy", kind="numpy_values")
def _():
    def f(x):
        with np.errstate(all="ignore"):
            ratio = 1 / x.numpy()
        return torch.from_numpy(np.nan_to_num(ratio, posinf=0.0))

    return Case(f, example=_given(1.0, 0.0), others=[_given(0.0, 4.0, 2.0)])


@program("class_and_kind_of_arrays", kind="numpy_values")
def _():
    def f(x, other):
        array = x.numpy()
        kinds = [type(value).__name__ for value in (array, array[0], array.sum().item(), other)]
        if isinstance(other, np.ndarray):
            other = torch.from_numpy(other)
        return kinds, list(map(type, [array]))[0] is np.ndarray, array.dtype == np.float32, x + other

    return Case(
        f,
        example=lambda: call(torch.ones(2), np.ones(2, np.float32)),
        others=[lambda: call(torch.ones(3), np.ones(3, np.float32)), lambda: call(torch.ones(2), torch.ones(2))],
    )


@program("numbers_in_python_functions", kind="numpy_values")
def _():
    def f(x):
        peak = x.numpy().max()
        sizes = max(int(peak), len(x)), min([peak, np.float32(2)]), math.sqrt(peak), round(float(peak), 1)
        return x * sizes[0], sizes, f"{peak:.1f}" if peak > 100 else "", sum(v for v in x.numpy())

    return Case(f, example=_given(4.0, 1.0), others=[_given(9.0, 2.0), _given(1.0, 0.5, 0.25)])


@program("nested_function_returns_array", kind="numpy_values")
def _():
    def f(x):
        def normalised(array, axis=0):
            return (array - array.mean(axis, keepdims=True)) / (array.std(axis, keepdims=True) + np.float32(1e-6))

        parts = {"a": normalised(x.numpy()), "b": [normalised(np.asarray(x), axis=-1)]}
        return {key: torch.as_tensor(np.asarray(value)) for key, value in parts.items()}, parts

    return Case(f, example=_ones(2, 3), others=[lambda: call(torch.arange(8.0).view(4, 2))])


@program("numpy_on_meta_or_sparse", kind="numpy_values")
def _():
    def f(x):
        return x.numpy().sum()

    return Case(
        f, example=_ones(2), others=[lambda: call(torch.ones(2, device="meta")), lambda: call(torch.eye(2).to_sparse())]
    )


@program("forced_to_numpy", kind="numpy_values")
def _():
    def f(x):
        return x.numpy(force=True) * 2, (x * 2).detach().numpy().tolist()

    return Case(f, example=lambda: call(torch.ones(2, requires_grad=True)), others=[_ones(2), _ones(3)])


@program("numpy_tables_as_defaults", kind="numpy_values")
def _():
    def f(x, table=np.arange(3.0), names=("a", "b")):
        return x * torch.from_numpy(table), names[0]

    return Case(f, example=_ones(3), others=[_ones(1), lambda: call(torch.ones(2), np.ones(2))])


@program("interpolated_positions", kind="numpy_values")
def _():
    def f(image, size):
        rows = np.clip((np.arange(size) + 0.5) * image.shape[0] / size - 0.5, 0, image.shape[0] - 1)
        low = np.floor(rows).astype(np.int64)
        high = np.minimum(low + 1, image.shape[0] - 1)
        part = torch.as_tensor(rows - low, dtype=image.dtype)[:, None]
        return image[low] * (1 - part) + image[torch.from_numpy(high)] * part

    return Case(
        f,
        example=lambda: call(torch.arange(6.0).view(3, 2), 5),
        others=[lambda: call(torch.arange(8.0).view(4, 2), 3), lambda: call(torch.arange(8.0).view(2, 4), 7)],
    )


@program("caught_error_of_numpy", kind="numpy_values")
def _():
    def f(x):
        try:
            return torch.from_numpy(np.linalg.inv(x.numpy()))
        except np.linalg.LinAlgError:
            return x * 0

    return Case(f, example=_ones(2, 2), others=[lambda: call(torch.eye(2) * 2), lambda: call(torch.zeros(3, 3))])


@program("numpy_in_an_autograd_function", kind="numpy_values")
def _():
    class Exponential(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.from_numpy(np.exp(x.detach().numpy()))

        @staticmethod
        def backward(ctx, gradient):
            return gradient * torch.from_numpy(np.exp(ctx.saved_tensors[0].numpy()))

    return Case(
        lambda x: Exponential.apply(x) * np.float32(2),
        example=lambda: call(torch.ones(2, requires_grad=True)),
        others=[lambda: call(torch.zeros(3, requires_grad=True))],
        gradients=True,
    )


@program("einops_on_both", kind="numpy_values")
def _():
    def f(x):
        turned = einops.rearrange(x.numpy(), "a b -> b a")
        return torch.from_numpy(turned.copy()), einops.reduce(x, "a b -> a", "sum")

    return Case(f, example=_ones(3, 2), others=[_ones(4, 5)])
