"""Corners: NaN and infinity in conditions, loops without rounds, dtypes that change, masks, tensors as indices."""

import torch
from torch import nn

from tests.control_flow.register import built, m, program, s, v

NAN, INF = float("nan"), float("inf")
SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
ODD = lambda: [v(1, 2), v(NAN, 1), v(INF, -1), v(-INF, 3), v(NAN, NAN), v(-1, -1), v(-0.0, 0)]
ROWS = lambda: [m((1, 2), (3, 4)), m((-1, 2), (3, 4)), m((1, 2), (-3, 4)), m((-1, -2), (-3, -4)), m((9, 9), (0, 0))]
COUNTED = lambda: [(x, s(n)) for x, n in zip(SIGNS(), (2, 3, 0, 1, 5))]
LARGE = lambda: [v(3, 4), v(30, 40), v(0.1, 0), v(0, 0), v(-30, 4)]
UNCOUNTED = lambda: [(x, s(n)) for x, n in zip(SIGNS(), (0, 3, 0, 1, 5))]


@program("corner", ODD)
def not_a_number_in_conditions(x):
    if x[0] > 0:
        return x * 2
    if x[0] <= 0:
        return x - 1
    return torch.zeros(2)


@program("corner", ODD)
def not_a_number_in_chains(x):
    inside = -1 < x[0] < 5
    outside = not (x[0] < 2 or x[0] >= 2)
    return (x.nan_to_num() if outside else x), bool(inside)


@program("corner", ODD)
def maximum_and_minimum_with_nan(x):
    return max(x[0], x[1]), min(x[0], x[1]), max(x.tolist()), sorted(x.tolist())[0]


@program("corner", ODD, shows="while")
def loop_that_nan_ends(x):
    n = 0
    while x.norm() > 1 and n < 20:
        x = x / 4
        n += 1
    return x, n


@program("corner", ODD)
def finite_or_repaired(x):
    if not torch.isfinite(x).all():
        x = torch.where(torch.isfinite(x), x, torch.zeros_like(x))
    return x / (x.sum() if x.sum() != 0 else 1)


@program("corner", lambda: [v(0, 0), v(5, 5), v(-3, 0), v(0.5, 0.5), v(100, 1)], shows="while")
def no_round_on_the_example(x):
    n, trace = 0, x.new_zeros(())
    while x.sum() > 1:
        trace = trace + x.sum()
        x = x / 2
        n += 1
    return x, n, trace


@program("corner", UNCOUNTED, shows="for")
def no_round_of_a_range(x, n):
    total = x
    for i in range(int(n)):
        total = total * 2 + i
    return total


@program("corner", lambda: [m(), m((1, 2)), m((1, 2), (3, 4)), m((-1, 2)), m((0, 0), (1, 1), (2, 2))])
def no_rows_at_all(x):
    total = torch.zeros(2)
    for row in x:
        total = total + row
        if total.sum() < 0:
            break
    return total


@program("corner", SIGNS)
def dtype_changes_on_the_way(x):
    y = x
    if y.sum() > 0:
        y = y.to(torch.int64)
    if y.dtype == torch.int64:
        y = y // 2
    return y, y.dtype


@program("corner", COUNTED)
def dtype_changes_in_a_loop(x, n):
    y = x.to(torch.float32)
    for _ in range(int(n)):
        y = y.double() * 1.1
    return y


@program("corner", LARGE)
def integer_becomes_a_float(x):
    n = 1
    while x.norm() > 1:
        x = x / 2
        n = n * 1.5
    return x * n, n


@program("corner", SIGNS, shows="if")
def in_place_of_a_view_in_a_branch(x):
    y = x.clone()
    part = y[:1]
    if x.sum() > 0:
        part.mul_(10)
    else:
        y[1] += 5
        part -= 1
    return y, part


@program("corner", SIGNS, shows="if")
def argument_written_in_a_branch(x):
    if x.sum() > 0:
        x.clamp_(max=1)
        x[0] = 7
    return x * 2


@program("corner", SIGNS)
def mask_written_in_a_branch(x):
    y = x.clone()
    mask = y < 0
    if mask.any():
        y[mask] = 0
    if not mask.all():
        y[~mask] += 1
    return y, mask.sum()


@program("corner", SIGNS)
def rows_chosen_by_a_mask(x):
    kept = x[x > 0]
    if kept.numel() == 0:
        return x.new_zeros(())
    if len(kept) == 1:
        return kept[0] * 2
    return kept.mean()


@program("corner", COUNTED)
def index_out_of_a_tensor(x, n):
    place = n % 2
    y = x[place]
    if x[int(place)] > 0:
        return y, x[place:].sum()
    return y, x[: int(place) + 1].sum()


@program("corner", lambda: [(torch.arange(6.0), s(n)) for n in (2, 3, 0, 1, 6)])
def slices_with_tensor_bounds(x, n):
    head, tail = x[:n], x[n:]
    if n > 2:
        return head.sum(), tail * 2
    return head.sum() - 1, tail + 1


