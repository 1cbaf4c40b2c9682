"""Programs as people write them with NumPy: simulations, tables, parsers, caches, records, streams, dates, games."""

from __future__ import annotations

import bisect
import collections
import dataclasses
import enum
import functools
import heapq
import itertools
import json
import math

import numpy as np

from tests.frameworks.numpy.hard.ledger import LONG, A, B, J, M, N, made, program

KIND = "workloads"
SQUARE = np.array([[4.0, 1, 0], [1, 3, 0.5], [0, 0.5, 2]])
TYPED = np.dtype([("name", "U4"), ("age", "i4"), ("score", "f8")])
PEOPLE = np.array([("ann", 30, 1.5), ("bob", 25, 2.5), ("cyd", 40, 0.5)], dtype=TYPED)
DAYS = np.array(["2024-02-27", "2024-03-01", "2023-12-31"], dtype="M8[D]")


@program(KIND, (SQUARE, 1e-6), (SQUARE * 2, 1e-2), (np.eye(2) * 3, 1e-8), (SQUARE, 1))
def power_method(matrix, tolerance):
    vector = np.ones(len(matrix)) / np.sqrt(len(matrix))
    value, rounds = 0.0, 0
    while rounds < 50:
        new = matrix @ vector
        size = np.linalg.norm(new)
        new /= size
        rounds += 1
        if abs(size - value) < tolerance:
            break
        vector, value = new, size
    return value, vector, rounds


@program(KIND, (LONG, np.exp(-0.3 * LONG)), (A, B), (LONG[:3], LONG[:3] * 0))
def fit_by_gauss_newton(t, y):
    p = np.array([1.0, 0.1])
    history = []
    for _ in range(6):
        model = p[0] * np.exp(-p[1] * t)
        residual = y - model
        jacobian = np.column_stack([np.exp(-p[1] * t), -p[0] * t * np.exp(-p[1] * t)])
        try:
            step = np.linalg.solve(jacobian.T @ jacobian + 1e-9 * np.eye(2), jacobian.T @ residual)
        except np.linalg.LinAlgError:
            break
        p = p + np.clip(step, -1, 1)
        history.append(float(residual @ residual))
        if np.abs(step).max() < 1e-3:
            break
    return p, history, len(history)


@program(KIND, (np.array([1, 1, 2, 2, 2, 3]),), (np.array([5]),), (np.array([1, 2, 1, 1]),), (np.array([], int),))
def encode_runs(values):
    runs = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return [(value, count) for value, count in runs]


@program(KIND, ("kitten", "sitting"), ("flaw", "lawn"), ("", "abc"), ("same", "same"))
def edit_distance_of_words(left, right):
    table = np.zeros((len(left) + 1, len(right) + 1), dtype=int)
    table[:, 0], table[0, :] = np.arange(len(left) + 1), np.arange(len(right) + 1)
    for i, a in enumerate(left, 1):
        for j, b in enumerate(right, 1):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a != b))
    return table[-1, -1], table


@program(KIND, (PEOPLE,), (PEOPLE[::-1],), (PEOPLE[:1],), (PEOPLE[PEOPLE["age"] > 90],))
def records_are_sorted_and_written(people):
    order = np.argsort(people["score"], kind="stable")[::-1]
    people["age"][people["score"] > 1] += 1
    best = people[order[:2]]
    best["score"] *= 10
    return best, people["name"].tolist(), people["age"].mean() if len(people) else None


@program(KIND, (DAYS,), (DAYS[:2],), (np.array(["2025-01-01"], "M8[D]"),))
def dates_by_month(days):
    months = days.astype("M8[M]")
    found = {}
    for month, day in zip(months, days, strict=True):
        found.setdefault(str(month), []).append(int((day - month.astype("M8[D]")) / np.timedelta64(1, "D")))
    gaps = np.diff(np.sort(days)).astype(int)
    return found, gaps, days.max() - days.min(), np.busday_count(days.min(), days.max())


@program(KIND, (np.ma.masked_less(np.arange(5.0), 2),), (np.ma.masked_invalid([1.0, np.nan]),))
def masked_given(values):
    return values.mean(), values.filled(-1)


@program(KIND, (A,), (B,), (LONG,))
def masked_inside(values):
    masked = np.ma.masked_where(values < 0, values)
    return masked.mean(), masked.filled(0), masked.mask, np.ma.count(masked)


@made(KIND, (A,), (B,), (A,), (LONG,))
def generator_of_an_object():
    class Sampler:
        def __init__(self):
            self.rng = np.random.default_rng(7)
            self.drawn = 0

        def __call__(self, x):
            noise = self.rng.normal(size=x.shape)
            self.drawn += noise.size
            kept = x[self.rng.random(x.shape) < 0.5]
            return x + noise, kept, self.rng.permutation(len(x)), self.drawn

    return Sampler()


