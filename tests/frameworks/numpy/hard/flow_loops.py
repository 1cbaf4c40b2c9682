"""Programs that loop until their arrays say so, in every form that Python has for it."""

from __future__ import annotations

import itertools

import numpy as np

from tests.frameworks.numpy.hard.ledger import A, B, M, N, made, program

KIND = "loops on data"
CALLS = [(A,), (B,), (A * 100,), (np.zeros(4),)]
COUNTS = [(A, np.int64(3)), (B, np.int64(5)), (A, np.int64(0)), (A, np.int64(1))]


@program(KIND, *CALLS)
def flow_while(x):
    while np.abs(x).max() > 1:
        x = x / 2
    return x


@program(KIND, *CALLS)
def flow_while_count(x):
    rounds, total = 0, 0.0
    while x.max() > 0.1 and rounds < 50:
        x = x * 0.5
        total += 1.5
        rounds += 1
    return x, rounds, total


@program(KIND, *CALLS)
def flow_while_else(x):
    while x.max() > 0.1:
        x = x / 3
        if x.sum() > 90:
            break
    else:
        x = x - 1
    return x


@program(KIND, *CALLS)
def flow_while_true(x):
    steps = 0
    while True:
        x = x / 2
        steps += 1
        if np.abs(x).max() < 1:
            break
    return x, steps


@program(KIND, *CALLS)
def flow_while_continue(x):
    rounds, kept = 0, 0
    while rounds < 6:
        rounds += 1
        x = x - 0.75
        if x[0] > 0:
            continue
        kept += 1
        x = x * 1.5
    return x, kept


@program(KIND, *CALLS)
def flow_return_in_loop(x):
    for step in range(20):
        x = x / 2
        if np.abs(x).max() < 0.5:
            return x, step
    return x, -1


@program(KIND, *CALLS)
def flow_return_in_while(x):
    step = 0
    while step < 30:
        if x.max() < 1:
            return x * 10
        x = x / 2
        step += 1
    return x


@program(KIND, *COUNTS)
def flow_range_of_data(x, n):
    total = x * 0
    for i in range(n):
        total = total + x * i
    return total


@program(KIND, *CALLS)
def flow_range_of_item(x):
    total = 0
    for i in range(int(abs(x[0])) + 1):
        total += i * 2
    return total


@program(KIND, *CALLS)
def flow_range_three(x):
    last = int(abs(x[1]))
    found = np.zeros(1)
    for i in range(last, -1, -2):
        found = found * 3 + i
    return found


@program(KIND, *CALLS)
def flow_enumerate(x):
    place = -1
    for index, value in enumerate(x):
        if value > 0.75:
            place = index
            break
    return place


@program(KIND, *CALLS)
def flow_zip(x):
    total = 0.0
    for left, right in zip(x, x[::-1], strict=True):
        if left > right:
            total = total + left
    return total


@program(KIND, (M,), (N,), (M - 1,))
def flow_rows(m):
    kept = np.zeros(4)
    for row in m:
        if row.sum() < 2:
            continue
        kept = kept + row
    return kept


@program(KIND, (M,), (N,), (-M,))
def flow_nested_loops(m):
    steps = 0
    while m.max() > 0.5:
        inner = 0
        while m[0, -1] > 0.25 and inner < 3:
            m = m * 0.75
            inner += 1
        m = m - 0.125
        steps += inner
    return m, steps


@program(KIND, *CALLS)
def flow_nested_ranges(x):
    n = int(np.abs(x).sum()) % 4
    table = np.zeros((4, 4))
    for i in range(n):
        for j in range(i + 1):
            table[i, j] = i * 10 + j
    return table


@program(KIND, *CALLS)
def flow_list_filled(x):
    found = []
    while np.abs(x).max() > 0.5:
        found.append(x.max())
        x = x / 2
    return found, len(found)


@program(KIND, *CALLS)
def flow_list_to_array(x):
    found = []
    while np.abs(x).max() > 0.5:
        found.append(x)
        x = x / 2
    return np.array(found)


@program(KIND, (A,), (B,), (A * 100,))
def flow_list_stacked(x):
    found = [x]
    while np.abs(x).max() > 0.5:
        x = x / 2
        found.append(x)
    return np.stack(found), found[-1], found[0]


@program(KIND, *CALLS)
def flow_list_sometimes(x):
    found = []
    for value in x:
        if value > 0:
            found.append(value)
    return found


@program(KIND, *CALLS)
def flow_write_in_loop(x):
    count = 0
    while x[0] < 3:
        x += 1
        x[1] = count
        count += 1
    return x.sum(), count


@program(KIND, *CALLS)
def flow_write_to_made(x):
    out = np.zeros(8)
    place = 0
    while x.max() > 0.3 and place < 8:
        out[place] = x.max()
        x = x / 2
        place += 1
    return out


@program(KIND, *CALLS)
def flow_write_through_rows(x):
    table = x.reshape(2, 2)
    while np.abs(table).max() > 1:
        for row in table:
            row /= 2
    return table, x


@program(KIND, *CALLS)
def flow_swapped_buffers(x):
    new, old = x.copy(), x
    rounds = 0
    while np.abs(old).max() > 1:
        np.divide(old, 2, out=new)
        new, old = old, new
        rounds += 1
    return old, new, rounds


