"""Functions handed to torch and run by it: their closures, their branches, the tensors that they write to and keep."""

import functools
import random
import time

import numpy as np
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.footguns.ledger import Case, call, program


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@program("checkpoint_closure", kind="higher_order")
def _():
    def f(x, scale, power):
        size = x.shape[0]
        hidden = x * scale
        return checkpoint(lambda part: part.sin() * scale**power + size + hidden, x, use_reentrant=False)

    return Case(
        f,
        example=lambda: call(leaf(1.0, 2.0), torch.ones(2), 2),
        others=[
            lambda: call(leaf(1.0, 2.0), torch.ones(2) * 3, 3),
            lambda: call(leaf(1.0, 2.0, 3.0), torch.ones(3), 2),
        ],
        gradients=True,
    )


@program("checkpoint_reentrant_closure", kind="higher_order")
def _():
    weight = leaf(2.0)

    def f(x):
        hidden = x * 2
        return checkpoint(lambda part: part * weight + hidden, x, use_reentrant=True)

    return Case(
        f,
        example=lambda: call(leaf(1.0, 2.0)),
        others=[lambda: call(leaf(5.0)), lambda: call(torch.ones(2))],
        gradients=True,
        state=lambda: weight.grad,
    )


@program("checkpoint_counts_twice", kind="higher_order")
def _():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            return checkpoint(lambda part: self.norm(self.layer(part)), x, use_reentrant=False)

    return Case(
        make=Block,
        example=lambda: call(torch.ones(3, 2, requires_grad=True)),
        others=[lambda: call(torch.ones(4, 2) * 3)],
        gradients=True,
    )


@program("checkpoint_under_dropout", kind="higher_order")
def _():
    def f(x, p):
        return checkpoint(lambda part: nn.functional.dropout(part, 0.5) * p, x, use_reentrant=False)

    return Case(
        f, example=lambda: call(leaf(*[1.0] * 8), 1.0), others=[lambda: call(leaf(*[2.0] * 9), 3.0)], gradients=True
    )


@program("vmap_reads_around_itself", kind="higher_order")
def _():
    def f(x, table):
        limit = table.shape[0]
        return torch.vmap(lambda index: table[index] * limit)(x)

    return Case(
        f,
        example=lambda: call(torch.tensor([0, 1]), torch.ones(2)),
        others=[
            lambda: call(torch.tensor([2, 1, 0]), torch.arange(3.0)),
            lambda: call(torch.tensor([0]), -torch.ones(2)),
        ],
    )


@program("vmap_branches_on_size", kind="higher_order")
def _():
    def f(x):
        return torch.vmap(lambda row: row.sum() if row.shape[0] > 2 else row.prod())(x)

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(2, 2) * 3)])


@program("vmap_writes_to_its_input", kind="higher_order")
def _():
    def f(x):
        torch.vmap(lambda row: row.mul_(2))(x)
        return x.sum()

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(4, 2) * 5)])


@program("vmap_with_randomness", kind="higher_order")
def _():
    def f(x):
        return torch.vmap(lambda row: row + torch.rand(row.shape), randomness="different")(x)

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(5, 2))])


@program("value_kept_by_a_mapped_function", kind="higher_order")
def _():
    def f(x):
        kept = []
        torch.vmap(lambda row: kept.append(row.shape[0]) or row)(x)
        return x * kept[0]

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(2, 5))])


@program("grad_branches_on_values", kind="higher_order")
def _():
    def f(x):
        return torch.func.grad(lambda part: (part**2).sum() if part.sum() > 0 else part.sum())(x)

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(-torch.ones(2)), lambda: call(torch.ones(3))]
    )


@program("vjp_function_used_twice", kind="higher_order")
def _():
    def f(x, y):
        out, pull = torch.func.vjp(lambda part: part.sin() * y, x)
        return out, pull(y), pull(torch.ones_like(x))

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 3, torch.ones(2) * 2), lambda: call(torch.ones(3), torch.ones(3))],
    )