@made(KIND, (A, 2), (B, 3), (A, 2), (LONG, 2))
def cache_by_key():
    cache = {}

    def powers(x, n):
        key = (len(x), n)
        if key not in cache:
            cache[key] = np.arange(len(x)) ** n
        return x * cache[key], len(cache)

    return powers


@made(KIND, (A,), (B,), (LONG,), (A,))
def memoised_by_size():
    @functools.cache
    def window(size):
        return np.hanning(size)

    return lambda x: x * window(len(x))


@made(KIND, (A,), (B,), (A * 0,), (B,))
def statistics_that_go_on():
    state = {"count": 0, "mean": np.zeros(4), "m2": np.zeros(4), "seen": []}

    def update(x):
        state["count"] += 1
        delta = x - state["mean"]
        state["mean"] += delta / state["count"]
        state["m2"] += delta * (x - state["mean"])
        state["seen"].append(x.sum())
        if len(state["seen"]) > 2:
            state["seen"].pop(0)
        return np.sqrt(state["m2"] / max(state["count"] - 1, 1)), list(state["seen"])

    return update


@program(KIND, (M,), (N,), (M[:1],), (M.T,))
def writes_through_many_views(x):
    top, flat, diagonal = x[0], x.reshape(-1), x[::-1, ::2]
    top += 1
    flat[-1] = 100
    diagonal *= -1
    inner = x[:, 1:]
    inner[inner > 3] = 0
    return x, top, flat.base is x or flat.base is x.base, np.shares_memory(flat, x)


@program(KIND, (M, N), (M + 1, N[:1]), (N, N[0]))
def out_and_where(x, y):
    out = np.zeros(np.broadcast_shapes(x.shape, y[:1].shape))
    np.add(x, y[:1], out=out, where=x > 0)
    np.maximum(out, 1, out=out)
    again = np.sqrt(out, out=out)
    return again is out, out, np.cumsum(out, axis=1, out=out)


@program(KIND, (M, 3), (M.T, 2), (np.ones((2, 2)), 1), (M, 1))
def blurred(image, size):
    pad = size // 2
    padded = np.pad(image, pad, mode="edge")
    out = np.empty_like(image)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            out[i, j] = padded[i : i + size, j : j + size].mean()
    return out, np.abs(out - image).max()


@program(KIND, (np.sin(np.arange(16.0)),), (np.arange(9.0),), (np.ones(4),), (np.array([1.0]),))
def spectrum_of_a_signal(signal):
    window = np.hanning(len(signal)) if len(signal) > 4 else np.ones(len(signal))
    spectrum = np.fft.rfft(signal * window)
    power = np.abs(spectrum) ** 2
    peak = int(power[1:].argmax()) + 1 if len(power) > 1 else 0
    spectrum[peak] = 0
    return np.fft.irfft(spectrum, len(signal)), peak, np.fft.rfftfreq(len(signal))[peak]


@program(KIND, (np.array([1 + 2j, -1j, 0.5]), 2), (np.array([1, 2, 3.0]), 3), (np.array([0j]), 1))
def roots_of_unity(z, n):
    turned = z * np.exp(2j * np.pi * np.arange(n)[:, None] / n)
    turned.real[turned.real < 0] = 0
    return turned, np.angle(turned).round(6), turned.conj().imag, z.dtype.kind


@program(KIND, (np.array([[0, 1, 0], [0, 1, 0], [0, 1, 0]]), 2), (np.eye(4, dtype=int), 1), (np.zeros((2, 2), int), 3))
def life(board, rounds):
    seen = {board.tobytes()}
    for turn in range(rounds):
        around = sum(np.roll(board, shift, (0, 1)) for shift in itertools.product((-1, 0, 1), repeat=2) if any(shift))
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)
        if board.tobytes() in seen:
            return board, turn
        seen.add(board.tobytes())
    return board, -1


@program(KIND, (np.array([[0, 4, 1], [4, 0, 2], [1, 2, 0]]), 0), (np.array([[0, 0], [0, 0]]), 1), (np.ones((4, 4)), 2))
def shortest_paths(weights, start):
    distance = np.full(len(weights), np.inf)
    distance[start] = 0
    heap, done = [(0.0, start)], set()
    while heap:
        d, node = heapq.heappop(heap)
        if node in done:
            continue
        done.add(node)
        for other in np.flatnonzero(weights[node]):
            new = d + weights[node, other]
            if new < distance[other]:
                distance[other] = new
                heapq.heappush(heap, (float(new), int(other)))
    return distance


@program(KIND, (np.array([3, 1, 2]), 5), (np.array([2, 2, 9]), 4), (np.array([7]), 7), (np.array([5, 5]), 3))
def ways_to_pay(coins, amount):
    ways = np.zeros(amount + 1, dtype=np.int64)
    ways[0] = 1
    for coin in coins:
        for total in range(coin, amount + 1):
            ways[total] += ways[total - coin]
    return ways[amount], ways


