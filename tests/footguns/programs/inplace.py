"""In-place changes, views, aliases and `out=`: who sees the change, and when."""

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("input_changed_in_place", kind="inplace")
def _():
    def f(x):
        x.add_(1)
        return x * 2

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.zeros(3))])


@program("input_returned_after_change", kind="inplace")
def _():
    def f(x):
        return x.mul_(2)

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3))], aliasing=True)


@program("augmented_assignment_on_argument", kind="inplace")
def _():
    def f(x, y):
        x += y
        return x.sum()

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2), 5), lambda: call(torch.ones(2, 2), torch.ones(2))],
    )


@program("augmented_assignment_by_type", kind="inplace")
def _():
    def f(x, step):
        total = x
        total += step
        return total, x

    return Case(
        f,
        example=lambda: call(torch.ones(2), 1.0),
        others=[lambda: call(1.0, torch.ones(2)), lambda: call(torch.ones(2), torch.ones(2))],
        aliasing=True,
    )


@program("change_through_view", kind="inplace")
def _():
    def f(x):
        y = x.clone()
        row = y[0]
        row.fill_(9)
        return y

    return Case(f, example=lambda: call(torch.zeros(2, 2)), others=[lambda: call(torch.zeros(3, 2))])


@program("reshape_view_or_copy", kind="inplace")
def _():
    def f(x):
        flat = x.reshape(-1)
        flat[0] = 9.0
        return x.sum()

    return Case(
        f,
        example=lambda: call(torch.zeros(2, 3)),
        others=[lambda: call(torch.zeros(3, 2).T), lambda: call(torch.zeros(4))],
    )


@program("contiguous_alias_or_copy", kind="inplace")
def _():
    def f(x):
        y = x.contiguous()
        y.add_(1)
        return x

    return Case(f, example=lambda: call(torch.zeros(2, 3)), others=[lambda: call(torch.zeros(3, 2).T)], aliasing=True)


@program("to_alias_or_copy", kind="inplace")
def _():
    def f(x):
        y = x.to(torch.float32)
        y.zero_()
        return x, y

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2, dtype=torch.float64))], aliasing=True
    )


@program("overlapping_arguments", kind="inplace")
def _():
    def f(x, y):
        x.add_(1)
        return y * 2

    def overlapping():
        base = torch.ones(3)
        return call(base[:2], base[1:])

    return Case(f, example=lambda: call(torch.ones(2), torch.ones(2)), others=[overlapping])


@program("same_argument_twice", kind="inplace")
def _():
    def f(x, y):
        x.mul_(2)
        return x + y

    def same():
        tensor = torch.ones(2)
        return call(tensor, tensor)

    return Case(f, example=lambda: call(torch.ones(2), torch.ones(2)), others=[same])


@program("arguments_identical_check", kind="inplace")
def _():
    def f(query, key):
        if query is key:
            return (query * 2).sum()
        return (query - key).sum()

    def same():
        tensor = torch.ones(2)
        return call(tensor, tensor)

    return Case(f, example=same, others=[lambda: call(torch.ones(2), torch.zeros(2))])


@program("slice_assignment", kind="inplace")
def _():
    def f(x, start):
        x = x.clone()
        x[:, start:] = 0
        x[0, :start] = x[1, :start] * 2
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2, 4), 2),
        others=[lambda: call(torch.ones(2, 4), 1), lambda: call(torch.ones(3, 6), 5)],
    )


@program("mask_assignment", kind="inplace")
def _():
    def f(x):
        x[x < 0] = 0.0
        x[x > 1] = x[x > 1].sqrt()
        return x

    return Case(
        f,
        example=lambda: call(torch.tensor([-1.0, 4.0])),
        others=[lambda: call(torch.tensor([4.0, 9.0, -1.0]))],
        aliasing=True,
    )


@program("index_assignment_in_loop", kind="inplace")
def _():
    def f(x):
        out = torch.empty_like(x)
        for i in range(len(x)):
            out[i] = x[: i + 1].sum()
        return out

    return Case(f, example=lambda: call(torch.ones(3)), others=[lambda: call(torch.ones(5))])


@program("out_argument", kind="inplace")
def _():
    def f(x, y, out):
        torch.add(x, y, out=out)
        return out * 2

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2), torch.zeros(2)),
        others=[lambda: call(torch.ones(3), torch.ones(3) * 4, torch.zeros(3))],
    )