@program(KIND, *CALLS)
def flow_alias_in_loop(x):
    y = x
    while y.max() > 1:
        y[:] = y / 2
        y = y + 0
    return x, y


@program(KIND, *CALLS)
def flow_kept_best(x):
    best, at = x, 0
    rounds = 0
    while rounds < 5:
        x = np.cos(x * 3)
        rounds += 1
        if x.sum() > best.sum():
            best, at = x, rounds
    return best, at


@program(KIND, *CALLS)
def flow_random_loop(x):
    total = 0.0
    while total < np.abs(x).max():
        total = total + np.random.rand()
    return total + np.random.rand()


@program(KIND, *CALLS)
def flow_generator_loop(x):
    rng = np.random.default_rng(7)
    walk = np.zeros(4)
    while np.abs(walk).max() < 2:
        walk = walk + rng.normal(size=4) + x / 100
    return walk, rng.random()


@program(KIND, (A, np.random.default_rng(3)), (B, np.random.default_rng(4)), (A * 9, np.random.default_rng(3)))
def flow_generator_given(x, rng):
    hits = 0
    for _ in range(int(np.abs(x).sum())):
        if rng.random() < 0.5:
            hits += 1
    return hits


@program(KIND, *CALLS)
def flow_grows(x):
    y = x
    while y.sum() < 50 and y.size < 40:
        y = np.concatenate([y, x + 1])
    return y


@program(KIND, *CALLS)
def flow_shrinks(x):
    while x.size > 1 and x.sum() > 0.5:
        x = x[:-1]
    return x, len(x)


@program(KIND, *CALLS)
def flow_dtype_promoted(x):
    count = np.zeros(4, dtype=np.int64)
    while np.abs(x).max() > 1:
        count = count + 0.5
        x = x / 2
    return count


@program(KIND, *CALLS)
def flow_set_in_loop(x):
    last = None
    while np.abs(x).max() > 1:
        last = x
        x = x / 2
    return last, x


@program(KIND, *CALLS)
def flow_unbound_after(x):
    while np.abs(x).max() > 1:
        last = x.sum()
        x = x / 2
    return last


@program(KIND, *CALLS)
def flow_raise_in_loop(x):
    rounds = 0
    while x.max() > 0.5:
        x = x * 0.5
        rounds += 1
        if rounds > 5:
            raise RuntimeError("no convergence")
    return x, rounds


@program(KIND, *CALLS)
def flow_caught_in_loop(x):
    rounds = 0
    try:
        while x.max() > 0.5:
            x = x * 0.5
            rounds += 1
            if rounds > 5:
                raise RuntimeError
    except RuntimeError:
        return x, "gave up"
    return x, "done"


@program(KIND, *CALLS)
def flow_singular(x):
    matrix = np.outer(x, x) + np.eye(4)
    rounds = 0
    while rounds < 3 and np.linalg.det(matrix) > 0.5:
        matrix = matrix - np.linalg.inv(matrix)
        rounds += 1
    return matrix, rounds


@program(KIND, *CALLS)
def flow_islice(x):
    total = x * 0
    for k in itertools.count():
        if k > abs(x[0]):
            break
        total = total + k
    return total


def _half(x):
    while np.abs(x).max() > 2:
        x = x / 2
    return x


@program(KIND, *CALLS)
def flow_loop_in_called(x):
    return _half(x) + _half(x * 50)


@program(KIND, *CALLS)
def flow_branch_in_loop(x):
    ups = downs = 0
    while np.abs(x).max() > 0.25:
        if x.sum() > 0:
            x, ups = x - np.abs(x) / 2, ups + 1
        else:
            x, downs = x / 2, downs + 1
    return x, ups, downs


@program(KIND, *CALLS)
def flow_loop_in_branch(x):
    if x.sum() > 0:
        while x.max() > 1:
            x = x / 2
    else:
        for _ in range(3):
            x = x - 1
    return x


@program(KIND, *CALLS)
def flow_tuple_carried(x):
    state = (x, 0, {"low": x.min()})
    while state[0].max() > 1:
        state = (state[0] / 2, state[1] + 1, {"low": state[2]["low"] - 1})
    return state


@program(KIND, *CALLS)
def flow_collatz(x):
    n = int(np.abs(x).max()) + 1
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program(KIND, *CALLS)
def flow_errstate_in_loop(x):
    rounds = 0
    while rounds < 4:
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.sqrt(x) + 1 / x
        rounds += 1
        if not np.isfinite(x).all():
            break
    return x, rounds


class _Solver:
    def __init__(self):
        self.rounds = 0
        self.point = np.ones(4)
        self.losses = []

    def solve(self, x):
        self.losses.clear()
        while np.abs(self.point - x).max() > 0.1:
            self.point = self.point - 0.5 * (self.point - x)
            self.rounds += 1
        return self.point.sum(), self.rounds

    def logged(self, x):
        rate = 0.5
        while np.abs(x).max() > 0.1:
            x = x * rate
            self.losses.append(float(x.max()))
        return x


@made(KIND, *CALLS)
def flow_solver():
    return _Solver().solve


@made(KIND, *CALLS)
def flow_logging():
    return _Solver().logged


@made(KIND, *CALLS)
def flow_buffer():
    buffer = np.zeros(4)

    def program(x):
        while buffer.sum() < np.abs(x).sum():
            buffer[:] += 1
        return buffer * 2

    return program
