"""Ways that the example cannot go with its own data: what happens on them by force must not be taken for what happens.

A capture that follows both answers runs the untaken way on data that does not belong to it: an empty mask, a singular
matrix, a number that divides by zero, a key that is missing. Errors and sizes met there say nothing about real inputs.
"""

import itertools
import math

import torch

from tests.control_flow.register import built, m, program, s, v

NUMBERS = lambda: [s(0.0), s(2.0), s(-4.0), s(0.5), s(9.0)]
FORWARD_AND_BACK = lambda: [v(-1, -2), v(1, 2), v(-1, 2), v(3, -4), v(0, 0)]
MATRICES = lambda: [m((1, 2), (2, 4)), m((1, 2), (3, 4)), m((0, 0), (0, 0)), m((2, 0), (0, 2)), m((1, 1), (1, -1))]


@program("impossible", FORWARD_AND_BACK)
def maximum_of_an_empty_mask(x):
    mask = x > 0
    if mask.any():
        return x[mask].max()
    return torch.zeros(())


@program("impossible", FORWARD_AND_BACK)
def mean_of_selected_rows(x):
    chosen = (x > 0).nonzero().squeeze(1)
    if len(chosen) > 0:
        return x[chosen].mean(), chosen[0]
    return x.mean(), chosen


@program("impossible", MATRICES)
def inverse_of_a_singular_matrix(x):
    if torch.linalg.det(x).abs() > 1e-6:
        return torch.linalg.inv(x)
    return torch.zeros_like(x)


@program("impossible", MATRICES)
def cholesky_when_positive(x):
    square = (x + x.T) / 2
    if torch.linalg.eigvalsh(square).min() > 0:
        return torch.linalg.cholesky(square)
    return square


@program("impossible", NUMBERS)
def divide_unless_zero(d):
    number = d.item()
    if number != 0:
        return 1 / number
    return 0.0


@program("impossible", NUMBERS)
def root_unless_negative(d):
    number = d.item() - 1
    if number >= 0:
        return math.sqrt(number)
    return d


@program("impossible", NUMBERS)
def logarithm_when_positive(d):
    return math.log(d.item()) if d > 0 else -1.0


@program("impossible", lambda: [s(9), s(1), s(2), s(3), s(-1)])
def key_when_there(k):
    table = {1: 10.0, 2: 20.0, 3: 30.0}
    if k.item() in table:
        return torch.tensor(table[k.item()])
    return torch.zeros(())


@program(
    "impossible",
    lambda: [(v(1, 2, 3), s(5)), (v(1, 2, 3), s(1)), (v(1, 2, 3), s(2)), (v(1, 2, 3), s(-1)), (v(4, 5), s(0))],
)
def index_when_inside(x, place):
    if 0 <= place < len(x):
        return x[place]
    return x.sum()


@program(
    "impossible",
    lambda: [(v(1, 2, 3), s(0)), (v(1, 2, 3), s(1)), (v(1, 2, 3), s(2)), (v(1, 2, 3), s(3)), (v(4, 5, 6), s(0))],
)
def first_few_when_any(x, count):
    if count > 0:
        return x[: count.item()].max()
    return x.min()


@program("impossible", FORWARD_AND_BACK)
def same_question_twice(x):
    stack = []
    if x.sum() > 0:
        stack.append(x * 2)
    y = x + 1
    if x.sum() > 0:
        y = y + stack.pop()
    return y


@program("impossible", FORWARD_AND_BACK)
def questions_that_exclude_each_other(x):
    total = x.sum()
    if total > 0:
        sign = 1
    if total < 0:
        sign = -1
    if total == 0:
        return x
    return x * sign


@program("impossible", FORWARD_AND_BACK)
def number_used_only_when_whole(x):
    total = x.sum().item()
    if total >= 1:
        return torch.ones(int(total)) * x.max()
    return x


@program("impossible", FORWARD_AND_BACK)
def shape_asked_on_the_other_way(x):
    kept = x[x > 0]
    if kept.sum() > 0:
        if kept.shape[0] == 2:
            return kept * 2
        return kept
    return x


@program("impossible", lambda: [v(-1, -2), v(4, 2), v(-1, 2), v(3, -4), v(0, 9)])
def shrinking_while_any(x):
    n = 0
    while (x > 0).any():
        x = x[x > 0] - 2
        n += 1
    return x, n


@program("impossible", FORWARD_AND_BACK)
def assertion_about_the_way(x):
    if (x > 0).any():
        peak = x.max()
        assert peak > 0, "no number is positive"
        return x / peak
    return x


@program("impossible", FORWARD_AND_BACK)
def error_about_the_way(x):
    if x.sum() > 0:
        if x.max() <= 0:
            raise RuntimeError("a positive sum of numbers that are not")
        return x.log1p()
    return x


@program("impossible", FORWARD_AND_BACK)
def catches_on_the_way(x):
    try:
        if (x > 0).any():
            return x[x > 0].max()
        return x.min()
    except RuntimeError:
        return torch.full((), 77.0)


@built("impossible", FORWARD_AND_BACK)
def counter_that_runs_on():
    numbers = itertools.count()

    def f(x):
        if x.sum() > 0:
            return x + next(numbers)
        return x - next(numbers)

    return f


@built("impossible", FORWARD_AND_BACK)
def remembers_what_it_met():
    met = {}

    def f(x):
        key = "positive" if x.sum() > 0 else "negative"
        met[key] = met.get(key, 0) + 1
        return x * met[key], dict(met)

    return f


@program("impossible", FORWARD_AND_BACK)
def one_of_many_conversions(x):
    if bool(x[0] > 0):
        return int(x[0]), float(x[1])
    return str(x.tolist())


@program("impossible", lambda: [(v(1, 2), s(1)), (v(1, 2), s(0)), (v(-1, 2), s(1)), (v(-1, -2), s(0)), (v(0, 2), s(1))])
def in_place_then_decide(x, flag):
    before = x.sum()
    x.mul_(-1)
    if flag > 0:
        x.add_(10)
    if x.sum() > before:
        x.sub_(1)
        return x.clone()
    return x


@program("impossible", FORWARD_AND_BACK)
def view_made_before_the_branch(x):
    y = x.clone()
    view = y[0:1]
    if x.sum() > 0:
        y = y * 2
    view.add_(5)
    return y, view


@program("impossible", FORWARD_AND_BACK)
def alias_chosen_by_branch(x):
    a, b = x.clone(), x.clone()
    target = a if x.max() > 0 else b
    target.add_(1)
    return a - b


@program("impossible", FORWARD_AND_BACK)
def nan_takes_no_side(x):
    y = x / x.sum()
    if y.sum() > 0.5:
        return 1
    elif y.sum() <= 0.5:
        return 2
    return 3