@program("functional_call_on_a_layer", kind="higher_order")
def _():
    class Fast(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x, rate):
            fast = {name: value - rate * value.sum() for name, value in self.layer.named_parameters()}
            return torch.func.functional_call(self.layer, fast, (x,))

    return Case(
        make=Fast,
        example=lambda: call(torch.ones(1, 2), 0.1),
        others=[lambda: call(torch.ones(3, 2), 0.5), lambda: call(torch.ones(3, 2), 0.0)],
        gradients=True,
    )


@program("cond_with_closures", kind="higher_order")
def _():
    def f(x, y):
        size = x.shape[0]
        return torch.cond(x.sum() > 0, lambda part: part * y, lambda part: part + size, (x,))

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2) * 3),
        others=[lambda: call(-torch.ones(2), torch.ones(2)), lambda: call(-torch.ones(3), torch.ones(3))],
    )


@program("hook_removed_again", kind="higher_order")
def _():
    def f(x, factor, keep):
        y = x * 2
        handle = y.register_hook(lambda gradient: gradient * factor)
        if not keep:
            handle.remove()
        return y * x

    return Case(
        f,
        example=lambda: call(leaf(1.0, 2.0), 3.0, False),
        others=[lambda: call(leaf(1.0), 3.0, True), lambda: call(leaf(1.0, 2.0), 7.0, False)],
        gradients=True,
    )


@program("gradient_set_to_none", kind="higher_order")
def _():
    def f(x, weight):
        weight.grad = None
        (x * weight).sum().backward()
        gradient = weight.grad
        weight.grad = None
        return gradient * 2

    return Case(
        f,
        example=lambda: call(torch.ones(2), leaf(1.0, 2.0)),
        others=[lambda: call(torch.ones(2) * 4, leaf(1.0, 2.0)), lambda: call(torch.ones(3), leaf(1.0, 2.0, 3.0))],
    )


@program("asks_after_backward", kind="higher_order")
def _():
    def f(x, weight):
        loss = (x * weight).sum()
        loss.backward()
        return weight.grad * 2 if loss > 3 else weight.grad.clone()

    return Case(
        f,
        example=lambda: call(torch.ones(2), leaf(1.0, 2.0)),
        others=[lambda: call(torch.ones(2) * 4, leaf(1.0, 2.0)), lambda: call(torch.ones(2), leaf(3.0, 2.0))],
    )


@program("asks_after_hooking_its_argument", kind="higher_order")
def _():
    def f(x):
        x.register_hook(lambda gradient: gradient * 2)
        return x * 2 if x.sum() > 0 else x * 3

    return Case(f, example=lambda: call(leaf(1.0)), others=[lambda: call(leaf(-1.0))], gradients=True)


@program("asks_after_transposing_its_argument", kind="higher_order")
def _():
    def f(x):
        x.t_()
        return x * 2 if x.sum() > 0 else x * 3

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(-torch.ones(2, 3))])


@program("checkpoint_asks_after_writing", kind="higher_order")
def _():
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            hidden = checkpoint(lambda part: self.norm(part), x, use_reentrant=False)
            return hidden * 2 if x.sum() > 0 else hidden

    return Case(
        make=Norm,
        example=lambda: call(torch.rand(3, 2)),
        others=[lambda: call(-torch.rand(3, 2)), lambda: call(torch.rand(4, 2))],
    )


@program("gradient_present_or_not", kind="higher_order")
def _():
    def with_gradient():
        weight = leaf(1.0)
        weight.grad = torch.ones(1) * 5
        return weight

    def f(weight):
        return weight * 2 if weight.grad is None else weight * weight.grad

    return Case(f, example=lambda: call(leaf(1.0)), others=[lambda: call(with_gradient())])


@program("shape_asked_before_it_changes", kind="higher_order")
def _():
    def f(x):
        y = x.clone()
        before = y.shape
        y.t_()
        return y * before[0] + y.shape[0]

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(4, 5))])


