"""Statements of Python that tracers tend to forget: match, walrus, finally, nonlocal, generators, text of sizes."""

import itertools

import torch

from tests.footguns.ledger import Case, call, program

COUNTER = 0
SEEN = []


def _reset():
    global COUNTER
    COUNTER = 0
    SEEN.clear()


@program("match_on_the_rank", kind="syntax")
def _():
    def f(x):
        match x.shape:
            case (n,):
                return x.sum() * n
            case (n, m) if n == m:
                return torch.trace(x) * n
            case (n, m):
                return x.mean(0) * m
            case _:
                return x.flatten()

    return Case(
        f,
        example=lambda: call(torch.ones(3, 4)),
        others=[lambda: call(torch.ones(3, 3)), lambda: call(torch.ones(5)), lambda: call(torch.ones(2, 6))],
    )


@program("match_on_a_dict", kind="syntax")
def _():
    def f(event):
        match event:
            case {"kind": "add", "value": value, **rest}:
                return value + len(rest)
            case {"kind": "scale", "value": value, "by": by}:
                return value * by
            case _:
                return None

    return Case(
        f,
        example=lambda: call({"kind": "add", "value": torch.ones(2)}),
        others=[
            lambda: call({"kind": "scale", "value": torch.ones(2), "by": 3.0}),
            lambda: call({"kind": "add", "value": torch.ones(2), "a": 1, "b": 2}),
            lambda: call({"kind": "none"}),
        ],
    )


@program("match_on_classes", kind="syntax")
def _():
    def f(x, how):
        match how:
            case bool():
                return x if how else -x
            case int(n) if n > 2:
                return x * n
            case int():
                return x + 1
            case float(v):
                return x - v
            case str() as s:
                return x * len(s)
            case [first, *rest]:
                return x + first + len(rest)
            case None:
                return x.abs()

    example = torch.tensor([1.0, -2.0])
    hows = (1, True, 2.5, "abc", [4, 5, 6], None, [1])
    return Case(
        f,
        example=lambda: call(example.clone(), 3),
        others=[lambda how=how: call(example.clone(), how) for how in hows],
    )


@program("walrus_in_a_condition", kind="syntax")
def _():
    def f(x):
        if (total := x.sum()) > 3 and (peak := x.max()) < 10:
            return total / peak
        return total

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 5.0])),
        others=[lambda: call(torch.tensor([1.0, 50.0])), lambda: call(torch.tensor([1.0, -5.0]))],
    )


@program("walrus_in_a_comprehension", kind="syntax")
def _():
    def f(x):
        last = None
        kept = [last := row * 2 for row in x if row.sum() > 0]
        return (torch.stack(kept) if kept else x), last

    return Case(
        f,
        example=lambda: call(torch.tensor([[1.0, 2.0], [-1.0, -2.0], [3.0, 1.0]])),
        others=[lambda: call(-torch.ones(2, 2)), lambda: call(torch.ones(4, 2))],
    )


@program("finally_counts_also_when_it_raises", kind="syntax")
def _():
    def f(x, y):
        global COUNTER
        try:
            SEEN.append(len(SEEN))
            return x @ y
        finally:
            COUNTER += 1

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3), torch.ones(3)),
        others=[lambda: call(torch.ones(2, 3), torch.ones(4)), lambda: call(torch.ones(1, 2), torch.ones(2))],
        state=lambda: (COUNTER, list(SEEN)),
        reset=_reset,
        same_text=False,
    )


@program("list_put_back_after_a_call_that_may_raise", kind="syntax")
def _():
    def f(x, stack):
        stack.append("inside")
        y = x.view(2, -1)
        stack.pop()
        return y.sum(1)

    return Case(
        f,
        example=lambda: call(torch.ones(4), ["outside"]),
        others=[lambda: call(torch.ones(3), ["outside"]), lambda: call(torch.ones(6), [])],
        same_text=False,
    )


@program("global_put_back_after_a_call_that_may_raise", kind="syntax")
def _():
    def f(x):
        global COUNTER
        COUNTER += 1
        y = x.reshape(2, -1)
        COUNTER -= 1
        return y.sum(1)

    return Case(
        f,
        example=lambda: call(torch.ones(4)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(6))],
        state=lambda: COUNTER,
        reset=_reset,
        same_text=False,
    )


@program("attribute_put_back_in_finally", kind="syntax")
def _():
    class Settings:
        def __init__(self):
            self.depth = 0

    def f(x, settings):
        settings.depth += 1
        try:
            return x.view(-1, 2) * settings.depth
        finally:
            settings.depth -= 1

    return Case(
        f,
        example=lambda: call(torch.ones(4), Settings()),
        others=[lambda: call(torch.ones(3), Settings()), lambda: call(torch.ones(8), Settings())],
        same_text=False,
    )


@program("nonlocal_counter_of_a_maker", kind="syntax")
def _():
    def maker():
        count = 0

        def f(x):
            nonlocal count
            count += 1
            return x * count if count % 2 else x + count

        return f

    return Case(make=maker, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2))] * 4)


@program("generator_with_send", kind="syntax")
def _():
    def running():
        total = 0.0
        while True:
            value = yield total
            total = total + value

    def f(x):
        accumulate = running()
        next(accumulate)
        out = [accumulate.send(row.sum()) for row in x]
        return torch.stack(out)

    return Case(
        f,
        example=lambda: call(torch.arange(6.0).view(3, 2)),
        others=[lambda: call(torch.arange(10.0).view(5, 2)), lambda: call(torch.ones(1, 3))],
    )


