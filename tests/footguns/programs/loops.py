"""Loops and recursion whose number of rounds hangs on an argument, a size or a value."""

import functools
import itertools

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("loop_over_range_of_argument", kind="loops")
def _():
    def f(x, steps):
        for _ in range(steps):
            x = x * 0.5 + 1
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2), 3),
        others=[lambda: call(torch.ones(2), 5), lambda: call(torch.ones(2), 0)],
    )


@program("loop_over_rows", kind="loops")
def _():
    def f(x):
        total = torch.zeros(x.shape[1])
        for row in x:
            total = total * 0.5 + row
        return total

    return Case(
        f,
        example=lambda: call(torch.randn(3, 2)),
        others=[lambda: call(torch.randn(5, 2)), lambda: call(torch.randn(1, 4))],
    )


@program("loop_over_time_steps", kind="loops")
def _():
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(3, 4)

        def forward(self, x):
            state = x.new_zeros(x.size(0), 4)
            states = []
            for step in range(x.size(1)):
                state = self.cell(x[:, step], state)
                states.append(state)
            return torch.stack(states, 1)

    return Case(
        Cell(),
        example=lambda: call(torch.randn(2, 3, 3)),
        others=[lambda: call(torch.randn(2, 5, 3)), lambda: call(torch.randn(1, 1, 3))],
    )


@program("while_until_converged", kind="loops")
def _():
    def f(a):
        x = a.clone()
        while (x * x - a).abs().max() > 1e-4:
            x = 0.5 * (x + a / x)
        return x

    return Case(
        f,
        example=lambda: call(torch.tensor([4.0])),
        others=[lambda: call(torch.tensor([400.0])), lambda: call(torch.tensor([1.0]))],
    )


@program("while_with_counter_result", kind="loops")
def _():
    def f(x):
        rounds = 0
        while x.norm() > 1:
            x = x / 2
            rounds += 1
        return x, rounds

    return Case(
        f,
        example=lambda: call(torch.tensor([8.0])),
        others=[lambda: call(torch.tensor([1000.0])), lambda: call(torch.tensor([0.5]))],
    )


@program("for_with_break", kind="loops")
def _():
    def f(x):
        for index in range(10):
            x = x * 2
            if x.sum() > 100:
                break
        return x, index

    return Case(
        f, example=lambda: call(torch.ones(3)), others=[lambda: call(torch.ones(3) * 20), lambda: call(-torch.ones(3))]
    )


@program("for_else", kind="loops")
def _():
    def f(values, wanted):
        for index, value in enumerate(values):
            if value == wanted:
                found = index
                break
        else:
            found = -1
        return values * found

    return Case(
        f,
        example=lambda: call(torch.tensor([1, 2, 3]), torch.tensor(2)),
        others=[
            lambda: call(torch.tensor([1, 2, 3]), torch.tensor(7)),
            lambda: call(torch.tensor([1, 2, 3]), torch.tensor(3)),
        ],
    )


@program("for_with_continue", kind="loops")
def _():
    def f(x):
        kept = []
        for value in x.unbind():
            if value < 0:
                continue
            kept.append(value * 2)
        return torch.stack(kept) if kept else torch.empty(0)

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, -1.0, 2.0])),
        others=[lambda: call(torch.tensor([-1.0, 1.0, 2.0])), lambda: call(torch.tensor([-1.0]))],
    )


@program("recursion_on_length", kind="loops")
def _():
    def total(x):
        if len(x) == 1:
            return x[0]
        half = len(x) // 2
        return total(x[:half]) - 2 * total(x[half:])

    return Case(
        total, example=lambda: call(torch.randn(4)), others=[lambda: call(torch.randn(7)), lambda: call(torch.randn(1))]
    )


@program("recursion_on_value", kind="loops")
def _():
    def collatz(n, steps=0):
        if n.item() == 1:
            return torch.tensor(steps)
        return collatz(n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1)

    return Case(
        collatz,
        example=lambda: call(torch.tensor(4)),
        others=[lambda: call(torch.tensor(6)), lambda: call(torch.tensor(1))],
    )


@program("loop_over_zip", kind="loops")
def _():
    def f(x, scales):
        out = []
        for row, scale in zip(x, scales):
            out.append(row * scale)
        return torch.stack(out)

    return Case(
        f,
        example=lambda: call(torch.randn(3, 2), [1.0, 2.0, 3.0]),
        others=[lambda: call(torch.randn(3, 2), [1.0, 2.0]), lambda: call(torch.randn(2, 2), [5.0, 6.0, 7.0])],
    )