class Mode(enum.Enum):
    SUM = "sum"
    MAX = "max"


@program(KIND, (A, Mode.SUM), (B, Mode.MAX), (A, Mode.SUM))
def chosen_by_an_enum(x, mode):
    return {Mode.SUM: np.sum, Mode.MAX: np.max}[mode](x), mode.value


@dataclasses.dataclass
class Particle:
    position: np.ndarray
    velocity: np.ndarray
    best: float = math.inf
    trail: list = dataclasses.field(default_factory=list)


@program(
    KIND,
    (Particle(A.copy(), B.copy()), 0.1),
    (Particle(B.copy(), A.copy(), 1.0), 0.5),
    (Particle(LONG.copy(), LONG * 2, 0.0, [1.0]), 1),
)
def particle_moves(particle, step):
    particle.position += step * particle.velocity
    energy = float((particle.position**2).sum())
    if energy < particle.best:
        particle.best = energy
        particle.velocity = -particle.velocity
    particle.trail.append(energy)
    return energy, len(particle.trail)


@program(KIND, ({"a": A, "b": B},), ({"b": A, "a": B},), ({"a": A},), ({"a": A, "b": B, "c": A},))
def table_of_columns(table):
    rows = len(next(iter(table.values())))
    means = {name: column.mean() for name, column in table.items()}
    table["sum"] = sum(table.values())
    order = sorted(means, key=means.get)
    return rows, means, order, list(table)


@program(KIND, ([A, B],), ([B],), ([A, A, B],), ([],))
def groups_are_merged(groups):
    groups.sort(key=lambda g: -g.sum())
    merged = np.concatenate(groups) if groups else np.empty(0)
    groups.append(merged)
    return merged, [len(g) for g in groups]


@program(KIND, (J,), (np.array([0, 0, 0]),), (np.array([9, 8, 9, 8, 7]),))
def counted(values):
    counts = collections.Counter(values.tolist())
    common = counts.most_common(1)[0]
    unique, index, inverse = np.unique(values, return_index=True, return_inverse=True)
    return common, unique, index, inverse, {int(k): v for k, v in zip(unique, np.bincount(inverse), strict=True)}


@program(KIND, (A, 0.5), (B, 0.0), (LONG, 2.5), (np.sort(A), 2))
def inserted_in_order(values, new):
    kept = sorted(values.tolist())
    place = bisect.bisect_left(kept, new)
    kept.insert(place, new)
    same = np.searchsorted(np.sort(values), new)
    return kept, place, same == place


@program(KIND, (A, "%.2f"), (B, "%g"), (LONG, "%d"))
def lines_of_text(values, form):
    lines = [form % value for value in values]
    return ", ".join(lines), np.array(lines), np.array2string(values, precision=2)


@program(KIND, ("1 2 3\n4 5 6",), ("1 2\n3 4",), ("7",), ("a b",))
def parsed(text):
    rows = [[float(cell) for cell in line.split()] for line in text.splitlines()]
    return np.array(rows).sum(0)


@program(KIND, (A, B), (B, A), (A, A), (A, LONG))
def raises_and_catches(x, y):
    try:
        z = x + y
    except ValueError:
        z = np.concatenate([x, y])
    with np.errstate(divide="raise", invalid="raise"):
        try:
            return np.log(z)
        except FloatingPointError as error:
            return str(error)


@program(KIND, (M, None), (M, (0, 1)), (N, 1), (N, -1))
def over_axes(x, axis):
    mean = x.mean(axis=axis, keepdims=True)
    spread = x.std(axis=axis, keepdims=True, ddof=0)
    return np.squeeze((x - mean) / np.where(spread == 0, 1, spread)), mean.ndim, mean.shape


@program(KIND, (A,), (M,), (np.float64(3),), (np.ones((2, 2, 2)),), (3,))
def any_rank(x):
    x = np.atleast_1d(x)
    weights = np.arange(1, x.shape[-1] + 1)
    total = (x * weights).sum(-1)
    return total / weights.sum(), x[..., -1:], x.reshape(-1, x.shape[-1]).shape


@program(KIND, (A.astype(np.float32), 2), (J, 2), (J.astype(np.uint8), 200), (A > 0, True), (A, 2.0))
def promoted(x, n):
    return x + n, x * np.float32(n), (x + n).dtype.name, np.result_type(x, np.int8), x // 1


@program(KIND, (np.array([250, 5], np.uint8), 10), (np.array([1, 2], np.uint8), 1), (np.array([127], np.int8), 1))
def wraps_around(x, n):
    total = x + np.asarray(n, x.dtype)
    total -= x.dtype.type(1)
    return total, total.astype(int).sum(), x.dtype.itemsize


