"""Functions of Python over traced numbers, recursion, generators, comprehensions, random numbers, printing."""

import random

import torch
import torch.nn.functional as F

from tests.control_flow.register import m, program, s, v

SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
THREES = lambda: [v(1, 2, 3), v(3, 2, 1), v(-1, 0, -1), v(2, 2, 2), v(5, -9, 0)]
ROWS = lambda: [m((1, 2), (3, 4)), m((-1, 2), (3, 4)), m((1, 2), (-3, 4)), m((-1, -2), (-3, -4)), m((9, 9), (0, 0))]


@program("builtins", THREES)
def min_and_max_of_items(x):
    a, b, c = x[0].item(), x[1].item(), x[2].item()
    return x * max(a, b, c) - min(a, b), max(a, b) > c


@program("builtins", THREES)
def max_of_tensors(x):
    return max(x[0], x[1], x[2]) - min(x[0], x[2])


@program("builtins", THREES)
def max_with_key(x):
    return max(x, x * 2 - 1, -x, key=lambda y: y.sum())


@program("builtins", THREES)
def sum_of_items(x):
    return sum(number.item() for number in x), sum([x, x * 2])


@program("builtins", THREES)
def any_and_all(x):
    if any(number > 2 for number in x):
        return x - 2
    if all(number > 0 for number in x):
        return x + 2
    return x


@program("builtins", THREES)
def any_of_a_list(x):
    found = any([x[0] > 2, x[1] > 1.5]), all([x[0] < 4, x[2] < 4])
    return x + 1, found


@program("builtins", THREES)
def sorted_items(x):
    return sorted(x.tolist()), x


@program("builtins", THREES)
def sorted_tensors(x):
    low, middle, high = sorted(x)
    return low + 2 * middle + 3 * high


@program("builtins", THREES)
def abs_and_round(x):
    peak = abs(x[0].item())
    if round(peak) > 2:
        return x / peak
    return x


@program("recursion", lambda: [v(3, 4), v(30, 40), v(0.1, 0), v(0, 0), v(-30, 4)])
def recursion_on_norm(x):
    return _halved(x, 0)


def _halved(x, depth):
    if x.norm() <= 1:
        return x, depth
    return _halved(x / 2, depth + 1)


@program("recursion", lambda: [s(1.0), s(2.0), s(5.0), s(0.0), s(-1.0)])
def factorial(n):
    return _factorial(n)


def _factorial(n):
    if n <= 1:
        return torch.ones(())
    return n * _factorial(n - 1)


@program("recursion", lambda: [v(1, 2), v(8, 2), v(2, 8), v(0, 0), v(8, 8)])
def tree_of_halves(x):
    return _split(x, 3)


def _split(x, depth):
    if depth == 0 or x.abs().sum() < 3:
        return x
    return torch.cat([_split(x * 0.5, depth - 1), _split(x * 0.25, depth - 1)])


@program("generator", ROWS)
def generator_of_rows(x):
    return torch.stack(list(_scaled(x)))


def _scaled(x):
    for row in x:
        if row.sum() > 0:
            yield row * 2
        else:
            yield row


@program("generator", lambda: [v(3, 4), v(30, 40), v(0.1, 0), v(0, 0), v(-30, 4)])
def generator_until_small(x):
    total = torch.zeros(2)
    for step in _halves(x):
        total = total + step
    return total


def _halves(x):
    while x.norm() > 1:
        yield x
        x = x / 2


@program("generator", ROWS)
def next_with_a_condition(x):
    return next((row for row in x if row.min() < 0), x[0])


@program("comprehension", ROWS)
def list_comprehension(x):
    return torch.stack([row / row.norm() if row.norm() > 2 else row for row in x])


@program("comprehension", ROWS)
def filtered_comprehension(x):
    kept = [row for row in x if row.sum() > 0]
    return len(kept), kept


@program(
    "comprehension",
    lambda: [
        {"a": v(1, 2), "b": v(-3, 4)},
        {"a": v(-1, 2), "b": v(-3, -4)},
        {"a": v(-9, 0), "b": v(3, 4)},
        {"a": v(9, 9), "b": v(9, 9)},
        {"a": v(0, 0), "b": v(0, 0)},
    ],
)
def dict_comprehension(named):
    return {name: value.relu() if value.sum() > 0 else value for name, value in named.items()}


@program("comprehension", ROWS)
def sum_over_generator_expression(x):
    return sum(row.sum() for row in x if row.max() > 2)


@program("random", SIGNS, shows="if")
def noise_in_branch(x):
    if x.sum() > 0:
        x = x + torch.rand(2)
    return x + torch.rand(2)


@program("random", SIGNS, shows="if")
def dropout_in_branch(x):
    if x.max() > 2:
        return F.dropout(x, 0.5, training=True)
    return x


@program("random", SIGNS, shows="if")
def python_random_in_branch(x):
    if x.sum() > 0:
        return x * random.random()
    return x * 0.5


@program("random", lambda: [v(3, 4), v(30, 40), v(0.1, 0), v(0, 0), v(-30, 4)], shows="while")
def random_walk(x):
    n = 0
    while x.norm() > 2:
        x = x * torch.rand(())
        n += 1
    return x, n


@program("random", SIGNS, shows="if")
def branch_on_a_random_number(x):
    if torch.rand(()) > 0.5:
        return x + 1
    return x - 1


@program("print", SIGNS, shows="if")
def print_in_branch(x):
    if x.sum() > 0:
        print("positive", x.sum())
        x = x * 2
    else:
        print("not positive")
    return x


@program("print", SIGNS, shows="if")
def print_before_and_after(x):
    print(f"starts with {x.shape}")
    if x.max() > 2:
        x = x / 2
    print(f"ends with {x.sum().item():.2f}")
    return x


@program("print", lambda: [v(3, 4), v(30, 40), v(0.1, 0), v(0, 0), v(-30, 4)], shows="while")
def print_in_while(x):
    step = 0
    while x.norm() > 1:
        print(step, x.norm())
        x = x / 2
        step += 1
    return x
