"""State in branches and loops: attributes, items, lists, in-place operations, buffers, modules."""

import torch
from torch import nn

from tests.control_flow.register import built, m, program, v

SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
ROWS = lambda: [m((1, 2), (3, 4)), m((-1, 2), (3, 4)), m((1, 2), (-3, 4)), m((-1, -2), (-3, -4)), m((9, 9), (0, 0))]


@built("attribute", SIGNS, shows="if", state=lambda model: (model.n, model.last))
def count_positive():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.n, self.last = 0, None

        def forward(self, x):
            if x.sum() > 0:
                self.n += 1
                self.last = x.sum()
            return x * (self.n + 1)

    return Counter()


@built("attribute", SIGNS, shows="if", state=lambda model: model.mode)
def attribute_on_both_sides():
    class Switch(nn.Module):
        def __init__(self):
            super().__init__()
            self.mode, self.scale = "none", 1.0

        def forward(self, x):
            if x.max() > 2:
                self.mode, self.scale = "large", 0.5
            else:
                self.mode = "small"
            return x * self.scale

    return Switch()


@program(
    "attribute",
    lambda: [(v(1, 2), _Box()), (v(-1, 2), _Box()), (v(-1, -2), _Box()), (v(0, 0), _Box()), (v(5, 5), _Box())],
    shows="if",
)
def attribute_of_an_argument(x, box):
    if x.sum() > 2:
        box.total = box.total + x.sum()
    else:
        box.misses += 1
    return x + box.total


class _Box:
    def __init__(self):
        self.total, self.misses = torch.zeros(()), 0


@built(
    "attribute",
    lambda: [v(4, 3), v(40, 30), v(0, 0), v(1, 0), v(-9, 2)],
    shows="while",
    state=lambda model: model.steps,
)
def attribute_in_while():
    class Stepper(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0

        def forward(self, x):
            while x.norm() > 1:
                x = x / 2
                self.steps += 1
            return x

    return Stepper()


@program(
    "item", lambda: [(v(1, 2), {}), (v(-1, 2), {"k": v(0)}), (v(-1, -2), {}), (v(0, 0), {"k": v(1)}), (v(5, 5), {})]
)
def item_of_an_argument(x, cache):
    if x.sum() > 1:
        cache["k"] = x * 2
    return cache.get("k", x)


@program("item", SIGNS, shows="if")
def item_of_a_local_dict(x):
    found = {"sum": x.sum()}
    if x.min() < 0:
        found["min"] = x.min()
    else:
        found["sum"] = found["sum"] * 2
    return found


@program("item", SIGNS, shows="if")
def item_of_a_list(x):
    parts = [x, x + 1, x + 2]
    if x.sum() > 0:
        parts[1] = x * 10
    else:
        parts[0], parts[2] = parts[2], parts[0]
    return parts


@program("item", SIGNS, shows="if")
def item_of_a_tensor(x):
    y = torch.zeros(3)
    if x[0] > 0:
        y[0] = x[0]
    else:
        y[1:] = x
    return y * 2


@program("append", lambda: [*ROWS(), m((1, 2)), m((1, 2), (3, 4), (5, 6))], shows="for")
def append_and_stack(x):
    rows = []
    for row in x:
        rows.append(torch.tanh(row))
    return torch.stack(rows)


@program(
    "append",
    lambda: [m((1, 2)), m((1, 2), (3, 4), (5, 6)), m((-1, 2), (0, 0)), m((5, 5), (1, 1), (0, 2), (3, 3)), m((0, 0))],
    shows="for if",
)
def append_states_of_any_length(x):
    h, states = torch.zeros(2), []
    for row in x:
        h = torch.tanh(h) + row
        if h.sum() > 2:
            h = h / 2
        states.append(h)
    return torch.stack(states), h


@program("append", ROWS, shows="for if")
def append_some(x):
    kept = []
    for row in x:
        if row.sum() > 0:
            kept.append(row)
    return kept


@program("append", lambda: [v(4, 3), v(40, 30), v(0, 0), v(1, 0), v(-9, 2)], shows="while")
def append_in_while(x):
    norms = [x.norm()]
    while x.norm() > 1:
        x = x / 2
        norms.append(x.norm())
    return torch.stack(norms)


@program("append", SIGNS, shows="if")
def append_in_branch(x):
    parts = [x]
    if x.sum() > 0:
        parts.append(x * 2)
    return torch.cat(parts)


@program("append", lambda: [(x, []) for x in ROWS()])
def append_to_an_argument(x, log):
    for row in x:
        if row.min() < 0:
            log.append(row.sum().item())
    return x.sum(), len(log)


@program("in_place", SIGNS, shows="if")
def in_place_on_a_local(x):
    y = x.clone()
    if y.sum() > 0:
        y.mul_(2)
    else:
        y.zero_()
    return y + x


@program("in_place", SIGNS, shows="if")
def in_place_on_the_argument(x):
    if x.sum() > 0:
        x.add_(1)
    return x * 2


@program("in_place", lambda: [(x, torch.zeros(2)) for x in SIGNS()], shows="if")
def in_place_by_index(x, out):
    if x[0] > 0:
        out[0] = x[0]
    else:
        out[1] += x[1]
    return out.sum()


@program("in_place", SIGNS, shows="if")
def in_place_on_a_view(x):
    y = x.clone()
    first = y[:1]
    if x[1] > 0:
        first.fill_(7.0)
    return y


@program("in_place", lambda: [(x[: 2 - place % 2], torch.zeros(2)) for place, x in enumerate(ROWS())], shows="for")
def in_place_in_loop(x, total):
    for row in x:
        total.mul_(0.5).add_(row)
    return total.sum()


@built("buffer", SIGNS, shows="if")
def running_mean():
    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(2))
            self.register_buffer("seen", torch.tensor(0))

        def forward(self, x):
            if x.abs().sum() > 1:
                self.seen += 1
                self.mean.lerp_(x, 0.1)
            return x - self.mean

    return Running()