@program("generator_with_return_value", kind="syntax")
def _():
    def parts(x):
        for chunk in x.split(2):
            yield chunk.sum()
        return x.shape[0]

    def f(x):
        found = []

        def collect():
            n = yield from parts(x)
            found.append(n)

        sums = list(collect())
        return torch.stack(sums) * found[0]

    return Case(
        f,
        example=lambda: call(torch.arange(6.0)),
        others=[lambda: call(torch.arange(7.0)), lambda: call(torch.ones(2))],
    )


@program("text_made_of_sizes_chooses", kind="syntax")
def _():
    ways = {"2x3": lambda x: x.sum(), "3x3": lambda x: torch.trace(x)}

    def f(x):
        return ways.get(f"{x.shape[0]}x{x.shape[1]}", lambda x: x.mean())(x)

    return Case(
        f,
        example=lambda: call(torch.arange(6.0).view(2, 3)),
        others=[lambda: call(torch.arange(9.0).view(3, 3)), lambda: call(torch.ones(4, 5))],
    )


@program("text_of_a_value_is_returned", kind="syntax")
def _():
    def f(x):
        return f"{x.sum().item():.2f} of {x.shape[0]:>4} {x.dtype}", x * 2

    return Case(
        f,
        example=lambda: call(torch.ones(3)),
        others=[lambda: call(torch.ones(4) / 3), lambda: call(torch.ones(2, dtype=torch.int64))],
    )


@program("einsum_text_made_of_the_rank", kind="syntax")
def _():
    def f(x, y):
        letters = "abcdefgh"[: x.ndim]
        return torch.einsum(f"{letters},{letters[-1]}->{letters[:-1]}", x, y)

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3), torch.ones(3)),
        others=[lambda: call(torch.ones(2, 4, 3), torch.ones(3)), lambda: call(torch.ones(5), torch.ones(5))],
    )


@program("break_out_of_two_loops", kind="syntax")
def _():
    def f(x):
        steps = 0
        for row in x:
            for value in row:
                steps += 1
                if value > 4:
                    break
            else:
                continue
            break
        return x * steps, steps

    return Case(
        f,
        example=lambda: call(torch.arange(6.0).view(2, 3)),
        others=[lambda: call(torch.zeros(2, 3)), lambda: call(torch.ones(3, 2) * 9), lambda: call(torch.ones(1, 1))],
    )


@program("return_from_a_nested_loop", kind="syntax")
def _():
    def f(x, y):
        for i in range(x.shape[0]):
            for j in range(y.shape[0]):
                if (x[i] - y[j]).abs() < 0.1:
                    return i, j, x[i]
        return -1, -1, x.sum()

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0, 2.0])),
        others=[
            lambda: call(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([5.0, 3.0])),
            lambda: call(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([7.0, 8.0])),
            lambda: call(torch.tensor([1.0, 9.0]), torch.tensor([7.0, 8.0, 9.0])),
        ],
    )


@program("raise_inside_a_loop", kind="syntax")
def _():
    def f(x):
        total = torch.zeros(())
        for place, value in enumerate(x):
            if value < 0:
                raise ValueError(f"item {place} is negative")
            total = total + value.sqrt()
        return total

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 4.0])),
        others=[lambda: call(torch.tensor([1.0, -4.0, 2.0])), lambda: call(torch.tensor([9.0, 4.0, 1.0]))],
    )


@program("while_else_with_a_bound", kind="syntax")
def _():
    def f(x):
        rounds = 0
        while x.norm() > 1:
            x = x / 2
            rounds += 1
            if rounds == 5:
                break
        else:
            return x, rounds
        return x * 0, rounds

    return Case(
        f,
        example=lambda: call(torch.tensor([3.0, 4.0])),
        others=[lambda: call(torch.tensor([0.1, 0.1])), lambda: call(torch.tensor([3000.0, 1.0]))],
    )


@program("recursion_halves_a_tensor", kind="syntax")
def _():
    def f(x):
        if x.shape[0] == 1:
            return x[0]
        half = x.shape[0] // 2
        return torch.maximum(f(x[:half]), f(x[half:]))

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 5.0, 2.0, 3.0])),
        others=[
            lambda: call(torch.tensor([1.0, 5.0, 2.0])),
            lambda: call(torch.arange(7.0)),
            lambda: call(torch.ones(1)),
        ],
    )


@program("chained_comparison_of_data", kind="syntax")
def _():
    def f(x, low, high):
        return x * 2 if low < x.mean() <= high else x

    return Case(
        f,
        example=lambda: call(torch.ones(2), 0, 1),
        others=[
            lambda: call(torch.ones(2), 1, 2),
            lambda: call(torch.ones(2) * 3, 0, 1),
            lambda: call(torch.ones(2), 0.5, 1.0),
        ],
    )


@program("star_unpacking_of_rows", kind="syntax")
def _():
    def f(x):
        first, *middle, last = x
        return first + last, len(middle), sum(middle, start=torch.zeros_like(first))

    return Case(
        f,
        example=lambda: call(torch.arange(8.0).view(4, 2)),
        others=[
            lambda: call(torch.arange(6.0).view(3, 2)),
            lambda: call(torch.ones(2, 2)),
            lambda: call(torch.ones(1, 2)),
        ],
        same_text=False,
    )


@program("groups_of_neighbours", kind="syntax")
def _():
    def f(x):
        return [(key, torch.stack(list(group))) for key, group in itertools.groupby(x, lambda value: bool(value > 0))]

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 2.0, -1.0, 3.0])),
        others=[lambda: call(torch.tensor([1.0, 2.0, 1.0, 3.0])), lambda: call(torch.tensor([-1.0, 2.0]))],
    )