@program("out_argument_optional", kind="inplace")
def _():
    def f(x, out=None):
        return torch.exp(x, out=out)

    return Case(
        f,
        example=lambda: call(torch.zeros(2)),
        others=[lambda: call(torch.zeros(2), torch.ones(2)), lambda: call(torch.zeros(2), out=torch.ones(2))],
        aliasing=True,
    )


@program("out_is_an_input", kind="inplace")
def _():
    def f(x):
        torch.cumsum(x, 0, out=x)
        return x[-1]

    return Case(f, example=lambda: call(torch.ones(3)), others=[lambda: call(torch.ones(5))])


@program("dead_looking_write", kind="inplace")
def _():
    def f(x):
        y = x.clone()
        view = y[1:]
        view.add_(10)
        y.mul_(2)
        return y.sum()

    return Case(f, example=lambda: call(torch.ones(3)), others=[lambda: call(torch.ones(5))])


@program("constant_changed_in_place", kind="inplace")
def _():
    total = torch.zeros(2)

    def f(x):
        total.add_(x)
        return total.clone()

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 3)], state=lambda: total)


@program("scratch_buffer_reused", kind="inplace")
def _():
    scratch = torch.zeros(4)

    def f(x):
        scratch[: len(x)] = x
        return scratch * 2

    return Case(f, example=lambda: call(torch.ones(3)), others=[lambda: call(torch.ones(2) * 7)], state=lambda: scratch)


@program("data_attribute", kind="inplace")
def _():
    def f(x, y):
        x.data = y * 2
        return x + 1

    return Case(
        f, example=lambda: call(torch.ones(2), torch.ones(2)), others=[lambda: call(torch.ones(2), torch.ones(3))]
    )


@program("set_and_resize", kind="inplace")
def _():
    def f(x, n):
        y = torch.zeros(2)
        y.resize_(n).fill_(1)
        return y * x

    return Case(f, example=lambda: call(torch.tensor(3.0), 4), others=[lambda: call(torch.tensor(3.0), 6)])


@program("transposed_in_place", kind="inplace")
def _():
    def f(x):
        x.t_()
        x.unsqueeze_(0)
        return x.shape[-1]

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(4, 5))])


@program("expand_then_write", kind="inplace")
def _():
    def f(x):
        wide = x.expand(2, -1).clone()
        wide[0] += 1
        return wide, x

    return Case(
        f,
        example=lambda: call(torch.ones(1, 3)),
        others=[lambda: call(torch.ones(1, 5)), lambda: call(torch.ones(2, 3))],
        aliasing=True,
    )


@program("in_place_activation", kind="inplace")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU(inplace=True)

        def forward(self, x):
            skip = x
            return self.act(x) + skip

    return Case(
        Model(), example=lambda: call(torch.tensor([-1.0, 1.0])), others=[lambda: call(torch.tensor([-3.0, -1.0, 2.0]))]
    )


@program("swap_by_copy", kind="inplace")
def _():
    def f(a, b):
        kept = a.clone()
        a.copy_(b)
        b.copy_(kept)

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.zeros(2)),
        others=[lambda: call(torch.ones(3) * 2, torch.ones(1, 3))],
    )


@program("detach_shares", kind="inplace")
def _():
    def f(x):
        y = x * 2
        y.detach().add_(5)
        return y

    return Case(
        f,
        example=lambda: call(torch.ones(2, requires_grad=True)),
        others=[lambda: call(torch.ones(3, requires_grad=True))],
        gradients=True,
    )


@program("scatter_duplicate_indices", kind="inplace")
def _():
    def f(x, index):
        out = torch.zeros(int(index.max()) + 1)
        out.scatter_add_(0, index, x)
        return out

    return Case(
        f,
        example=lambda: call(torch.ones(3), torch.tensor([0, 1, 1])),
        others=[
            lambda: call(torch.ones(3), torch.tensor([0, 4, 4])),
            lambda: call(torch.ones(2), torch.tensor([0, 0])),
        ],
    )


@program("version_of_a_tensor", kind="inplace")
def _():
    def f(x):
        before = x._version
        if x.sum() > 0:
            x.add_(1)
        return x._version - before

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(-torch.ones(2))])
