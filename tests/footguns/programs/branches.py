"""Branches that a value, a size or a flag decides: the other inputs take the way that the example did not."""

import torch
import torch.nn.functional as F

from tests.footguns.ledger import Case, call, program


@program("branch_on_sum", kind="branches")
def _():
    def f(x):
        if x.sum() > 0:
            return x * 2
        return x - 5

    return Case(
        f, example=lambda: call(torch.ones(3)), others=[lambda: call(-torch.ones(3)), lambda: call(torch.ones(5))]
    )


@program("branch_on_item", kind="branches")
def _():
    def f(x, threshold):
        peak = x.abs().max().item()
        if peak > threshold.item():
            x = x / peak
        return x

    return Case(
        f,
        example=lambda: call(torch.tensor([0.2, 0.5]), torch.tensor(1.0)),
        others=[
            lambda: call(torch.tensor([4.0, 0.5]), torch.tensor(1.0)),
            lambda: call(torch.tensor([0.2, 0.5]), torch.tensor(0.1)),
        ],
    )


@program("branch_on_any_nan", kind="branches")
def _():
    def f(x):
        if torch.isnan(x).any():
            x = torch.nan_to_num(x, nan=0.0)
        return x.cumsum(0)

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0])),
        others=[lambda: call(torch.tensor([1.0, float("nan")])), lambda: call(torch.tensor([1.0, float("inf")]))],
    )


@program("ternary_on_tensor", kind="branches")
def _():
    def f(x):
        sign = 1 if x[0] > 0 else -1
        return x * sign

    return Case(f, example=lambda: call(torch.tensor([1.0, 2.0])), others=[lambda: call(torch.tensor([-1.0, 2.0]))])


@program("and_or_on_tensors", kind="branches")
def _():
    def f(x, y):
        chosen = (x.sum() > 0) and (y.sum() > 0)
        fallback = x.new_zeros(()) or y.sum()
        return torch.as_tensor(chosen).float() + fallback

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(-torch.ones(2), torch.ones(2)), lambda: call(torch.ones(2), -torch.ones(2))],
    )


@program("branch_on_batch_size", kind="branches")
def _():
    def f(x):
        if x.shape[0] == 1:
            return x
        return x - x.mean(0)

    return Case(
        f,
        example=lambda: call(torch.randn(4, 3)),
        others=[lambda: call(torch.randn(1, 3)), lambda: call(torch.randn(2, 3))],
    )


@program("branch_on_length_multiple", kind="branches")
def _():
    def f(x):
        rest = x.shape[-1] % 4
        if rest:
            x = F.pad(x, (0, 4 - rest))
        return x.unflatten(-1, (-1, 4)).sum(-1)

    return Case(
        f,
        example=lambda: call(torch.randn(2, 8)),
        others=[lambda: call(torch.randn(2, 7)), lambda: call(torch.randn(3, 12))],
    )


@program("branch_on_empty", kind="branches")
def _():
    def f(x):
        if x.numel() == 0:
            return torch.zeros(())
        return x.max()

    return Case(
        f, example=lambda: call(torch.randn(3)), others=[lambda: call(torch.randn(0)), lambda: call(torch.randn(7))]
    )


@program("branch_on_sizes_of_two", kind="branches")
def _():
    def f(query, key):
        if query.size(1) > key.size(1):
            query, key = key, query
        return query.sum(1) - key.sum(1)

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3), torch.randn(2, 5)),
        others=[lambda: call(torch.randn(2, 6), torch.randn(2, 5)), lambda: call(torch.randn(2, 4), torch.randn(2, 4))],
    )


@program("branch_on_equal", kind="branches")
def _():
    def f(x, y):
        if torch.equal(x, y):
            return x
        return x + y

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2), torch.full((2,), 3.0)), lambda: call(torch.ones(3), torch.ones(3))],
    )


@program("branch_on_allclose", kind="branches")
def _():
    def f(x):
        normed = x.norm()
        if torch.allclose(normed, torch.ones_like(normed)):
            return x
        return x / normed

    return Case(f, example=lambda: call(torch.tensor([1.0, 0.0])), others=[lambda: call(torch.tensor([3.0, 4.0]))])


