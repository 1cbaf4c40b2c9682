"""Early and several returns, returns of different structure, returns inside loops."""

import torch

from tests.control_flow.register import m, program, s, v

SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
ROWS = lambda: [
    m((1, 2), (3, 4), (5, 6)),
    m((-1, 2), (3, 4), (5, 6)),
    m((1, 2), (-3, 4), (5, 6)),
    m((1, 2), (3, 4), (-5, -6)),
    m((-1, -2), (-3, -4), (-5, -6)),
]


@program("early_return", SIGNS, shows="if")
def return_untouched(x):
    if x.sum() <= 0:
        return x
    y = x.log1p()
    return y / y.max()


@program("early_return", SIGNS, shows="if")
def two_exits_then_work(x):
    if x.max() > 5:
        return x.clamp(max=5.0)
    x = x + 1
    if x.min() < 0:
        return x.clamp(min=0.0)
    x = x * 2
    return x


@program("early_return", SIGNS, shows="if while")
def docstring_of_control_flow(x):
    if x.sum() > 0:
        return torch.relu(x), 0
    n = 0
    while x.norm() > 1:
        x = x / 2
        n += 1
    return x, n


@program("early_return", SIGNS, shows="if")
def early_bare_return(x):
    if x.sum() == 0:
        return
    return x.sum()


@program("several_returns", SIGNS, shows="if")
def return_on_each_side(x):
    if x.sum() > 2:
        return x.sin()
    elif x.sum() < -2:
        return x.cos()
    else:
        return x.tan()


@program("several_returns", SIGNS, shows="if")
def return_from_inner_ifs(x):
    if x[0] > 0:
        if x[1] > 0:
            return x + 1
        return x + 2
    if x[1] > 0:
        return x + 3
    return x + 4


@program("several_returns", SIGNS, shows="if")
def returns_in_a_helper(x):
    return _clipped(x) + _clipped(-x)


def _clipped(x):
    if x.max() > 2:
        return x / x.max()
    if x.min() < -2:
        return x / 10
    return x


@program("return_structures", SIGNS, shows="if")
def tuple_or_tensor(x):
    if x.sum() > 0:
        return x, x.sum()
    return x


@program("return_structures", SIGNS, shows="if")
def dict_list_or_none(x):
    if x.sum() > 5:
        return {"x": x, "large": True}
    if x.sum() > 0:
        return [x, x + 1]
    if x.sum() == 0:
        return None
    return "negative", x


@program("return_structures", SIGNS, shows="if")
def other_dtype(x):
    if x.sum() > 0:
        return x > 0
    return x.long()


@program("return_structures", SIGNS, shows="if")
def structure_used_outside(x):
    found = _maybe_pair(x)
    if isinstance(found, tuple):
        return found[0] + found[1]
    return found


def _maybe_pair(x):
    if x.max() > 2:
        return x, x * 2
    return x - 1


@program("return_in_loop", ROWS, shows="for")
def first_negative_row(x):
    for row in x:
        if row.min() < 0:
            return row
    return x.sum(0)


@program("return_in_loop", lambda: [s(1.0), s(2.0), s(0.5), s(10.0), s(-3.0)], shows="while")
def return_in_while(x):
    steps = 0
    while x < 8:
        x = x * 2 + 1
        steps += 1
        if steps == 3:
            return x, steps
    return x, steps


@program("return_in_loop", ROWS, shows="for")
def return_place_of_row(x):
    for place, row in enumerate(x):
        if row.sum() < 0:
            return place
    return -1


@program("return_in_loop", lambda: [v(1, 5), v(2, 5), v(4, 5), v(6, 5), v(9, 0)])
def return_in_static_loop(x):
    for factor in (1, 2, 3, 4):
        if (x * factor)[0] > 5:
            return x * factor, factor
    return x, None
