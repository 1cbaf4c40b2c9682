"""Programs that write into arrays in every way that functionalisation knows, and in some that it has to leave alone."""

import torch
import torch.nn.functional as F
from torch import nn


def items(x):
    y = x * 2
    y[0] = 1.0
    y[:, 1:] += 3
    y[..., 0] = y[1, 2]
    y[x > 0] = 7
    y[x > 1] -= 1
    return y, y[torch.tensor([0, 2])]


def views(x):
    y = x - 1
    flat, turned, row = y.view(-1), y.t(), y[1]
    flat[2] = 5
    turned[0].mul_(2)
    row.add_(turned[:, 1].sum())
    turned.permute(1, 0)[2] = 9
    y.unsqueeze(0)[0, 1, 1] = 4
    y.movedim(0, 1).sub_(1)
    y.select(1, -1).fill_(3)
    y.narrow(0, 1, 2)[:, 0] = -1
    return y, flat, turned, row


def view_of_view(x):
    y = x.clone()
    corner = y[1:][:, 1:]
    corner[0].zero_()
    corner.view_as(corner)[1] = y[0, :2]
    return y.sum(), corner


def parts(x):
    y, z = x * 2, x * 3
    rows, halves = y.unbind(0), z.split(2)
    rows[1].add_(1)
    halves[1].copy_(halves[0])
    halves[0][:, 1] = rows[0][0]
    return y, z, rows[2], halves[1]


def methods(x):
    y = x * 2
    y.add_(x).clamp_(-1, 1).pow_(2)
    z = y.mul_(2)
    z += x
    z //= 2
    y.masked_fill_(x > 0, 0.5)
    y.index_fill_(0, torch.tensor([1]), 2.0)
    y.scatter_(0, torch.zeros(1, 3, dtype=torch.long), 8.0)
    return y.sum() + z.sum(), torch.relu_(y), F.leaky_relu(z, 0.1, inplace=True)


def out(x):
    y = torch.zeros_like(x)
    view = y[0]
    z = torch.add(x, 1, out=y)
    torch.mul(x[1], 2, out=view)
    return y, z, view


def wider(x):
    y = x - 1.0
    y += x.double()
    y[0] = x.double()[1]
    return y


def drawn(x):
    y = torch.empty_like(x).uniform_(1, 2)
    y[0].normal_()
    return y, y.clone().bernoulli_(), torch.zeros(3).exponential_()


def into_input(x):
    before = x * 1
    row = x[1]
    x.add_(1)
    row.mul_(2)
    return x, row, x.view(-1), before, x * 2


def branch(x):
    y, z = x.clone(), x * 2
    row = y[0]
    if x.sum() > 0:
        y[0] = 5
        z.add_(y)
    else:
        y.mul_(2)
    return y, z, row


def made_in_a_branch(x):
    if x.sum() > 0:
        y = x * 2
        row = y[0]
    else:
        y = x * 3
        row = x[0] * 1
    y.add_(1)
    return y


def branch_on_input(x):
    if x.sum() > 0:
        x[0] = 5
    return x * 2


def branch_in_branch(x):
    y = x.clone()
    if x.sum() > 0:
        if x[0, 0] > 0:
            y[0] = 5
        y[1] = 6
    return y


def returned_by_branch(x):
    y = x.clone()
    if x.sum() > 0:
        y.add_(1)
        return y, 2
    return y * 2, 3


def loop(x):
    y, total = torch.zeros_like(x), torch.zeros(3)
    for row in range(int(x.abs().sum()) % 3 + 2):
        y[row % 4] = x[0] * row
        total += y[row % 4]
    return y, total


def loop_that_breaks(x):
    y = x.clone()
    for row in range(int(x.abs().sum()) % 4 + 1):
        y[row % 4] = 0
        if y.sum() > 1:
            break
    return y


def while_loop(x):
    total, view = torch.zeros(3), None
    view = total[1:]
    while total.sum() < 10:
        total += x.abs().sum(0) + 1
    total.unsqueeze(0)[0, 1] = 4
    return total, view


def collected(x):
    y, seen = x.clone(), []
    for row in range(int(x.abs().sum()) % 3 + 2):
        y[row % 4] += 1
        seen.append(y.sum())
    return y, torch.stack(seen)


class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.norm, self.relu, self.calls = nn.BatchNorm1d(3), nn.ReLU(inplace=True), 0

    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0) * 0.1)
        self.mean[0] = 0
        self.calls += 1
        y = self.norm(x)
        self.relu(y)
        return y + self.mean


EXPRESSED = [
    items, views, view_of_view, parts, methods, out, wider, drawn, into_input, branch, made_in_a_branch,
    branch_on_input, branch_in_branch, returned_by_branch, loop, loop_that_breaks, while_loop, collected,
]  # fmt: skip


# ---- what nothing new can stand for ----------------------------------------------------------------------------------


def through_reshape(x):
    y = x.t().clone(memory_format=torch.contiguous_format)
    y.reshape(-1)[0] = 1
    return y


def through_to(x):
    y = x.to(torch.float32)
    y.add_(1)
    return y


def under_no_grad(x):
    y = x * 2
    with torch.no_grad():
        y.add_(1)
    return y


def through_detach(x):
    y = x * 2
    y.detach().add_(1)
    return y


def in_another_shape(x):
    y = x * 2
    y.unsqueeze_(0)
    y.add_(1)
    return y


def appended(x):
    y, seen = x.clone(), []
    for _ in range(int(x.abs().sum()) % 3 + 2):
        y.add_(1)
        seen.append(y)
    return y, seen


def swapped(x):
    a, b = x * 1, x * 2
    for _ in range(int(x.abs().sum()) % 3 + 2):
        a.add_(b)
        a, b = b, a
    return a, b


def given_twice(x):
    y = x * 1
    row = y[0]
    if x.sum() > 0:
        y.add_(1)
        row.mul_(2)
    return y, row


def shared_in_a_branch(x):
    if x.sum() > 0:
        y = x * 2
        row = y[0]
    else:
        y = x * 3
        row = x[0] * 1
    y.add_(1)
    return y, row


LEFT = [
    shared_in_a_branch, through_reshape, through_to, under_no_grad, through_detach, in_another_shape, appended,
    swapped, given_twice,
]  # fmt: skip