@program("shape_asked_before_a_write_and_a_change", kind="higher_order")
def _():
    def f(x):
        y = x.clone()
        before = y.shape
        y.add_(1)
        torch.vmap(lambda row: row * row.shape[0])(y)
        y.t_()
        return y * before[0], before

    return Case(f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(4, 5))])


@program("cached_table", kind="higher_order")
def _():
    @functools.lru_cache
    def table(size):
        return torch.arange(size) * 2.0

    table(3)

    def f(x):
        return x + table(x.shape[0])

    return Case(f, example=lambda: call(torch.ones(3)), others=[lambda: call(torch.ones(5))])


@program("cached_noise", kind="higher_order")
def _():
    @functools.lru_cache
    def noise(size):
        return torch.rand(size)

    def f(x):
        return x + noise(2)

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 2)])


@program("cached_table_written_to", kind="higher_order")
def _():
    @functools.lru_cache
    def table(size):
        return torch.zeros(size)

    def f(x):
        return table(2).add_(x).clone()

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 2)])


@program("cached_by_weight", kind="higher_order")
def _():
    weight = torch.ones(2)

    @functools.lru_cache
    def scaled(factor):
        return weight * factor

    def f(x):
        return x + scaled(3)

    def change(_):
        weight.add_(1)

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2))], between={"other 1": change}
    )


@program("draws_of_three_kinds", kind="higher_order")
def _():
    def f(x):
        return x * random.uniform(0, x.shape[0]) + np.random.normal() + torch.rand(())

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(4))])


@program("draw_seeded_inside", kind="higher_order")
def _():
    def f(x, seed):
        random.seed(seed)
        return x * random.random() + random.gauss(0, 1)

    return Case(f, example=lambda: call(torch.ones(2), 1), others=[lambda: call(torch.ones(2), 2)])


@program("reads_a_clock", kind="higher_order")
def _():
    def f(x):
        started = time.perf_counter()
        y = x * 2
        late = time.perf_counter() - started > 1e6
        return -y if late else y

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3))])


@program("clock_in_the_result", kind="higher_order")
def _():
    def f(x):
        return x, time.time() > 1, time.time_ns() // 10**30

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3))])


class Collecting(torch.autograd.Function):
    @staticmethod
    def forward(context, x, found, table):
        found.append(x.sum() * x.shape[0])
        table["double"] = x * 2
        return x * 3

    @staticmethod
    def backward(context, gradient):
        return gradient * 3, None, None


@program("function_that_fills_containers", kind="higher_order")
def _():
    def f(x):
        found, table = [], {}
        y = Collecting.apply(x, found, table)
        return y, found, table

    return Case(f, example=lambda: call(leaf(1.0, 2.0)), others=[lambda: call(leaf(1.0, 2.0, 4.0))])


@program("function_that_fills_containers_without_gradients", kind="higher_order")
def _():
    def f(x):
        found, table = [], {}
        with torch.no_grad():
            y = Collecting.apply(x, found, table)
        return y, found, table

    return Case(f, example=lambda: call(leaf(1.0, 2.0)), others=[lambda: call(leaf(1.0, 2.0, 4.0))])


@program("cache_keyed_by_an_input", kind="higher_order")
def _():
    @functools.lru_cache
    def doubled(x):
        return x * 2

    held = torch.ones(2)

    def f(x):
        return doubled(x) + 1

    def change(_):
        held.add_(1)

    return Case(f, example=lambda: call(held), others=[lambda: call(held)], between={"other 1": change})


@program("cache_keyed_by_what_may_be_an_input", kind="higher_order")
def _():
    @functools.lru_cache
    def doubled(x, shape):
        return x * 2 + shape[0]

    def f(x):
        y = x.contiguous()
        first = doubled(y, x.shape)
        y.add_(1)
        return first + doubled(y, x.shape)

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3).t()),
        others=[lambda: call(torch.ones(3, 2)), lambda: call(torch.ones(4, 2))],
    )
