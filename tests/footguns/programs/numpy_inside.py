"""NumPy inside torch and back: values that leave through `.numpy()` and return as constants to a naive tracer."""

import numpy as np
import torch

from tests.footguns.ledger import Case, call, program


@program("numpy_round_trip", kind="numpy_inside")
def _():
    def f(x):
        values = np.sin(x.numpy()) * 2
        return torch.from_numpy(values) + x

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 3), lambda: call(torch.ones(4))]
    )


@program("numpy_shares_memory", kind="numpy_inside")
def _():
    def f(x):
        values = x.numpy()
        values += 1
        return x * 2

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.zeros(3))])


@program("from_numpy_shares_memory", kind="numpy_inside")
def _():
    def f(array):
        tensor = torch.from_numpy(array)
        tensor.mul_(2)
        return tensor.sum()

    return Case(
        f, example=lambda: call(np.ones(2, dtype=np.float32)), others=[lambda: call(np.ones(3, dtype=np.float32) * 4)]
    )


@program("numpy_argument", kind="numpy_inside")
def _():
    def f(array, scale):
        return torch.as_tensor(array) * torch.tensor(scale)

    return Case(
        f,
        example=lambda: call(np.arange(3), 2.0),
        others=[lambda: call(np.arange(3) * 5, 2.0), lambda: call(np.arange(3.0), 3.0), lambda: call([1, 2], 2.0)],
    )


@program("numpy_result", kind="numpy_inside")
def _():
    def f(x):
        return x.detach().cpu().numpy() * 2, x.sum().numpy()

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3) * 5)])


@program("numpy_function_on_tensor", kind="numpy_inside")
def _():
    def f(x):
        return torch.tensor(np.median(x)), float(np.mean(np.asarray(x)))

    return Case(
        f, example=lambda: call(torch.tensor([1.0, 2.0, 3.0])), others=[lambda: call(torch.tensor([5.0, 2.0, 3.0]))]
    )


@program("numpy_argsort_index", kind="numpy_inside")
def _():
    def f(x):
        order = np.argsort(x.numpy())[::-1].copy()
        return x[torch.from_numpy(order)]

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 3.0, 2.0])),
        others=[lambda: call(torch.tensor([4.0, 3.0, 2.0])), lambda: call(torch.tensor([1.0, 2.0]))],
    )


@program("numpy_where_branch", kind="numpy_inside")
def _():
    def f(x):
        (hits,) = np.where(x.numpy() > 0)
        if len(hits) == 0:
            return torch.zeros(1)
        return x[hits]

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, -3.0, 2.0])),
        others=[lambda: call(torch.tensor([-4.0, 3.0, -2.0])), lambda: call(-torch.ones(2))],
    )


@program("numpy_scalar_factor", kind="numpy_inside")
def _():
    def f(x):
        peak = np.float32(x.max())
        return x / peak, np.int64(x.argmax())

    return Case(f, example=lambda: call(torch.tensor([1.0, 2.0])), others=[lambda: call(torch.tensor([8.0, 2.0]))])


@program("numpy_constant_by_size", kind="numpy_inside")
def _():
    def f(x):
        window = np.hanning(x.shape[-1]).astype("float32")
        return x * torch.from_numpy(window)

    return Case(
        f, example=lambda: call(torch.ones(4)), others=[lambda: call(torch.ones(6)), lambda: call(torch.ones(2, 3))]
    )


@program("sinusoid_table", kind="numpy_inside")
def _():
    def f(x):
        length, width = x.shape
        angle = np.arange(length)[:, None] / np.power(100.0, 2 * (np.arange(width)[None] // 2) / width)
        table = np.where(np.arange(width) % 2 == 0, np.sin(angle), np.cos(angle))
        return x + torch.tensor(table, dtype=x.dtype)

    return Case(
        f,
        example=lambda: call(torch.zeros(3, 4)),
        others=[lambda: call(torch.zeros(5, 4)), lambda: call(torch.zeros(3, 2, dtype=torch.float64))],
    )


@program("tensor_into_numpy_array", kind="numpy_inside")
def _():
    def f(x):
        table = np.zeros(4, dtype=np.float32)
        table[: len(x)] = x
        return torch.from_numpy(table)

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3) * 4), lambda: call(torch.ones(1))]
    )


@program("numpy_unique_labels", kind="numpy_inside")
def _():
    def f(labels, x):
        return {int(label): x[torch.from_numpy(labels.numpy() == label)].mean() for label in np.unique(labels)}

    return Case(
        f,
        example=lambda: call(torch.tensor([0, 1, 0]), torch.arange(3.0)),
        others=[
            lambda: call(torch.tensor([2, 1, 1]), torch.arange(3.0)),
            lambda: call(torch.tensor([0, 1, 2]), torch.arange(3.0)),
        ],
    )


@program("numpy_mixed_arithmetic", kind="numpy_inside")
def _():
    def f(x, array):
        return x * torch.as_tensor(array.mean()) + array.shape[0]

    return Case(
        f,
        example=lambda: call(torch.ones(2), np.ones(3)),
        others=[lambda: call(torch.ones(2), np.ones(3) * 6), lambda: call(torch.ones(2), np.ones(5))],
    )


@program("numpy_interp", kind="numpy_inside")
def _():
    def f(x, knots, values):
        return torch.from_numpy(np.interp(x.numpy(), knots, values.numpy()))

    return Case(
        f,
        example=lambda: call(torch.tensor([0.5]), [0.0, 1.0], torch.tensor([0.0, 2.0])),
        others=[
            lambda: call(torch.tensor([0.25]), [0.0, 1.0], torch.tensor([0.0, 2.0])),
            lambda: call(torch.tensor([0.5]), [0.0, 2.0], torch.tensor([1.0, 9.0])),
        ],
    )


@program("tensor_of_list_of_tensors", kind="numpy_inside")
def _():
    def f(x):
        return torch.tensor([x.mean(), x.max(), 1.0]), torch.as_tensor([value * 2 for value in x])

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.tensor([3.0, 5.0])), lambda: call(torch.ones(3))],
    )


@program("legacy_constructor", kind="numpy_inside")
def _():
    def f(x):
        return torch.FloatTensor([x.sum().item(), 1.0]) + torch.Tensor([float(len(x))])

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 5), lambda: call(torch.ones(3))]
    )


@program("frombuffer_and_bytes", kind="numpy_inside")
def _():
    def f(x):
        data = x.numpy().tobytes()
        return torch.frombuffer(bytearray(data), dtype=torch.float32) * len(data)

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3) * 7)])
