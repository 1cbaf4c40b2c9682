"""Algorithms whose course depends on their data: decoding, search, solvers, early exits, routing."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.control_flow.register import built, m, program, s, v

LARGE = lambda: [v(3, 4), v(30, 40), v(0.1, 0), v(0, 0), v(-30, 4)]
SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
NUMBERS = lambda: [s(2.0), s(9.0), s(0.25), s(100.0), s(1.0)]


def _seeded(make):
    torch.manual_seed(3)
    return make()


def _states():
    return _seeded(lambda: [torch.randn(4) * scale for scale in (1.0, 3.0, 0.1, 2.0, 5.0)])


def _logits():
    return _seeded(lambda: [torch.randn(5, 4) * 2 for _ in range(5)])


@built("algorithm", _states)
def greedy_decoding():
    weights = _seeded(lambda: torch.randn(6, 4))
    feedback = _seeded(lambda: torch.randn(6, 4)) * 0.7

    def decode(state):
        tokens = []
        for _ in range(8):
            token = (weights @ state).argmax()
            tokens.append(token)
            if token == 3:
                break
            state = torch.tanh(state + feedback[token])
        return torch.stack(tokens), state

    return decode


@built("algorithm", _states)
def decoding_with_a_while():
    weights = _seeded(lambda: torch.randn(6, 4))

    def decode(state):
        length, token = 0, torch.tensor(-1)
        score = state.new_zeros(())
        while length < 7 and token != 4:
            logits = F.log_softmax(weights @ state, 0)
            token = logits.argmax()
            score = score + logits[token]
            state = torch.sin(state * 1.5 + token)
            length += 1
        return score, length, token

    return decode


@built("algorithm", _states)
def sampling_until_an_end():
    weights = _seeded(lambda: torch.randn(4, 4))

    def sample(state):
        drawn = 0
        while drawn < 6:
            token = torch.multinomial(torch.softmax(weights @ state, 0), 1).item()
            drawn += 1
            if token == 3:
                break
            state = state.roll(1) + token
        return state, drawn

    return sample


@program("algorithm", _logits)
def nucleus_of_each_row(logits):
    kept = []
    for row in logits:
        probabilities, order = row.softmax(0).sort(descending=True)
        count = int((probabilities.cumsum(0) < 0.8).sum()) + 1
        kept.append(order[:count].sum())
    return torch.stack(kept)


@program("algorithm", lambda: [(v(3, 1, 2, 5), s(n)) for n in (2, 1, 3, 4, 2)])
def top_k_by_hand(x, k):
    left, best = x.clone(), []
    for _ in range(int(k)):
        place = left.argmax()
        best.append(left[place])
        left[place] = -torch.inf
    return torch.stack(best)


@built("algorithm", lambda: [torch.full((4,), n) for n in (0.5, 3.0, -2.0, 0.0, 9.0)])
def early_exit_network():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
            self.exits = nn.ModuleList([nn.Linear(4, 2) for _ in range(3)])

        def forward(self, x):
            for depth, (layer, leave) in enumerate(zip(self.layers, self.exits)):
                x = torch.relu(layer(x))
                answer = leave(x).softmax(0)
                if answer.max() > 0.7:
                    return answer, depth
            return answer, -1

    return _seeded(Network)


@built("algorithm", _states)
def deep_equilibrium():
    weights = _seeded(lambda: torch.randn(4, 4)) * 0.2

    def solve(x):
        z = torch.zeros_like(x)
        for step in range(50):
            following = torch.tanh(weights @ z + x)
            if (following - z).norm() < 1e-4 * following.norm() + 1e-6:
                return following, step
            z = following
        return z, 50

    return solve


@program("algorithm", LARGE, shows="while")
def adaptive_steps_of_an_equation(x):
    t, h, taken, refused = 0.0, 0.5, 0, 0
    while t < 1.0:
        if t + h > 1.0:
            h = 1.0 - t
        coarse = x + h * -x
        half = x + h / 2 * -x
        fine = half + h / 2 * -half
        error = (fine - coarse).abs().max()
        if error > 0.5 and h > 0.05:
            h = h / 2
            refused += 1
            continue
        x, t = fine, t + h
        taken += 1
        if error < 0.05:
            h = h * 2
    return x, taken, refused


@program("algorithm", lambda: _seeded(lambda: [torch.randn(n, 4) * 2 for n in (5, 3, 7, 1, 2)]))
def viterbi(scores):
    transition = torch.linspace(-1, 1, 16).reshape(4, 4)
    best, back = scores[0], []
    for step in range(1, scores.shape[0]):
        total = best.unsqueeze(1) + transition
        best, where = total.max(dim=0)
        best = best + scores[step]
        back.append(where)
    state = best.argmax()
    path = [state]
    for where in reversed(back):
        state = where[state]
        path.append(state)
    return torch.stack(path[::-1]), best.max()


@program("algorithm", _logits)
def collapse_repeats(logits):
    tokens, kept, last = logits.argmax(1), [], -1
    for token in tokens.tolist():
        if token != last and token != 0:
            kept.append(token)
        last = token
    return len(kept), sum(kept)


@program("algorithm", lambda: _seeded(lambda: [(torch.rand(4), torch.rand(4)) for _ in range(5)]))
def accepted_drafts(draft, target):
    accepted = 0
    for p, q in zip(draft, target):
        if q / p < 0.8:
            break
        accepted += 1
    return draft[:accepted], target[accepted:].sum(), accepted


@built("algorithm", _states)
def experts_by_largest_gate():
    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(4, 3)
            self.experts = nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.Identity()])

        def forward(self, x):
            chosen = self.gate(x).argmax()
            for place, expert in enumerate(self.experts):
                if chosen == place:
                    return expert(x)
            return x

    return _seeded(Experts)


@program("algorithm", NUMBERS, shows="while")
def bisection(target):
    low, high = torch.zeros(()), torch.maximum(target, torch.ones(()))
    while high - low > 1e-3:
        middle = (low + high) / 2
        if middle * middle < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@program("algorithm", LARGE, shows="while")
def line_search(x):
    step, value = 1.0, (x**2).sum() + x.sum()
    while ((x - step * (2 * x + 1)) ** 2).sum() + (x - step * (2 * x + 1)).sum() > value and step > 1e-3:
        step *= 0.5
    return x - step * (2 * x + 1), step


@program(
    "algorithm",
    lambda: [m((4, 1), (1, 3)), m((1, 0), (0, 1)), m((2, 5), (0.5, 1)), m((0, 3), (1, 0)), m((9, 1), (2, 2))],
)
def power_iteration(a):
    x, value = torch.ones(2), torch.zeros(())
    for n in range(30):
        y = a @ x
        following = y.norm()
        x = y / following
        if (following - value).abs() < 1e-3:
            break
        value = following
    return x, value, n


@program(
    "algorithm", lambda: [m((4, 1), (1, 3)), m((1, 0), (0, 1)), m((0, 5), (2, 1)), m((0, 3), (1, 0)), m((9, 1), (2, 2))]
)
def elimination_with_pivots(a):
    a, sign = a.clone(), 1
    for column in range(a.shape[0]):
        pivot = column + int(a[column:, column].abs().argmax())
        if pivot != column:
            a[[column, pivot]] = a[[pivot, column]]
            sign = -sign
        for row in range(column + 1, a.shape[0]):
            a[row] = a[row] - a[column] * (a[row, column] / a[column, column])
    return a, sign


@program("algorithm", lambda: [v(3, 1, 2), v(1, 2, 3), v(3, 2, 1), v(2, 2, 1), v(0, 5, -1)])
def bubble_sort(x):
    x, swaps = list(x), 0
    for end in range(len(x) - 1, 0, -1):
        for i in range(end):
            if x[i] > x[i + 1]:
                x[i], x[i + 1] = x[i + 1], x[i]
                swaps += 1
    return torch.stack(x), swaps


@program("algorithm", lambda: [(v(1, 3, 5, 7), s(n)) for n in (4.0, 0.0, 8.0, 5.0, 6.5)], shows="while")
def binary_search(x, key):
    low, high = 0, x.shape[0]
    while low < high:
        middle = (low + high) // 2
        if x[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@program("algorithm", lambda: [s(n) for n in (12, 1, 7, 100, 27)], shows="while")
def collatz(n):
    steps = 0
    while n != 1 and steps < 30:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return n, steps


@program("algorithm", lambda: [(s(a), s(b)) for a, b in ((12, 18), (7, 5), (9, 3), (0, 4), (100, 75))], shows="while")
def greatest_common_divisor(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@built(
    "algorithm",
    lambda: _seeded(lambda: [(torch.randn(n, 4), s(k)) for n, k in ((3, 2), (3, 3), (5, 1), (2, 2), (4, 4))]),
)
def recurrent_until_a_length():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.GRUCell(4, 4)

        def forward(self, x, length):
            state, outputs = torch.zeros(1, 4), []
            for t in range(x.shape[0]):
                if t >= length:
                    break
                state = self.cell(x[t : t + 1], state)
                outputs.append(state)
            return torch.cat(outputs), state

    return _seeded(Reader)


@built("algorithm", _states)
def pondering():
    class Ponder(nn.Module):
        def __init__(self):
            super().__init__()
            self.step, self.halt = nn.Linear(4, 4), nn.Linear(4, 1)

        def forward(self, x):
            left, total, n = torch.ones(1), torch.zeros(4), 0
            while left > 0.05 and n < 8:
                x = torch.tanh(self.step(x))
                p = torch.sigmoid(self.halt(x))
                spent = torch.minimum(p, left)
                total, left, n = total + spent * x, left - spent, n + 1
            return total + left * x, n

    return _seeded(Ponder)


@program("algorithm", LARGE)
def clipped_gradient_step(x):
    w = x.detach().clone().requires_grad_()
    loss = (w**2).sum()
    (gradient,) = torch.autograd.grad(loss, w)
    norm = gradient.norm()
    if norm > 1:
        gradient = gradient / norm
    return w.detach() - 0.1 * gradient, norm


@built("algorithm", SIGNS, state=lambda model: (model.best, model.waited))
def patience_of_a_scheduler():
    class Scheduler(nn.Module):
        def __init__(self):
            super().__init__()
            self.best, self.waited, self.rate = float("inf"), 0, 1.0

        def forward(self, x):
            loss = x.sum().item()
            if loss < self.best:
                self.best, self.waited = loss, 0
            else:
                self.waited += 1
                if self.waited > 1:
                    self.rate, self.waited = self.rate * 0.5, 0
            return x * self.rate

    return Scheduler()


@program("algorithm", lambda: _seeded(lambda: [torch.rand(n, 4) for n in (4, 6, 2, 8, 1)]))
def suppressed_boxes(x):
    scores, order = x[:, 0], x[:, 0].argsort(descending=True)
    kept = []
    while order.numel() > 0:
        first = order[0]
        kept.append(first)
        order = order[1:]
        order = order[(scores[order] - scores[first]).abs() > 0.3]
    return torch.stack(kept)


@program("algorithm", lambda: [v(0.2, 0.4), v(0.9, 0.1), v(0.5, 0.5), v(-1, 2), v(3, 3)])
def tree_of_decisions(x):
    if x[0] < 0.5:
        if x[1] < 0.3:
            leaf = 0
        elif x[1] < 0.6:
            leaf = 1
        else:
            leaf = 2
    else:
        leaf = 3 if x[1] < 0.4 else 4
    return torch.linspace(0, 1, 5)[leaf], leaf


@program("algorithm", lambda: [v(1, 2, 3, 4), v(4, 3, 2, 1), v(1, -5, 6, 2), v(-1, -2, -3, -4), v(0, 0, 0, 0)])
def best_running_sum(x):
    best = here = x[0]
    start = first = last = 0
    for i in range(1, x.shape[0]):
        if here < 0:
            here, start = x[i], i
        else:
            here = here + x[i]
        if here > best:
            best, first, last = here, start, i
    return best, first, last


@program("algorithm", lambda: [(v(1, 2), s(t)) for t in (0.5, 0.0, 1.5, -1.0, 0.9)])
def warmup_and_decay(x, step):
    if step < 0:
        raise ValueError("step must not be negative")
    if step < 0.5:
        rate = step / 0.5
    elif step < 1:
        rate = torch.ones(())
    else:
        rate = torch.exp(1 - step)
    return x * rate


@program("algorithm", lambda: [torch.tensor(one) for one in ([1, 2, 0], [0, 1, 2], [3, 3, 0], [5, 1, 4], [2, 2, 2])])
def interpreter_of_codes(codes):
    stack = [torch.ones(()), torch.full((), 2.0)]
    for code in codes.tolist():
        if code == 0:
            stack.append(stack[-1] * 2)
        elif code == 1:
            stack[-1] = stack[-1] + 1
        elif code == 2 and len(stack) > 1:
            stack.append(stack.pop() + stack.pop())
        else:
            stack[-1] = -stack[-1]
    return stack[-1], len(stack)
