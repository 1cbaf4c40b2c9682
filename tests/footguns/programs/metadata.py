"""Facts about a tensor that are read freely: rank, dtype, device, layout, contiguity, limits of a dtype, defaults."""

import torch
import torch.nn.functional as F

from tests.footguns.ledger import Case, call, program


@program("rank_branch", kind="metadata")
def _():
    def f(x):
        if x.ndim == 1:
            x = x.unsqueeze(0)
        return x.sum(-1)

    return Case(
        f,
        example=lambda: call(torch.ones(3)),
        others=[lambda: call(torch.ones(2, 3)), lambda: call(torch.ones(1, 2, 3))],
    )


@program("scalar_tensor_branch", kind="metadata")
def _():
    def f(x):
        if not x.shape:
            return x.expand(3)
        return x * len(x.shape)

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.tensor(2.0)), lambda: call(torch.ones(2, 2))]
    )


@program("dtype_branch", kind="metadata")
def _():
    def f(x):
        if x.dtype == torch.uint8:
            return x.float() / 255
        return x * 2

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[
            lambda: call(torch.full((2,), 51, dtype=torch.uint8)),
            lambda: call(torch.ones(2, dtype=torch.float64)),
        ],
    )


@program("floating_point_branch", kind="metadata")
def _():
    def f(x):
        if x.is_floating_point():
            return x.round()
        return x // 2

    return Case(
        f,
        example=lambda: call(torch.tensor([1.4, 2.6])),
        others=[lambda: call(torch.tensor([5, 7])), lambda: call(torch.tensor([5.5], dtype=torch.float64))],
    )


@program("bool_mask_or_additive", kind="metadata")
def _():
    def f(scores, mask):
        if mask.dtype is torch.bool:
            return scores.masked_fill(~mask, -1e4)
        return scores + mask

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.tensor([True, False])),
        others=[
            lambda: call(torch.ones(2), torch.tensor([0.0, -5.0])),
            lambda: call(torch.ones(2), torch.tensor([1, 0])),
        ],
    )


@program("finfo_min", kind="metadata")
def _():
    def f(x, mask):
        return x.masked_fill(mask, torch.finfo(x.dtype).min)

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.tensor([True, False])),
        others=[
            lambda: call(torch.ones(2, dtype=torch.float64), torch.tensor([True, False])),
            lambda: call(torch.ones(2, dtype=torch.bfloat16), torch.tensor([True, False])),
        ],
    )


@program("epsilon_by_dtype", kind="metadata")
def _():
    def f(x):
        epsilon = 1e-3 if x.dtype in (torch.float16, torch.bfloat16) else torch.finfo(x.dtype).eps
        return x / (x.abs().sum() + epsilon * 100)

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[
            lambda: call(torch.ones(2, dtype=torch.bfloat16)),
            lambda: call(torch.ones(2, dtype=torch.float64) * 1e-9),
        ],
    )


@program("cast_there_and_back", kind="metadata")
def _():
    def f(x):
        dtype = x.dtype
        return (x.to(torch.float64) ** 2).to(dtype)

    return Case(
        f,
        example=lambda: call(torch.ones(2) * 3),
        others=[lambda: call(torch.ones(2, dtype=torch.int32) * 3), lambda: call(torch.ones(2, dtype=torch.bfloat16))],
    )


@program("constructor_takes_dtype", kind="metadata")
def _():
    def f(x):
        table = torch.arange(x.shape[-1], dtype=x.dtype, device=x.device)
        return x + table / 2

    return Case(
        f,
        example=lambda: call(torch.ones(3)),
        others=[
            lambda: call(torch.ones(3, dtype=torch.float64)),
            lambda: call(torch.ones(3, dtype=torch.int64)),
            lambda: call(torch.ones(5)),
        ],
    )


@program("promotion_of_dtypes", kind="metadata")
def _():
    def f(x, y):
        return torch.zeros(2, dtype=torch.promote_types(x.dtype, y.dtype)) + x, torch.result_type(x, y)

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2, dtype=torch.int64)),
        others=[
            lambda: call(torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.int64)),
            lambda: call(torch.ones(2), torch.ones(2, dtype=torch.float64)),
        ],
    )


@program("device_branch", kind="metadata")
def _():
    def f(x):
        if x.device.type == "cpu":
            return x * 2
        return x.sum()

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(2, device="meta"))],
    )