@program("loop_over_chunks", kind="loops")
def _():
    def f(x, size=2):
        return [chunk.mean() for chunk in x.split(size)]

    return Case(
        f,
        example=lambda: call(torch.randn(4)),
        others=[lambda: call(torch.randn(7)), lambda: call(torch.randn(4), size=4)],
    )


@program("loop_over_halves", kind="loops")
def _():
    def f(x):
        while x.shape[-1] > 1:
            if x.shape[-1] % 2:
                x = torch.cat([x, x[..., -1:]], -1)
            x = x[..., ::2] + x[..., 1::2]
        return x.squeeze(-1)

    return Case(
        f,
        example=lambda: call(torch.randn(2, 8)),
        others=[lambda: call(torch.randn(2, 5)), lambda: call(torch.randn(2, 16))],
    )


@program("loop_over_module_list_slice", kind="loops")
def _():
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

        def forward(self, x, depth=4):
            for layer in self.layers[:depth]:
                x = layer(x).relu()
            return x

    return Case(
        Stack(),
        example=lambda: call(torch.randn(2, 3)),
        others=[lambda: call(torch.randn(2, 3), depth=2), lambda: call(torch.randn(5, 3), 1)],
    )


@program("early_exit", kind="loops")
def _():
    class EarlyExit(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

        def forward(self, x):
            for depth, layer in enumerate(self.layers):
                x = layer(x)
                if x.abs().max() < 1.0:
                    return x, depth
            return x, len(self.layers)

    return Case(
        EarlyExit(),
        example=lambda: call(torch.ones(1, 3) * 0.1),
        others=[lambda: call(torch.ones(1, 3) * 50), lambda: call(torch.ones(1, 3) * 3)],
    )


@program("reduce_over_arguments", kind="loops")
def _():
    def f(*tensors):
        return functools.reduce(lambda a, b: a * 2 + b, tensors)

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2), torch.ones(2), torch.ones(2)), lambda: call(torch.ones(2))],
    )


@program("pairs_of_rows", kind="loops")
def _():
    def f(x):
        distances = [(a - b).norm() for a, b in itertools.combinations(x, 2)]
        return torch.stack(distances)

    return Case(
        f,
        example=lambda: call(torch.randn(3, 2)),
        others=[lambda: call(torch.randn(4, 2)), lambda: call(torch.randn(2, 5))],
    )


@program("greedy_decoding", kind="loops")
def _():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.tensor([[0.0, 9, 0, 0], [0, 0, 9, 0], [0, 0, 0, 9], [9, 0, 0, 0]]))

        def forward(self, token, longest=8):
            tokens = [token]
            while tokens[-1].item() != 3 and len(tokens) < longest:
                tokens.append(self.table[tokens[-1]].argmax())
            return torch.stack(tokens)

    return Case(
        Decoder(),
        example=lambda: call(torch.tensor(1)),
        others=[lambda: call(torch.tensor(0)), lambda: call(torch.tensor(3)), lambda: call(torch.tensor(0), longest=2)],
    )


@program("bisection", kind="loops")
def _():
    def f(target, low=0.0, high=8.0):
        while high - low > 1e-3:
            middle = (low + high) / 2
            if middle * middle > target:
                high = middle
            else:
                low = middle
        return torch.as_tensor(middle)

    return Case(
        f,
        example=lambda: call(torch.tensor(2.0)),
        others=[lambda: call(torch.tensor(9.0)), lambda: call(torch.tensor(9.0), high=4.0)],
    )


@program("later_round_writes_another_argument", kind="loops")
def _():
    def fn(x, rows, others):
        for _ in rows:
            x[0] = 0.0
            x = others[0]
        return x

    return Case(
        fn,
        example=lambda: call(torch.ones(2), torch.ones(2, 3), [torch.ones(2)]),
        others=[lambda: call(torch.ones(2), torch.ones(1, 3), [torch.ones(2)])],
    )


@program("test_of_a_loop_is_a_list", kind="loops")
def _():
    def fn(x, items):
        turn = 0
        while turn < 3 and items:
            turn += 1
            if x.sum() > 0:
                x = x - 1
        return x

    def items(first):
        return [torch.tensor(first), torch.tensor(1.0)]

    return Case(
        fn,
        example=lambda: call(torch.ones(2), items(1.0)),
        others=[
            lambda: call(torch.ones(2), items(0.0)),
            lambda: call(torch.ones(2), [torch.ones(2), torch.ones(2)]),
            lambda: call(torch.ones(2), []),
        ],
    )