@built("buffer", SIGNS, shows="if")
def buffer_set_anew():
    class Peak(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("peak", torch.zeros(()))

        def forward(self, x):
            if x.max() > self.peak:
                self.peak = x.max()
            return x / (self.peak + 1)

    return Peak()


@built("buffer", SIGNS, shows="if")
def buffer_by_copy():
    class Latch(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("held", torch.ones(2))
            self.register_buffer("full", torch.tensor(False))

        def forward(self, x):
            if not self.full:
                self.held.copy_(x)
                self.full.fill_(True)
            elif x.sum() < 0:
                self.full.fill_(False)
            return self.held * x

    return Latch()


@built("module_call", SIGNS, shows="if")
def one_of_two_layers():
    class Choice(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(2, 3), nn.Linear(2, 3, bias=False)

        def forward(self, x):
            if x.sum() > 0:
                return self.left(x)
            return self.right(x)

    return Choice()


@built("module_call", SIGNS, shows="if")
def layers_with_early_exit():
    class Exit(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Sequential(nn.Linear(2, 2), nn.Tanh()) for _ in range(4)])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
                if x.abs().max() < 0.5:
                    break
            return x

    return Exit()


@built("module_call", SIGNS, shows="if")
def expert_by_index():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(2, 3)
            self.experts = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])

        def forward(self, x):
            chosen = self.gate(x).argmax()
            for place, expert in enumerate(self.experts):
                if chosen == place:
                    return expert(x)
            return x

    return Experts()


@built("module_call", lambda: [v(4, 3), v(40, 30), v(0, 0), v(1, 0), v(-9, 2)], shows="while")
def layer_in_while():
    class Fixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            n = 0
            while x.norm() > 0.9 and n < 6:
                x = torch.tanh(self.layer(x)) * 0.5
                n += 1
            return x, n

    return Fixed()
