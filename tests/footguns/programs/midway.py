"""Errors midway, and which object is which: what a call has done before an error, tensors given back or given twice, in
sets and as keys, queues that hold more or less."""

import collections

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program

THREE = [lambda: call(torch.tensor([1.0, 2.0, 3.0])), lambda: call(torch.tensor([4.0, 5.0, 6.0]))]
TOO_SHORT = lambda: call(torch.tensor([1.0, 2.0]))  # noqa: E731, a builder of inputs like the others


def _twice():
    x = torch.tensor([1.0, 2.0, 3.0])
    return call(x, x)


DIFFERENT = lambda: call(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0]))  # noqa: E731


@program("error_after_a_write_to_an_argument", kind="midway")
def _():
    counts = {"calls": 0}
    weight = torch.ones(3)

    def f(x):
        counts["calls"] += 1
        x.add_(1)
        return x + weight

    return Case(f, example=THREE[0], others=[TOO_SHORT, THREE[1], TOO_SHORT], state=lambda: counts)


@program("error_after_a_write_to_a_buffer", kind="midway")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)
            self.register_buffer("total", torch.zeros(()))
            self.calls = 0

        def forward(self, x):
            self.total += x.sum()
            self.calls += 1
            return self.layer(x)

    return Case(Model(), example=THREE[0], others=[TOO_SHORT, THREE[1]], state=lambda m: m.calls)


@program("error_after_a_draw", kind="midway")
def _():
    calls = []
    weight = torch.ones(3)

    def f(x):
        calls.append(1)
        return (x + torch.rand(())) * weight

    return Case(f, example=THREE[0], others=[TOO_SHORT, THREE[1]], state=lambda: calls)


@program("error_on_one_side_after_a_write", kind="midway")
def _():
    counts = {"calls": 0}
    weight = torch.ones(3)

    def f(x):
        counts["calls"] += 1
        x.mul_(2)
        if x.sum() > 0:
            counts["calls"] += 10
            x += 1
            return x + weight
        return x

    return Case(
        f,
        example=THREE[0],
        others=[TOO_SHORT, lambda: call(-torch.ones(2)), THREE[1]],
        state=lambda: counts,
    )


@program("error_in_a_round_of_a_loop", kind="midway")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(4, 3)
            self.register_buffer("total", torch.zeros(3))
            self.rounds = 0

        def forward(self, x, place):
            while x.sum() > 0:
                self.rounds += 1
                self.total += x
                x = x - self.table(place) ** 2 - 1
                place = place + 1
            return x * self.rounds

    return Case(
        Model(),
        example=lambda: call(torch.ones(3), torch.tensor(0)),
        others=[lambda: call(torch.ones(3) * 9, torch.tensor(3)), lambda: call(torch.ones(3), torch.tensor(1))],
        state=lambda m: m.rounds,
    )


@program("error_caught_after_a_write", kind="midway")
def _():
    weight = torch.ones(3)

    def f(x):
        x.add_(1)
        try:
            return x + weight
        except RuntimeError:
            return x

    return Case(f, example=THREE[0], others=[TOO_SHORT, THREE[1]])


@program("tensors_in_a_set", kind="midway")
def _():
    return Case(lambda a, b: a * len({a, b}), example=DIFFERENT, others=[_twice])


@program("tensors_as_keys", kind="midway")
def _():
    def f(a, b):
        places = {a: 1, b: 2}
        return a * places[a] + len(places)

    return Case(f, example=DIFFERENT, others=[_twice])


@program("contiguous_gives_the_same_tensor", kind="midway")
def _():
    def f(x):
        y = x.contiguous()
        return y + (1 if y is x else 2)

    return Case(
        f,
        example=lambda: call(torch.arange(6.0).reshape(2, 3)),
        others=[lambda: call(torch.arange(6.0).reshape(3, 2).t()), lambda: call(torch.arange(4.0).reshape(2, 2))],
    )


@program("cast_gives_the_same_tensor", kind="midway")
def _():
    def f(x):
        y = x.float()
        y.add_(1)
        return x * 1.0, y is x

    return Case(
        f,
        example=lambda: call(torch.ones(3, dtype=torch.float64)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(3, dtype=torch.int64))],
    )


@program("queue_of_another_length", kind="midway")
def _():
    def f(recent, x):
        recent.append(x)
        return torch.stack(list(recent)).sum(), len(recent)

    return Case(
        f,
        example=lambda: call(collections.deque([torch.ones(1)], maxlen=1), torch.ones(1) * 2),
        others=[
            lambda: call(collections.deque([torch.ones(1)], maxlen=3), torch.ones(1) * 2),
            lambda: call(collections.deque([torch.ones(1)]), torch.ones(1) * 2),
        ],
    )


@program("dict_with_another_default", kind="midway")
def _():
    def f(table, x):
        return x * table["missing"] + len(table)

    return Case(
        f,
        example=lambda: call(collections.defaultdict(int), torch.ones(2)),
        others=[lambda: call(collections.defaultdict(lambda: 3), torch.ones(2))],
    )


@program("power_with_a_modulus", kind="midway")
def _():
    return Case(
        lambda x: (x * pow(x.shape[0], 2, 5), divmod(17, x.shape[0])),
        example=THREE[0],
        others=[TOO_SHORT, lambda: call(torch.ones(4))],
    )


@program("truth_of_an_object_around_a_tensor", kind="midway")
def _():
    class Wrapped:
        def __init__(self, value):
            self.value = value

        def __bool__(self):
            return bool(self.value.sum() > 0)

        def __len__(self):
            return self.value.shape[0]

    def f(x):
        wrapped = Wrapped(x)
        return x * 2 if wrapped else -x, len(wrapped)

    return Case(f, example=THREE[0], others=[lambda: call(-torch.ones(3)), lambda: call(-torch.ones(2))])
