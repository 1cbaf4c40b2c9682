"""Views, writes in place, generators of random numbers, functions with a backward of their own, and torch.func."""

import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, jvp, vmap

from tests.footguns.ledger import Case, call, program


@program("view_written_after_a_branch", kind="memory_and_transforms")
def _():
    def f(x):
        view = x[1:] if x.sum() > 0 else x[:-1]
        view.mul_(3)
        return x.clone(), view

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0, 3.0])),
        others=[lambda: call(torch.tensor([-1.0, -2.0, -3.0])), lambda: call(torch.ones(5))],
        aliasing=True,
    )


@program("reshape_may_copy", kind="memory_and_transforms")
def _():
    def f(x):
        flat = x.reshape(-1)
        flat.add_(1)
        return x.sum(), flat

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(3, 2).t()), lambda: call(torch.ones(4, 1))],
        aliasing=True,
    )


@program("contiguous_may_copy", kind="memory_and_transforms")
def _():
    def f(x):
        y = x.contiguous()
        y.zero_()
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(3, 2).t()), lambda: call(torch.ones(1, 3))],
        aliasing=True,
    )


@program("to_may_be_the_same_tensor", kind="memory_and_transforms")
def _():
    def f(x):
        y = x.to(torch.float32)
        y += 1
        return x * 2, y

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2, dtype=torch.float64)), lambda: call(torch.ones(2, dtype=torch.int64))],
        aliasing=True,
    )


@program("two_arguments_that_overlap", kind="memory_and_transforms")
def _():
    def f(x, y):
        x.add_(1)
        return y * 2

    def overlapping():
        base = torch.ones(4)
        return call(base[:3], base[1:])

    def same():
        base = torch.ones(3)
        return call(base, base)

    return Case(f, example=lambda: call(torch.ones(3), torch.ones(3)), others=[overlapping, same])


@program("rows_written_in_a_loop", kind="memory_and_transforms")
def _():
    def f(x):
        out = torch.empty_like(x)
        for i in range(x.shape[0]):
            out[i] = x[i] * i if i % 2 else x[-1 - i]
        return out

    return Case(
        f,
        example=lambda: call(torch.arange(6.0).view(3, 2)),
        others=[lambda: call(torch.arange(10.0).view(5, 2)), lambda: call(torch.ones(1, 4))],
    )


@program("expanded_tensor_written", kind="memory_and_transforms")
def _():
    def f(x, rows):
        y = x.expand(rows, -1).clone()
        y[0] += 1
        return y, x

    return Case(
        f,
        example=lambda: call(torch.ones(1, 3), 2),
        others=[lambda: call(torch.ones(1, 3), 4), lambda: call(torch.ones(1, 5), 2)],
        aliasing=True,
    )


@program("out_argument_of_another_size", kind="memory_and_transforms")
def _():
    def f(x, out):
        torch.mul(x, 2, out=out)
        return out.sum()

    return Case(
        f,
        example=lambda: call(torch.ones(3), torch.zeros(3)),
        others=[lambda: call(torch.ones(3) * 4, torch.zeros(3)), lambda: call(torch.ones(2), torch.zeros(2))],
    )


@program("data_swapped_between_calls", kind="memory_and_transforms")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))
            self.register_buffer("average", torch.zeros(2))

        def forward(self, x):
            self.average.lerp_(x.mean(0), 0.5)
            self.weight.data = self.weight.data * 2
            return x * self.weight + self.average

    return Case(
        make=Model,
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2)), lambda: call(torch.zeros(2, 2))],
    )


@program("generator_given_and_forked", kind="memory_and_transforms")
def _():
    def f(x, generator):
        noise = torch.randn(x.shape, generator=generator)
        with torch.random.fork_rng():
            torch.manual_seed(int(x.shape[0]))
            other = torch.rand(2)
        return x + noise, other, torch.rand(1)

    def inputs(n, seed):
        return lambda: call(torch.zeros(n), torch.Generator().manual_seed(seed))

    return Case(f, example=inputs(3, 0), others=[inputs(3, 1), inputs(4, 0)])


@program("permutation_decides_the_order", kind="memory_and_transforms")
def _():
    def f(x):
        order = torch.randperm(x.shape[0])
        picked = [x[i] for i in order.tolist()]
        return torch.stack(picked), order[0].item()

    return Case(
        f,
        example=lambda: call(torch.arange(4.0)),
        others=[lambda: call(torch.arange(4.0)), lambda: call(torch.arange(6.0))],
    )


@program("dropout_by_hand_until_something_is_kept", kind="memory_and_transforms")
def _():
    def f(x):
        kept = torch.zeros(0)
        rounds = 0
        while kept.numel() == 0:
            kept = x[torch.rand(x.shape[0]) > 0.7]
            rounds += 1
        return kept.sum(), rounds

    return Case(
        f,
        example=lambda: call(torch.ones(3)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(1)), lambda: call(torch.ones(8))],
    )


@program("function_with_saved_number", kind="memory_and_transforms")
def _():
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            ctx.rows = x.shape[0]
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor * ctx.rows, None

    def f(x, factor):
        return Scale.apply(x, factor)

    def inputs(n, factor):
        return lambda: call(torch.ones(n, requires_grad=True), factor)

    return Case(f, example=inputs(2, 3.0), others=[inputs(2, 4.0), inputs(5, 3.0)], gradients=True)


@program("straight_through_with_a_branch", kind="memory_and_transforms")
def _():
    def f(x):
        hard = (x > 0).float()
        if x.abs().max() > 5:
            return hard
        return hard + x - x.detach()

    def inputs(scale):
        return lambda: call(
            (torch.tensor([1.0, -2.0]) * scale).requires_grad_(),
        )

    return Case(f, example=inputs(1), others=[inputs(9), inputs(-1)], gradients=True)


@program("gradient_inside_with_a_number", kind="memory_and_transforms")
def _():
    def f(x, power):
        return grad(lambda t: (t**power).sum())(x)

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0]), 2),
        others=[lambda: call(torch.tensor([1.0, 2.0]), 3), lambda: call(torch.ones(3), 2)],
    )


@program("vmap_over_a_list_of_models", kind="memory_and_transforms")
def _():
    def make():
        models = [nn.Linear(2, 1) for _ in range(3)]
        params, _ = torch.func.stack_module_state(models)
        base = nn.Linear(2, 1).to("meta")

        def f(x):
            return vmap(lambda p, one: functional_call(base, p, (one,)), in_dims=(0, None))(params, x)

        return f

    return Case(make=make, example=lambda: call(torch.ones(4, 2)), others=[lambda: call(torch.ones(2, 2) * 3)])


@program("jacobian_of_a_closure", kind="memory_and_transforms")
def _():
    def f(x, weight):
        def inner(t):
            return torch.tanh(weight @ t)

        return jacrev(inner)(x), jvp(inner, (x,), (torch.ones_like(x),))[1]

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(3, 2)),
        others=[lambda: call(torch.ones(2) * 0.5, torch.ones(2, 2)), lambda: call(torch.ones(3), torch.ones(1, 3))],
    )


@program("checkpoint_with_a_flag", kind="memory_and_transforms")
def _():
    from torch.utils.checkpoint import checkpoint

    def block(x, flag):
        return torch.sin(x) if flag else torch.cos(x)

    def f(x, flag):
        return checkpoint(block, x, flag, use_reentrant=False).sum()

    def inputs(flag):
        return lambda: call(torch.ones(2, requires_grad=True), flag)

    return Case(f, example=inputs(True), others=[inputs(False), inputs(True)], gradients=True)