@program("device_of_constructor", kind="metadata")
def _():
    def f(x):
        return torch.zeros(x.shape[0], device=x.device), str(x.device), x.is_cuda

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3, device="meta")), lambda: call(torch.ones(4))],
    )


@program("contiguity_branch", kind="metadata")
def _():
    def f(x):
        if x.is_contiguous():
            return x.view(-1) * 2
        return x.reshape(-1) * 3

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(2, 3).T), lambda: call(torch.ones(4, 4)[:, :2])],
    )


@program("view_or_error", kind="metadata")
def _():
    def f(x):
        try:
            return x.view(-1)[0].add_(1)
        except RuntimeError:
            return x.sum()

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(2, 3).T)])


@program("channels_last_branch", kind="metadata")
def _():
    def f(x):
        if x.is_contiguous(memory_format=torch.channels_last) and x.shape[1] > 1:
            return x.mean()
        return x.sum()

    return Case(
        f,
        example=lambda: call(torch.ones(1, 2, 3, 3)),
        others=[lambda: call(torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last))],
    )


@program("stride_branch", kind="metadata")
def _():
    def f(x):
        return x * (2 if x.stride(-1) == 1 else 3), x.storage_offset()

    return Case(
        f,
        example=lambda: call(torch.ones(4)),
        others=[lambda: call(torch.ones(8)[::2]), lambda: call(torch.ones(8)[2:])],
    )


@program("layout_branch", kind="metadata")
def _():
    def f(x):
        if x.is_sparse:
            return torch.sparse.sum(x)
        return x.sum() * 2

    return Case(f, example=lambda: call(torch.eye(2)), others=[lambda: call(torch.eye(2).to_sparse())])


@program("complex_branch", kind="metadata")
def _():
    def f(x):
        if torch.is_complex(x):
            return torch.view_as_real(x).sum(-1)
        return x * 2

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * (1 + 2j))])


@program("is_tensor_and_same_size", kind="metadata")
def _():
    def f(x, y):
        if torch.is_tensor(y) and x.is_same_size(y):
            return x + y
        return x * 5

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2), torch.ones(1)), lambda: call(torch.ones(2), 4)],
    )


@program("default_dtype_read", kind="metadata")
def _():
    def f(x):
        return x.to(torch.get_default_dtype()) / 2

    def wider():
        torch.set_default_dtype(torch.float64)
        return call(torch.ones(2, dtype=torch.int64))

    return Case(
        f,
        example=lambda: call(torch.ones(2, dtype=torch.int64)),
        others=[lambda: call(torch.ones(2, dtype=torch.float64)), wider],
        reset=lambda: torch.set_default_dtype(torch.float32),
    )


@program("element_size_and_bytes", kind="metadata")
def _():
    def f(x):
        return x.element_size() * x.nelement(), x.nbytes, x * x.itemsize

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2, dtype=torch.float64)), lambda: call(torch.ones(5, dtype=torch.int8))],
    )


@program("half_computed_in_float", kind="metadata")
def _():
    def f(x):
        if x.dtype != torch.float32:
            return F.softmax(x.float(), -1).type_as(x)
        return F.softmax(x, -1) * 2

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2, dtype=torch.bfloat16)), lambda: call(torch.ones(3))],
    )


@program("named_attribute_on_tensor", kind="metadata")
def _():
    def tagged(value, tag):
        value.tag = tag
        return value

    def f(x):
        return x * (2 if getattr(x, "tag", None) == "double" else 1)

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(tagged(torch.ones(2), "double")), lambda: call(tagged(torch.ones(2), "other"))],
    )


@program("attribute_put_on_tensor", kind="metadata")
def _():
    def f(x):
        y = x * 2
        y.length = x.shape[0]
        x.seen = True
        return y

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3))])


@program("shape_compared_with_tuple", kind="metadata")
def _():
    def f(x):
        if x.shape == (2, 2):
            return x.diagonal()
        if tuple(x.shape) in {(3, 1), (1, 3)} or x.shape[1:] == torch.Size([4]):
            return x * 10
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2, 2)),
        others=[lambda: call(torch.ones(3, 1)), lambda: call(torch.ones(2, 4)), lambda: call(torch.ones(5, 5))],
    )
