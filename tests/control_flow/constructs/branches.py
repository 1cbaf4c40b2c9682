"""`if`, `elif`, nested `if`, ternaries, `and` / `or` / `not`, chained comparison; values decide."""

import math

import torch
import torch.nn.functional as F

from tests.control_flow.register import m, program, s, v

SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
LEVELS = lambda: [v(1, 2), v(-1, -2), v(20, 30), v(-20, -30), v(0, 0), v(5, 4)]
PAIRS = lambda: [
    (v(1, 2), v(3, 4)),
    (v(-1, 2), v(3, 4)),
    (v(-1, -2), v(3, 4)),
    (v(1, 2), v(-3, 0)),
    (v(-5, 0), v(-1, 0)),
]


@program("if", SIGNS, shows="if")
def scale_or_shift(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 5
    return y.relu() + 1


@program("if", SIGNS, shows="if")
def normalise_when_long(x):
    length = x.norm()
    if length > 3:
        x = x / length
    return x + length


@program("if", SIGNS, shows="if")
def decide_by_item(x):
    total = x.sum().item()
    if total < 0:
        x = -x
        total = -total
    return x, total


@program("if", lambda: [v(1, 2), v(1, math.nan), v(math.inf, 1), v(math.nan, math.nan), v(-math.inf, 0)], shows="if")
def repair_numbers(x):
    if torch.isnan(x).any() or torch.isinf(x).any():
        x = torch.nan_to_num(x, nan=0.0, posinf=1.0, neginf=-1.0)
    return x.cumsum(0)


@program("if", lambda: [s(True), s(False), s(True), s(0.0), s(2)], shows="if")
def truth_of_a_tensor(flag):
    if flag:
        return torch.ones(2)
    return torch.zeros(2)


@program(
    "if",
    lambda: [(v(1, 2), v(1, 2)), (v(1, 2), v(1, 3)), (v(0, 0), v(0, 0)), (v(5, 2), v(2, 5)), (v(1, 1), v(1, 1))],
    shows="if",
)
def equal_or_add(x, y):
    if torch.equal(x, y):
        out = x.clone()
    else:
        out = x + y
    return out * 3


@program("if", SIGNS, shows="if")
def both_sides_share_names(x):
    scale = 1
    if (x > 0).all():
        scale = 3
        shift = x.max()
    else:
        shift = x.min()
        scale = scale + 1
    return x * scale + shift


@program(
    "if",
    lambda: [m((1, 2), (3, 4)), m((-1, 2), (3, 4)), m((0, 0), (0, 0)), m((-1, -2), (-3, -4)), m((9, 0), (0, -9))],
    shows="if",
)
def sizes_differ_by_branch(x):
    if x[0, 0] > 0:
        picked = x[:1]
    else:
        picked = torch.cat([x, x])
    return picked.sum(0)


@program("elif", LEVELS, shows="if")
def four_levels(x):
    mean = x.mean()
    if mean > 10:
        y = x - 10
    elif mean > 2:
        y = x * x
    elif mean > -10:
        y = x.abs()
    else:
        y = torch.zeros_like(x)
    return y


@program("elif", LEVELS, shows="if")
def elif_without_else(x):
    kind = 0
    if x.max() > 10:
        kind = 1
    elif x.max() < -10:
        kind = 2
    elif x.max() == 0:
        kind = 3
    return x, kind


@program("elif", LEVELS, shows="if")
def activation_by_size(x):
    peak = x.abs().max()
    if peak < 3:
        x = torch.tanh(x)
    elif peak < 10:
        x = F.gelu(x)
    else:
        x = F.softsign(x)
    return x.sum()


@program("nested_if", PAIRS, shows="if")
def two_by_two(x, y):
    if x.sum() > 0:
        if y.sum() > 0:
            out = x + y
        else:
            out = x - y
    else:
        if y.sum() > 0:
            out = x * y
        else:
            out = x
    return out.exp()


@program("nested_if", PAIRS, shows="if")
def inner_assigns_outer(x, y):
    count = 0
    total = x.new_zeros(())
    if x.max() > 0:
        count += 1
        if y.max() > 0:
            count += 10
            if (x + y).sum() > 9:
                total = total + 1
        total = total + y.sum()
    return total, count


@program("nested_if", LEVELS, shows="if")
def ladder_of_else(x):
    if x[0] > 10:
        label = 3
    else:
        if x[0] > 0:
            label = 2
        else:
            if x[0] == 0:
                label = 1
            else:
                label = 0
    return x * label


@program("ternary", SIGNS, shows="if")
def sign_by_ternary(x):
    sign = 1 if x[0] > 0 else -1
    return x * sign


@program("ternary", SIGNS, shows="if")
def lazy_ternary(x):
    return x / x.norm() if x.norm() > 1 else x


@program("ternary", LEVELS, shows="if")
def nested_ternary(x):
    return x - 1 if x.sum() > 5 else (x + 1 if x.sum() < -5 else x * 0)


@program("ternary", SIGNS, shows="if")
def ternary_among_arguments(x):
    return torch.clamp(x, min=0.0 if x.sum() > 0 else -1.0, max=2.0)


@program("boolean", PAIRS, shows="if")
def and_of_tensors(x, y):
    if x.sum() > 0 and y.sum() > 0:
        return x + y
    return x - y


@program("boolean", PAIRS, shows="if")
def or_of_tensors(x, y):
    if x.sum() < 0 or y.sum() < 0:
        x = x.abs()
    return x * y


@program("boolean", lambda: [*PAIRS(), (v(1, 2), v(0, 0)), (v(-1, 2), v(0, 0))], shows="if")
def not_of_a_tensor(x, y):
    if not (x > 0).all():
        x = x + 10
    return x if not y.any() else y


@program("boolean", PAIRS)
def value_of_and_or(x, y):
    first = (x.sum() > 0) and x.max()
    second = y.min() or x.min()
    return first + second


@program("boolean", PAIRS)
def short_circuit(x, y):
    calls = []

    def noted(value):
        calls.append(1)
        return value

    found = noted(x.sum() > 0) and noted(y.sum() > 0)
    return torch.as_tensor(found), len(calls)


@program("boolean", PAIRS, shows="if")
def mixed_with_plain_flags(x, y, strict=True):
    if strict and x.min() < 0 or (not strict and y.min() < 0):
        return x.relu()
    return y.relu()


@program("chained", LEVELS, shows="if")
def within_bounds(x):
    if -5 < x.sum() < 5:
        return x * 10
    return x / 10


@program("chained", PAIRS, shows="if")
def ordered_pair(x, y):
    if x.min() <= y.min() <= y.max() != x.max():
        return x, y
    return y, x


@program("chained", LEVELS)
def chained_value(x):
    inside = 0 <= x.mean().item() < 10
    return x + 1, inside