@made(KIND, (A,), (B,), (A,))
def ring_of_arrays():
    class Ring:
        def __init__(self):
            self.items = np.zeros((3, 4))
            self.head = 0
            self.log = collections.deque(maxlen=2)

        def __call__(self, x):
            self.items[self.head] = x
            self.head = (self.head + 1) % len(self.items)
            self.log.append(self.head)
            view = self.items[self.head :]
            return view.sum(), self.items, list(self.log)

    return Ring()


@made(KIND, (A,), (B,), (A,))
def result_is_the_buffer():
    buffer = np.zeros(4)

    def fill(x):
        np.multiply(x, 2, out=buffer)
        return buffer

    return fill


@made(KIND, (0.5,), (0.1,), (0.9,), (0.5,))
def annealed():
    rng = np.random.RandomState(3)
    best = [np.inf]

    def step(heat):
        x = rng.uniform(-2, 2, size=3)
        energy = (x**2).sum()
        for _ in range(4):
            move = x + heat * rng.standard_normal(3)
            new = (move**2).sum()
            if new < energy or rng.rand() < np.exp((energy - new) / heat):
                x, energy = move, new
        best[0] = min(best[0], energy)
        return best[0], energy

    return step


@program(KIND, (np.random.default_rng(1), 5), (np.random.default_rng(1), 3), (np.random.default_rng(2), 5))
def shuffled_and_split(rng, count):
    order = np.arange(count)
    rng.shuffle(order)
    folds = np.array_split(order, 2)
    chosen = rng.choice(order, size=2, replace=False)
    return folds, chosen, rng.integers(0, 10, 3)


@program(KIND, (A,), (B,), (LONG,))
def generator_function(x):
    def pairs():
        total = 0.0
        for left, right in itertools.pairwise(x):
            total += left * right
            yield total, right

    return list(pairs()), dict(enumerate(x)), max(pairs(), key=lambda pair: pair[0])


@program(KIND, (M, [1, 0]), (N, [0]), (M, np.array([2, 2])), (M, slice(0, 2)), (M, [True, False, True]))
def picked(x, which):
    part = x[which]
    part = part * 2
    x[which] = 0
    return part, x.sum(), part.flags["C_CONTIGUOUS"]


@program(KIND, (A, B), (B, A), (LONG, LONG))
def closures_in_a_list(x, y):
    functions = [lambda v, i=i: v * i + y for i in range(3)]
    composed = functools.reduce(lambda f, g: lambda v: g(f(v)), functions)
    return composed(x), [f(x).sum() for f in functions]


@program(KIND, (M,), (N,), (np.ones((1, 2)),))
def einsum_and_strides(x):
    gram = np.einsum("ij,kj->ik", x, x)
    windows = np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)
    trace = np.einsum("ii->", gram)
    return gram, windows.max(-1), trace, x.strides[0] // x.itemsize


@program(KIND, (A, lambda v: v * 2), (B, np.negative), (A, np.sort))
def function_given(x, function):
    return np.apply_along_axis(function, 0, x), function(x)[0]


@program(KIND, (5,), (1,), (10,), (0,))
def only_numbers(n):
    table = np.zeros(n + 2, dtype=object)
    table[0], table[1] = 0, 1
    for i in range(2, n + 1):
        table[i] = table[i - 1] + table[i - 2]
    return table[n], math.factorial(n), np.arange(n).sum()


@program(KIND, (A, {"low": -1, "high": 1}), (B, {"high": 2, "low": 0}), (LONG, {"low": 2}), (A, {}))
def options_in_a_dict(x, options):
    low, high = options.get("low", -np.inf), options.get("high", np.inf)
    inside = (x >= low) & (x <= high)
    return np.clip(x, low, high), inside.all(), np.count_nonzero(~inside), sorted(options)


@program(KIND, (A,), (B,), (LONG,))
def copies_and_identity(x):
    same, view, copied = np.asarray(x), x.view(), np.array(x)
    view[0], copied[0] = 7, 8
    return same is x, view, copied, x, np.asarray(x, dtype=np.float32) is x, np.ascontiguousarray(x) is x


@program(KIND, (A, 2.0), (A, 3.0), (B, 2.5))
def number_as_json(x, n):
    return json.loads(json.dumps({"n": [n, x.shape[0]]}))


@program(KIND, (A, 2.0), (A, 3.0), (B, 1.0))
def number_as_a_width(x, n):
    return "%*d" % (int(n), 3), math.ldexp(1.0, int(n)), collections.deque(x, maxlen=int(n))  # noqa: UP031


@made(KIND, (A,), (A,), (A,), (B,))
def raises_stop_iteration():
    left = {"count": 2}

    def step(x):
        left["count"] -= 1
        if left["count"] < 0:
            raise StopIteration("no more")
        return x * left["count"]

    return step