@program("corner", COUNTED, shows="for")
def range_of_a_tensor_itself(x, n):
    for i in range(n):
        x = x + i
    return x


@program("corner", lambda: [(torch.arange(6.0), s(n)) for n in (2, 3, 0, 1, 6)])
def range_with_start_and_step(x, n):
    total = x.new_zeros(())
    for i in range(int(n), 0, -1):
        total = total * 0.5 + x[i - 1]
    for i in range(0, int(n), 2):
        total = total + x[i]
    return total


@program("corner", SIGNS)
def number_as_a_size_of_a_new_tensor(x):
    n = int(x.abs().max())
    grown = torch.zeros(n)
    if n > 2:
        return grown + 1
    return grown


@program("corner", SIGNS)
def two_results_of_one_maximum(x):
    value, place = x.max(dim=0)
    if place == 0:
        return value, x.roll(1)
    return value + place, x


@built("corner", SIGNS, state=lambda model: (model.mean, model.seen, model.frozen))
def running_mean_until_frozen():
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))
            self.register_buffer("seen", torch.zeros((), dtype=torch.long))
            self.frozen = False

        def forward(self, x):
            if not self.frozen and x.abs().max() < 8:
                self.mean.mul_(0.5).add_(x, alpha=0.5)
                self.seen += 1
            if self.seen >= 2:
                return x - self.mean
            return x

    return Norm()


@built("corner", SIGNS, state=lambda model: model.state)
def buffer_replaced_in_a_branch():
    class Memory(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(2))

        def forward(self, x):
            if x.sum() > self.state.sum():
                self.state = x.detach() * 0.5
            return self.state + x

    return Memory()


@program("corner", SIGNS)
def empty_and_none_and_zero(x):
    found = None
    if x.sum() > 5:
        found = []
    elif x.sum() > 0:
        found = 0
    elif x.sum() < -2:
        found = [x]
    return (x, found is None) if not found else found[0] * 2


@program("corner", SIGNS)
def or_that_gives_a_value(x):
    y = (x.sum() > 0 and x.sum() * 2) or x[1] - 1 if x[0] != 0 else x
    return y


@program("corner", SIGNS)
def truth_of_a_tensor_itself(x):
    n = 0
    if x[0]:
        n += 1
    if not x[1]:
        n += 2
    while x.sum().relu():
        x = x - 1
        n += 4
    return x, n


@program("corner", ROWS)
def comparison_of_whole_tensors(x):
    if torch.equal(x[0], x[1]):
        return x[0]
    if torch.allclose(x, x.abs()):
        return x.sum(0)
    return (x[0] == x[1]).float()


@program("corner", SIGNS, shows="if")
def no_grad_in_a_branch(x):
    w = torch.ones(2, requires_grad=True)
    if x.sum() > 0:
        with torch.no_grad():
            y = x * w
    else:
        y = x * w * 2
    return y.detach(), y.requires_grad


@program("corner", SIGNS)
def gradient_taken_inside_a_branch(x):
    if x.sum() > 0:
        w = x.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad((w**3).sum(), w)
        return gradient
    return x


@program("corner", COUNTED)
def in_place_in_a_loop(x, n):
    y = x.clone()
    for i in range(int(n)):
        if y[0] > 0:
            y[0] -= 1
        else:
            y += i
    return y


@program("corner", SIGNS)
def same_question_of_two_ternaries(x):
    y = x + 1 if x.sum() > 0 else x - 1
    z = y * 2 if x.sum() > 0 else y
    return z


@program("corner", SIGNS)
def shadowed_names_and_reuse(x):
    sum = x.sum()
    if sum > 0:
        x = sum = x * 2
    max = sum.max()
    return x if max > 1 else sum


@program("corner", SIGNS)
def text_that_depends_on_data(x):
    label = "up" if x.sum() > 0 else "down"
    label += "!" if x.max() > 2 else "?"
    return {label: x, "n": len(label)}


@program("corner", SIGNS)
def printed_values_in_a_branch(x):
    if x.sum() > 0:
        print("positive", x.sum().item())
        x = x * 2
    else:
        print(f"not: {x.max():.1f}")
    return x


@program("corner", COUNTED)
def step_of_a_tensor_bound(x, n):
    steps = int(n.item())
    while steps:
        x = x * 2 if x.sum() < 10 else x - 1
        steps -= 1
    return x


@program("corner", lambda: [v(1, 2), v(1, 2, 3), v(-1), v(-2, 0, 0), v(4, 4, 4, 4)])
def shape_put_together(x):
    if x.sum() > 0:
        return torch.Size((x.shape[0], 2)), x
    return torch.Size([x.shape[0]]), {"last": torch.Size((1, x.shape[0]))}
