"""Dynamic programming, graphs, encodings, and other algorithms on tables of whole numbers."""

from __future__ import annotations

import numpy as np

from tests.frameworks.numpy.realistic.register import floats, grid, noise, program


def ints(*values):
    return np.array(values, dtype=int)


@program(
    (ints(1, 2, 3), ints(1, 3)), (ints(1, 2), ints(1, 2)), (ints(1, 2, 3, 4), ints(4, 3, 2)), (ints(5), ints(6, 7))
)
@program.more((floats(1, 2), floats(2, 2)))
def edit_distance(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    table[:, 0] = np.arange(len(a) + 1)
    table[0, :] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
    return table[-1, -1]


@program((ints(1, 2, 3, 2), ints(2, 3, 2)), (ints(1, 2), ints(3, 4)), (ints(1, 1, 1), ints(1, 1)), (ints(9), ints(9)))
@program.more((ints(1, 2, 3, 4, 5), ints(2, 4)))
def longest_common_subsequence(a, b):
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int32)
    for i, left in enumerate(a):
        for j, right in enumerate(b):
            if left == right:
                table[i + 1, j + 1] = table[i, j] + 1
            else:
                table[i + 1, j + 1] = np.maximum(table[i, j + 1], table[i + 1, j])
    return int(table[len(a), len(b)])


@program(
    (noise(0, 4, 2), noise(1, 2, 2)), (noise(2, 4, 2), noise(3, 2, 2)), (noise(4, 7, 3), noise(5, 3, 3)),
    (noise(6, 1, 2), noise(7, 2, 2)), (np.float32(noise(8, 3, 2)), np.float32(noise(9, 2, 2))),
)  # fmt: skip
def viterbi(scores, moves):
    best, back = scores[0], []
    for score in scores[1:]:
        candidates = best[:, None] + moves
        back.append(candidates.argmax(axis=0))
        best = candidates.max(axis=0) + score
    state = int(best.argmax())
    path = [state]
    for pointers in reversed(back):
        state = int(pointers[state])
        path.append(state)
    return best.max(), path[::-1]


@program(
    (ints(1, 3, 4), ints(1, 4, 5), 7),
    (ints(2, 3), ints(3, 4), 5),
    (ints(1), ints(1), 0),
    (ints(5, 4, 6), ints(10, 40, 30), 10),
)
@program.more((ints(1, 3, 4), ints(1, 4, 5), 3))
def knapsack(weights, values, capacity):
    best = np.zeros(capacity + 1, dtype=int)
    for weight, value in zip(weights, values):
        for room in range(capacity, weight - 1, -1):
            best[room] = max(best[room], best[room - weight] + value)
    return best[capacity]


@program(
    (ints(1, 1, 2, 2, 2),), (ints(3, 3),), (ints(1, 2, 3, 4),), (floats(1, 1, 0),), (np.array([True, False, False]),)
)
def run_length_encoding(values):
    if len(values) == 0:
        return values, np.array([], dtype=int)
    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    lengths = np.diff(np.append(starts, len(values)))
    return values[starts], lengths


@program(
    (ints(1, 1, 2),),
    (
        ints(
            3,
        ),
    ),
    (ints(1, 2, 3, 4),),
    (floats(1, 1, 0),),
    (ints(7, 7, 7, 8),),
)
def run_length_encoding_by_loop(values):
    runs = []
    for value in values:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([value, 1])
    return [value for value, _ in runs], [count for _, count in runs]


@program((ints(0, 1, 1), 3), (ints(2, 2, 2), 3), (ints(0, 5, 5, 1), 6), (ints(), 2), (np.uint8([1, 0]), 2))
def histogram_by_loop(values, bins):
    counts = np.zeros(bins, dtype=int)
    for value in values:
        counts[value] += 1
    return counts


@program((floats(0.1, 0.5, 0.9), 2), (floats(0.2, 0.2), 4), (noise(0, 9), 3), (np.array([1, 2, 3]), 3), (grid(2, 3), 2))
def histogram_of_values(values, bins):
    low, high = values.min(), values.max()
    edges = np.linspace(low, high, bins + 1)
    places = np.clip(np.searchsorted(edges, values.ravel(), side="right") - 1, 0, bins - 1)
    return np.bincount(places, minlength=bins), edges


@program(
    (ints(0, 1, 2), [(0, 1)]), (ints(0, 1, 2), [(1, 2)]), (np.arange(5), [(0, 1), (2, 3), (1, 2)]), (np.arange(2), [])
)
@program.more((np.arange(4), [(3, 0), (2, 3)]))
def union_find(parents, edges):
    parents = parents.copy()

    def find(i):
        while parents[i] != i:
            parents[i] = parents[parents[i]]
            i = parents[i]
        return i

    for a, b in edges:
        left, right = find(a), find(b)
        if left != right:
            parents[right] = left
    return np.array([find(i) for i in range(len(parents))])


