"""What a program holds under another name, or finds in another place: autograd functions kept as ``Own.apply``,
generators in attributes, numbers of tensors among the keys of a dict, divisors that may be zero, earlier captures."""

import functools
import threading

import torch
from torch import nn

import clew
from tests.footguns.ledger import Case, call, program


class AtLeast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, least):
        ctx.save_for_backward(x)
        ctx.least = least
        return x.clamp(min=least)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x > ctx.least) * 10, None


at_least = AtLeast.apply
TABLE = {"at_least": AtLeast.apply}
EARLIER = {}


def leaf(*values):
    return lambda: call(torch.tensor(values, requires_grad=True))


ROWS = [lambda: call(torch.ones(2, 3)), lambda: call(torch.ones(4, 3) * 2)]


@program("own_backward_under_another_name", kind="under_other_names")
def _():
    def f(x):
        return at_least(x, 0.5) + TABLE["at_least"](x, 0.1)

    return Case(f, example=leaf(1.0, 0.3), others=[leaf(0.2, 0.0, 4.0)], gradients=True)


@program("own_backward_in_an_attribute", kind="under_other_names")
def _():
    class Model(nn.Module):
        def __init__(self, activation):
            super().__init__()
            self.activation = activation

        def forward(self, x):
            return self.activation(x, 0.5).sum()

    return Case(make=lambda: Model(AtLeast.apply), example=leaf(1.0, 0.3), others=[leaf(0.2, 0.0, 4.0)], gradients=True)


@program("own_backward_in_a_closure_and_a_partial", kind="under_other_names")
def _():
    apply = AtLeast.apply
    bound = functools.partial(AtLeast.apply)

    def f(x, fall_back=AtLeast.apply):
        return functools.reduce(lambda found, one: one(found, 0.5), [apply, bound, fall_back], x)

    return Case(f, example=leaf(1.0, 0.3), others=[leaf(0.2, 0.0, 4.0)], gradients=True)


@program("own_backward_of_an_earlier_capture", kind="under_other_names")
def _():
    EARLIER["own"] = clew.trace(lambda x: at_least(x, 0.5) * 2, (torch.ones(2, requires_grad=True),))

    def f(x):
        return EARLIER["own"](x) + 1

    return Case(f, example=leaf(1.0, 0.3), others=[leaf(0.2, 4.0)], gradients=True)


@program("earlier_capture_that_counts", kind="under_other_names")
def _():
    counts = {"calls": 0}
    history = []

    def step(x):
        counts["calls"] += 1
        history.append(counts["calls"])
        return x * counts["calls"]

    EARLIER["step"] = clew.trace(step, (torch.ones(2),))

    def f(x):
        return EARLIER["step"](x) + len(history)

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 3), lambda: call(torch.ones(2))],
        state=lambda: (counts, history),
    )


@program("generator_in_an_attribute", kind="under_other_names")
def _():
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.generator = torch.Generator().manual_seed(3)
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            kept = torch.empty_like(x).bernoulli_(0.5, generator=self.generator)
            return self.layer(x * kept) + torch.rand(3, generator=self.generator)

    return Case(make=Noisy, example=ROWS[0], others=[ROWS[1], ROWS[0]])


@program("size_beside_a_key_that_it_equals", kind="under_other_names")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.ranks = {2: 2}
            self.shapes = {(2, 3): 1}

        def forward(self, x):
            if self.training:
                self.ranks[x.shape[0]] = x.ndim
                self.shapes[x.shape] = 1
            return x + 1

    return Case(
        make=Model,
        example=ROWS[0],
        others=[ROWS[1], ROWS[0]],
        state=lambda model: (model.ranks, model.shapes),
    )


@program("divisor_of_a_guard_is_zero", kind="under_other_names")
def _():
    def f(x, size):
        rows = [x[first : first + size].sum(0) for first in range(0, len(x), size)]
        return torch.stack(rows) if -(-len(x) // size) == 3 else x

    return Case(
        f,
        example=lambda: call(torch.ones(6, 2), 2),
        others=[
            lambda: call(torch.ones(6, 2), 0),
            lambda: call(torch.ones(5, 2), 2),
            lambda: call(torch.ones(6, 2), 3),
        ],
    )


@program("compiled_part_of_a_model", kind="under_other_names")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))

        def forward(self, x):
            return self.part(x) * 2

    return Case(
        make=Model,
        example=ROWS[0],
        others=[ROWS[1], ROWS[0]],
        state=lambda model: model.part.state_dict(),
        gradients=True,
    )


@program("compiled_module_around_the_program", kind="under_other_names")
def _():
    part = torch.jit.script(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)))
    held = [part]

    def f(x):
        return held[0](x) * 2

    return Case(f, example=ROWS[0], others=[ROWS[1], ROWS[0]], state=lambda: part.state_dict())


@program("module_that_returns_a_part", kind="under_other_names")
def _():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return x * self.calls

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.scaled = nn.Linear(3, 3), Scaled()

        def forward(self, x):
            return self.scaled(self.layer(x)), self.scaled, self.layer

    return Case(make=Model, example=ROWS[0], others=[ROWS[1], ROWS[0]])


@program("rows_that_are_done_are_passed_over", kind="under_other_names")
def _():
    def f(rows, end=0):
        found, done = [[1], [2]], [False] * 2
        for row in rows:
            for place, token in enumerate(row.tolist()):
                if done[place]:
                    continue
                found[place].append(token)
                if token == end:
                    done[place] = True
            if all(done):
                break
        return found, done

    return Case(
        f,
        example=lambda: call(torch.tensor([[1, 2], [2, 1], [1, 1]])),
        others=[
            lambda: call(torch.tensor([[0, 1]] * 3)),
            lambda: call(torch.tensor([[0, 1], [2, 0], [2, 2]])),
            lambda: call(torch.tensor([[1, 2], [0, 0], [2, 2]])),
            lambda: call(torch.tensor([[1, 0], [2, 2], [2, 2]]), 2),
        ],
    )


@program("best_of_all_calls_is_kept", kind="under_other_names")
def _():
    best = [100.0, torch.ones(3)]

    def f(x):
        score = x.sum().item()
        if score > best[0]:
            best[0], best[1] = score, x.clone()
        return x - best[1].mean()

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0, 3.0])),
        others=[lambda: call(torch.tensor([100.0, 200.0, 300.0])), lambda: call(torch.tensor([1.0, 2.0, 3.0]))],
        state=lambda: best,
    )


@torch.library.custom_op("clew_ledger::count_up", mutates_args={"x"})
def count_up(x: torch.Tensor) -> None:
    x.add_(1)


@program("operator_of_the_user_writes", kind="under_other_names")
def _():
    total = torch.zeros(3)

    def f(x):
        count_up(x)
        torch.ops.clew_ledger.count_up(total)
        return x * 2 + total

    return Case(
        f,
        example=lambda: call(torch.ones(3)),
        others=[lambda: call(torch.zeros(3)), lambda: call(torch.ones(2, 3))],
        state=lambda: total,
    )


@program("values_of_a_thread_in_a_module", kind="under_other_names")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.own = threading.local()
            self.own.calls = 0

        def forward(self, x):
            self.own.calls += 1
            return x * self.own.calls

    return Case(make=Model, example=ROWS[0], others=[ROWS[1], ROWS[0]], state=lambda model: model.own.calls)
