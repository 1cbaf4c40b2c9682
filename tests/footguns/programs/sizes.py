"""Constructors and arithmetic on sizes: the number that came from a shape must follow the shape."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("arange_of_size", kind="sizes")
def _():
    def f(x):
        return x + torch.arange(x.shape[1], device=x.device)

    return Case(
        f,
        example=lambda: call(torch.zeros(2, 3)),
        others=[lambda: call(torch.zeros(2, 5)), lambda: call(torch.zeros(1, 1))],
    )


@program("zeros_of_sizes", kind="sizes")
def _():
    def f(x):
        batch, length = x.shape
        padding = torch.zeros(batch, 8 - length)
        return torch.cat([x, padding], 1)

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(4, 5)), lambda: call(torch.ones(1, 8))],
    )


@program("sqrt_of_size", kind="sizes")
def _():
    def f(query, key):
        return query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))

    return Case(
        f,
        example=lambda: call(torch.ones(2, 4), torch.ones(3, 4)),
        others=[lambda: call(torch.ones(2, 9), torch.ones(3, 9))],
    )


@program("power_of_size", kind="sizes")
def _():
    def f(x):
        return x * x.shape[-1] ** -0.5 + 10 ** x.dim()

    return Case(
        f, example=lambda: call(torch.ones(2, 4)), others=[lambda: call(torch.ones(2, 16)), lambda: call(torch.ones(2))]
    )


@program("float_of_size", kind="sizes")
def _():
    def f(x):
        return x.sum() / float(x.size(0)) + int(x.numel() / 2)

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(5, 3)), lambda: call(torch.ones(3, 2))],
    )


@program("len_as_number", kind="sizes")
def _():
    def f(x):
        return x.sum() / len(x)

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(5) * 2)])


@program("log2_levels", kind="sizes")
def _():
    def f(x):
        levels = int(math.log2(x.shape[-1]))
        return x * levels, math.ceil(x.shape[-1] / 3), round(x.shape[-1] / 3, 1)

    return Case(
        f, example=lambda: call(torch.ones(8)), others=[lambda: call(torch.ones(16)), lambda: call(torch.ones(9))]
    )


@program("min_of_size_and_limit", kind="sizes")
def _():
    def f(x, limit=4):
        n = min(x.shape[0], limit)
        return x[:n].sum() + max(x.shape[0] - limit, 0)

    return Case(
        f,
        example=lambda: call(torch.ones(3)),
        others=[lambda: call(torch.ones(7)), lambda: call(torch.ones(3), limit=2), lambda: call(torch.ones(4))],
    )


@program("reshape_heads", kind="sizes")
def _():
    def f(x, heads=2):
        batch, length, width = x.size()
        return x.view(batch, length, heads, width // heads).transpose(1, 2).reshape(batch * heads, length, -1)

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3, 4)),
        others=[
            lambda: call(torch.randn(1, 5, 8)),
            lambda: call(torch.randn(2, 3, 4), heads=4),
            lambda: call(torch.randn(2, 1, 4)),
        ],
    )


@program("size_one_is_not_special", kind="sizes")
def _():
    def f(x, y):
        return x.expand(y.shape[0], -1) + y, x.squeeze().dim()

    return Case(
        f,
        example=lambda: call(torch.ones(1, 3), torch.ones(2, 3)),
        others=[
            lambda: call(torch.ones(2, 3), torch.ones(2, 3)),
            lambda: call(torch.ones(1, 3), torch.ones(1, 3)),
            lambda: call(torch.ones(1, 1), torch.ones(4, 1)),
        ],
    )


@program("causal_mask_of_size", kind="sizes")
def _():
    def f(scores):
        n = scores.shape[-1]
        mask = torch.ones(n, n, dtype=torch.bool).tril()
        return scores.masked_fill(~mask, -1e9).softmax(-1)

    return Case(
        f,
        example=lambda: call(torch.randn(3, 3)),
        others=[lambda: call(torch.randn(5, 5)), lambda: call(torch.randn(2, 1, 1))],
    )


@program("pad_to_multiple", kind="sizes")
def _():
    def f(x, block=4):
        missing = -x.shape[-1] % block
        return F.pad(x, (0, missing)).reshape(x.shape[0], -1, block)

    return Case(
        f,
        example=lambda: call(torch.ones(2, 6)),
        others=[
            lambda: call(torch.ones(2, 8)),
            lambda: call(torch.ones(3, 1)),
            lambda: call(torch.ones(2, 6), block=3),
        ],
    )


@program("window_positions", kind="sizes")
def _():
    def f(x, size=2, stride=1):
        windows = (x.shape[0] - size) // stride + 1
        return torch.stack([x[i * stride : i * stride + size] for i in range(windows)])

    return Case(
        f,
        example=lambda: call(torch.arange(4)),
        others=[
            lambda: call(torch.arange(6)),
            lambda: call(torch.arange(6), stride=2),
            lambda: call(torch.arange(6), 3, 3),
        ],
    )


@program("list_from_size", kind="sizes")
def _():
    def f(x):
        return x * torch.tensor([float(i % 2) for i in range(x.shape[0])])

    return Case(
        f, example=lambda: call(torch.ones(3)), others=[lambda: call(torch.ones(5)), lambda: call(torch.ones(1))]
    )


@program("tensor_from_size", kind="sizes")
def _():
    def f(x):
        return torch.tensor(x.shape[0]) * 2, torch.tensor([x.shape[0], x.numel()]), torch.tensor(x.shape)

    return Case(
        f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(4, 3)), lambda: call(torch.ones(5))]
    )


@program("full_of_size", kind="sizes")
def _():
    def f(x):
        return torch.full((x.shape[1],), x.shape[0]), x.new_full((2,), x.shape[1]), torch.linspace(0, 1, x.shape[0])

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(4, 1))])


@program("eye_and_one_hot", kind="sizes")
def _():
    def f(labels, x):
        return F.one_hot(labels, x.shape[-1]) + torch.eye(x.shape[-1], dtype=torch.long)[labels]

    return Case(
        f,
        example=lambda: call(torch.tensor([0, 1]), torch.ones(3)),
        others=[lambda: call(torch.tensor([0, 4]), torch.ones(5)), lambda: call(torch.tensor([1]), torch.ones(2))],
    )


@program("one_hot_without_size", kind="sizes")
def _():
    def f(labels):
        return F.one_hot(labels)

    return Case(
        f,
        example=lambda: call(torch.tensor([0, 2])),
        others=[lambda: call(torch.tensor([0, 5])), lambda: call(torch.tensor([0, 0, 1]))],
    )


@program("shape_arithmetic_through_numpy", kind="sizes")
def _():
    def f(x):
        cells = int(np.prod(x.shape[1:]))
        return x.reshape(x.shape[0], cells) / np.sqrt(cells)

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3, 4)),
        others=[lambda: call(torch.ones(2, 5, 1)), lambda: call(torch.ones(3, 2))],
    )


@program("math_prod_of_shape", kind="sizes")
def _():
    def f(x):
        return x.flatten() * math.prod(x.shape), sum(x.shape), tuple(reversed(x.shape))

    return Case(
        f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(4, 1)), lambda: call(torch.ones(2))]
    )


@program("interpolate_to_scaled_size", kind="sizes")
def _():
    def f(x, scale=2):
        height, width = x.shape[-2:]
        return F.interpolate(x, size=(int(height * scale), int(width * scale)), mode="nearest")

    return Case(
        f,
        example=lambda: call(torch.ones(1, 1, 2, 3)),
        others=[lambda: call(torch.ones(1, 1, 4, 2)), lambda: call(torch.ones(1, 1, 4, 2), scale=1.5)],
    )


@program("same_padding", kind="sizes")
def _():
    class SamePad(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv1d(1, 1, 3, stride=2)

        def forward(self, x):
            length = x.shape[-1]
            pad = max((math.ceil(length / 2) - 1) * 2 + 3 - length, 0)
            return self.convolution(F.pad(x, [pad // 2, pad - pad // 2]))

    return Case(
        SamePad(),
        example=lambda: call(torch.randn(1, 1, 4)),
        others=[lambda: call(torch.randn(1, 1, 5)), lambda: call(torch.randn(2, 1, 9))],
    )


@program("chunks_by_size", kind="sizes")
def _():
    def f(x, parts):
        return x.chunk(parts, -1), x.split(x.shape[-1] // parts, -1)

    return Case(
        f,
        example=lambda: call(torch.arange(6), 2),
        others=[lambda: call(torch.arange(6), 3), lambda: call(torch.arange(7), 2), lambda: call(torch.arange(8), 2)],
    )


@program("negative_index_by_size", kind="sizes")
def _():
    def f(x, lengths):
        rows = torch.arange(x.size(0))
        return x[rows, lengths - 1] + x[:, x.shape[1] // 2]

    return Case(
        f,
        example=lambda: call(torch.arange(6.0).view(2, 3), torch.tensor([1, 3])),
        others=[lambda: call(torch.arange(15.0).view(3, 5), torch.tensor([1, 3, 5]))],
    )


@program("stride_and_storage", kind="sizes")
def _():
    def f(x):
        return x.as_strided((x.shape[0] - 1, 2), (x.stride(0), x.stride(0)), x.storage_offset())

    return Case(
        f,
        example=lambda: call(torch.arange(4.0)),
        others=[lambda: call(torch.arange(8.0)[::2]), lambda: call(torch.arange(8.0)[2:])],
    )


@program("repeat_interleave_size", kind="sizes")
def _():
    def f(x, beams):
        return x.repeat_interleave(beams, 0).view(x.shape[0] * beams, -1), x.repeat(beams, *[1] * (x.dim() - 1))

    return Case(
        f,
        example=lambda: call(torch.arange(4.0).view(2, 2), 2),
        others=[lambda: call(torch.arange(4.0).view(2, 2), 3), lambda: call(torch.arange(8.0).view(2, 2, 2), 2)],
    )


@program("reduction_over_all_but_first", kind="sizes")
def _():
    def f(x):
        return x.mean(dim=list(range(1, x.ndim))), x.permute(*reversed(range(x.ndim)))

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3)),
        others=[lambda: call(torch.randn(2, 3, 4)), lambda: call(torch.randn(3, 2))],
    )


@program("broadcast_by_rank", kind="sizes")
def _():
    def f(x, weight):
        shape = [1, -1] + [1] * (x.dim() - 2)
        return x * weight.view(shape)

    return Case(
        f,
        example=lambda: call(torch.ones(1, 2, 3), torch.arange(2.0)),
        others=[
            lambda: call(torch.ones(1, 2), torch.arange(2.0)),
            lambda: call(torch.ones(1, 2, 2, 2), torch.arange(2.0)),
        ],
    )