@program((np.eye(3),), (grid(2, 4) % 3,), (np.zeros((2, 2)),), (np.array([[0, 5], [7, 0]]),), (grid(5, 5) % 2,))
def to_sparse_rows(dense):
    data, columns, starts = [], [], [0]
    for row in dense:
        for j, value in enumerate(row):
            if value != 0:
                data.append(value)
                columns.append(j)
        starts.append(len(data))
    return np.array(data), np.array(columns, dtype=int), np.array(starts)


@program(
    (floats(1, 2, 3), ints(0, 2, 1), ints(0, 2, 3), floats(1, 1, 1)),
    (floats(4, 2, 3), ints(1, 2, 1), ints(0, 1, 3), floats(1, 2, 3)),
    (floats(4, 2), ints(1, 0), ints(0, 1, 1, 2), floats(1, 2)),
    (ints(4, 2), ints(1, 0), ints(0, 1, 2), ints(1, 2)),
    (floats(), ints(), ints(0, 0, 0), floats(1, 2)),
)
def sparse_times_vector(data, columns, starts, vector):
    result = np.zeros(len(starts) - 1)
    for i in range(len(starts) - 1):
        for k in range(starts[i], starts[i + 1]):
            result[i] += data[k] * vector[columns[k]]
    return result


@program(
    (grid(3, 3) % 2,),
    ((grid(4, 5) % 3 == 0).astype(int), 2),
    (np.eye(4, dtype=int), 3),
    (np.zeros((2, 2)),),
    (np.eye(3), 0),
)
def game_of_life(board, steps=1):
    for _ in range(steps):
        neighbours = sum(
            np.roll(np.roll(board, i, 0), j, 1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
        )
        board = ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(board.dtype)
    return board


_GAPS = np.array([[0, 1, 9], [9, 0, 1], [1, 9, 0]], dtype=float)


@program((_GAPS,), (_GAPS.T,), (noise(0, 5, 5) ** 2,), (np.array([[0, 2], [3, 0]]),), (np.zeros((1, 1)),))
def floyd_warshall(distances):
    result = distances.copy()
    for k in range(len(result)):
        result = np.minimum(result, result[:, k, None] + result[None, k, :])
    return result


@program((_GAPS, 0), (_GAPS, 2), (noise(0, 5, 5) ** 2, 1), (np.array([[0, 2], [3, 0]]), 0), (np.zeros((1, 1)), 0))
def dijkstra(distances, start):
    n = distances.shape[0]
    best = np.full(n, np.inf)
    best[start] = 0
    done = np.zeros(n, dtype=bool)
    while not done.all():
        current = np.where(done, np.inf, best).argmin()
        done[current] = True
        for other in range(n):
            if not done[other] and best[current] + distances[current, other] < best[other]:
                best[other] = best[current] + distances[current, other]
    return best


_LINKS = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


@program((_LINKS,), (_LINKS.T,), (np.triu(np.ones((4, 4)), 1),), (np.zeros((2, 2)),), (np.eye(2),))
def topological_order(links):
    incoming = links.sum(axis=0)
    order = []
    waiting = [i for i in range(len(links)) if incoming[i] == 0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        for other in np.nonzero(links[node])[0]:
            incoming[other] -= 1
            if incoming[other] == 0:
                waiting.append(int(other))
    if len(order) < len(links):
        raise ValueError("there is a cycle")
    return order


@program((_LINKS, 0), (_LINKS, 1), (np.ones((3, 3)), 2), (np.zeros((2, 2)), 0), (np.eye(5), 3))
def breadth_first(links, start):
    depth = np.full(len(links), -1)
    depth[start] = 0
    frontier = np.array([start])
    level = 0
    while frontier.size:
        level += 1
        reached = links[frontier].any(axis=0) & (depth < 0)
        depth[reached] = level
        frontier = np.flatnonzero(reached)
    return depth


@program(
    (grid(3, 3) % 2, 0, 0), (np.eye(4), 1, 1), (np.zeros((2, 3)), 0, 2), (np.ones((2, 2)), 1, 0), (grid(2, 5) % 3, 1, 1)
)
def flood_fill(image, row, column):
    result = image.copy()
    old = result[row, column]
    stack = [(row, column)]
    seen = 0
    while stack:
        i, j = stack.pop()
        if i < 0 or j < 0 or i >= result.shape[0] or j >= result.shape[1]:
            continue
        if result[i, j] != old or result[i, j] == -1:
            continue
        result[i, j] = -1
        seen += 1
        stack += [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]
    return result, seen


@program(
    (floats(2, 1, 3), floats(1, 3)),
    (floats(5, 4), floats(9)),
    (ints(3, 1), ints(2, 4, 0)),
    (floats(), floats(1)),
    (noise(0, 4), noise(1, 6)),
)
def merge_sorted(a, b):
    a, b = np.sort(a), np.sort(b)
    result = np.empty(a.size + b.size)
    i = j = k = 0
    while i < a.size and j < b.size:
        if a[i] <= b[j]:
            result[k] = a[i]
            i += 1
        else:
            result[k] = b[j]
            j += 1
        k += 1
    result[k:] = a[i:] if i < a.size else b[j:]
    return result


@program(
    (floats(2, 7, 11, 15), 9), (floats(3, 3), 6.0), (ints(1, 2, 3), 5), (floats(1, 2), 100), (ints(1, 2, 3, 4, 6), 10)
)
def two_sum(values, target):
    for i in range(len(values)):
        for j in range(i + 1, len(values)):
            if values[i] + values[j] == target:
                return i, j
    return None


@program((floats(1, -2, 3, 4),), (floats(-1, -2),), (ints(2, -1, 2),), (noise(0, 9),), (floats(5),))
def largest_subarray(values):
    best = current = values[0]
    for value in values[1:]:
        current = max(value, current + value)
        best = max(best, current)
    return best


@program((ints(3, 1, 2),), (ints(1, 2, 3),), (floats(5, 4, 3, 2),), (noise(0, 6),), (ints(1),))
def count_inversions(values):
    return sum(int(values[i] > values[j]) for i in range(len(values)) for j in range(i + 1, len(values)))


@program((ints(2, 0, 1),), (ints(0, 1, 2, 3),), (ints(1, 0),), (ints(0),), (ints(4, 3, 2, 1, 0),))
def cycles_of_permutation(permutation):
    seen = np.zeros(len(permutation), dtype=bool)
    cycles = []
    for start in range(len(permutation)):
        if seen[start]:
            continue
        cycle = []
        place = start
        while not seen[place]:
            seen[place] = True
            cycle.append(int(place))
            place = permutation[place]
        cycles.append(cycle)
    return cycles


@program(
    (ints(1, 0, 1, 1),),
    (ints(0, 0),),
    (
        ints(
            1,
        ),
    ),
    (np.array([True, True, False]),),
    (ints(1, 0, 0, 0, 0, 0, 0, 0),),
)
def bits_to_number(bits):
    number = 0
    for bit in bits:
        number = number * 2 + int(bit)
    return number


@program((10, 4), (5, 8), (0, 2), (255, 8), (1, 1))
def number_to_bits(number, width):
    bits = np.zeros(width, dtype=np.uint8)
    for place in range(width):
        bits[width - 1 - place] = (number >> place) & 1
    return bits


@program((grid(3, 3),), (grid(2, 4),), (grid(1, 3),), (np.arange(6).reshape(3, 2),), (grid(4, 1),))
def spiral(matrix):
    result = []
    while matrix.size:
        result.append(matrix[0])
        matrix = np.rot90(matrix[1:])
    return np.concatenate(result)


@program((grid(3, 3),), (noise(1, 2, 4),), (noise(2, 4, 2),), (np.arange(4).reshape(2, 2),), (grid(1, 1),))
def cheapest_path(costs):
    rows, columns = costs.shape
    table = np.full((rows, columns), np.inf)
    table[0, 0] = costs[0, 0]
    for i in range(rows):
        for j in range(columns):
            if i > 0:
                table[i, j] = min(table[i, j], table[i - 1, j] + costs[i, j])
            if j > 0:
                table[i, j] = min(table[i, j], table[i, j - 1] + costs[i, j])
    return table[-1, -1]


@program(
    (ints(1, 2, 5), 11),
    (
        ints(
            2,
        ),
        3,
    ),
    (ints(1, 2, 5), 0),
    (ints(3, 5), 8),
    (
        ints(
            1,
        ),
        4,
    ),
)
def coin_change(coins, amount):
    best = np.full(amount + 1, amount + 1)
    best[0] = 0
    for total in range(1, amount + 1):
        for coin in coins:
            if coin <= total:
                best[total] = min(best[total], best[total - coin] + 1)
    return -1 if best[amount] > amount else int(best[amount])


@program((np.array([0b1011, 0b1]),), (np.array([7]),), (np.array([0, 255, 3]),), (np.uint8([1, 2]),), (np.arange(9),))
def popcount(values):
    counts = np.zeros_like(values)
    values = values.copy()
    while values.any():
        counts += values & 1
        values >>= 1
    return counts


@program(
    (ints(3, 1, 2), ints(0, 1, 0)), (ints(5, 5), ints(1, 1)), (floats(1, 2, 3, 4), ints(0, 2, 2, 0)), (ints(1), ints(0))
)
@program.more((noise(0, 6), ints(0, 1, 2, 0, 1, 2)))
def group_sums(values, labels):
    totals = {}
    for label in np.unique(labels):
        totals[int(label)] = values[labels == label].sum()
    return totals