@program("match_on_shape", kind="branches")
def _():
    def f(x):
        match x.shape:
            case (n,):
                return x / n
            case (rows, columns) if rows == columns:
                return x.diagonal()
            case (rows, columns):
                return x.reshape(columns, rows)
            case _:
                return x.flatten()

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3)),
        others=[
            lambda: call(torch.randn(3, 3)),
            lambda: call(torch.randn(4)),
            lambda: call(torch.randn(2, 2, 2)),
            lambda: call(torch.randn(4, 2)),
        ],
    )


@program("early_return_on_norm", kind="branches")
def _():
    def f(gradient, limit=1.0):
        norm = gradient.norm()
        if norm <= limit:
            return gradient
        return gradient * (limit / norm)

    return Case(
        f,
        example=lambda: call(torch.tensor([0.3, 0.4])),
        others=[lambda: call(torch.tensor([3.0, 4.0])), lambda: call(torch.tensor([3.0, 4.0]), limit=10.0)],
    )


@program("nested_branches", kind="branches")
def _():
    def f(x):
        if x.mean() > 0:
            if x.max() > 2:
                return x.clamp(max=2)
            return x
        elif x.min() < -2:
            return x.clamp(min=-2)
        else:
            return -x

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 1.5])),
        others=[
            lambda: call(torch.tensor([1.0, 3.0])),
            lambda: call(torch.tensor([-1.0, -3.0])),
            lambda: call(torch.tensor([-1.0, 0.0])),
        ],
    )


@program("branch_on_is_nonzero", kind="branches")
def _():
    def f(x, flag):
        if torch.is_nonzero(flag):
            return x.exp()
        return x.neg()

    return Case(
        f,
        example=lambda: call(torch.randn(3), torch.tensor(True)),
        others=[lambda: call(torch.randn(3), torch.tensor(False)), lambda: call(torch.randn(2), torch.tensor(3))],
    )


@program("python_max_of_tensors", kind="branches")
def _():
    def f(x, y):
        larger = max(x, y)
        return larger * 10 + min(x, y)

    return Case(
        f,
        example=lambda: call(torch.tensor(2.0), torch.tensor(1.0)),
        others=[lambda: call(torch.tensor(1.0), torch.tensor(2.0))],
    )


@program("not_of_a_tensor", kind="branches")
def _():
    def f(x, mask):
        if not mask.any():
            return x.mean()
        return x[mask].mean()

    return Case(
        f,
        example=lambda: call(torch.arange(4.0), torch.tensor([True, False, True, False])),
        others=[
            lambda: call(torch.arange(4.0), torch.tensor([False] * 4)),
            lambda: call(torch.arange(4.0), torch.tensor([True] * 4)),
        ],
    )


@program("value_in_tensor", kind="branches")
def _():
    def f(tokens, stop):
        if stop in tokens:
            return tokens[:1]
        return tokens + 1

    return Case(
        f,
        example=lambda: call(torch.tensor([1, 2, 3]), 9),
        others=[lambda: call(torch.tensor([1, 9, 3]), 9), lambda: call(torch.tensor([1, 2, 3]), 2)],
    )


@program("assert_on_value", kind="branches")
def _():
    def f(x):
        assert x.min() >= 0, "the input must not be negative"
        return x.sqrt()

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(-torch.ones(2)), lambda: call(torch.ones(3) * 4)]
    )


@program("where_in_disguise", kind="branches")
def _():
    def f(x):
        return (x * 2, x / 2)[int(x.sum() > 0)]

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(-torch.ones(2))])


@program("chained_comparison", kind="branches")
def _():
    def f(x):
        if 0 < x.mean() < 1:
            return torch.logit(x.mean())
        return x.mean()

    return Case(
        f,
        example=lambda: call(torch.tensor([0.2, 0.6])),
        others=[lambda: call(torch.tensor([2.0, 3.0])), lambda: call(torch.tensor([-2.0, 1.0]))],
    )
