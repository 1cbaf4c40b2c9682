"""Programs that branch on what their arrays hold, in every form that Python has for it."""

from __future__ import annotations

import numpy as np

from tests.frameworks.numpy.hard.ledger import A, B, M, made, program

ZERO = np.zeros(4)
KIND = "branches on data"
CALLS = [(A,), (B,), (-A,), (ZERO,), (A * 100,)]


@program(KIND, *CALLS)
def flow_if_alone(x):
    if x.sum() > 0:
        x = x * 2
    return x


@program(KIND, *CALLS)
def flow_if_else(x):
    if x[0] > x[1]:
        y = x + 1
    else:
        y = x - 1
    return y * 2


@program(KIND, *CALLS)
def flow_elif(x):
    total = x.sum()
    if total > 100:
        kind, y = 3, x / 100
    elif total > 0:
        kind, y = 2, x * 2
    elif total == 0:
        kind, y = 1, x + 1
    else:
        kind, y = 0, -x
    return y, kind


@program(KIND, *CALLS)
def flow_nested_if(x):
    if x[0] > 0:
        if x[1] > 0:
            y = x
        else:
            y = x - x[1]
    else:
        y = x[::-1]
    return y + 1


@program(KIND, *CALLS)
def flow_ternary(x):
    return (x if x.mean() > 0 else -x) * (2.0 if x[0] > 0 else 3.0)


@program(KIND, *CALLS)
def flow_and_value(x):
    return x[0] and x[1]


@program(KIND, *CALLS)
def flow_or_value(x):
    return (x[0] or x[1] or 7.0), (x.any() or None)


@program(KIND, *CALLS)
def flow_not(x):
    flag = not x.any()
    return flag, (x + 1 if not x[0] > 0 else x)


@program(KIND, *CALLS)
def flow_and_or_tests(x):
    if (x[0] > 0 and x[1] < 0) or not (x[2] > 0 or x[3] > 0):
        return x.max()
    return x.min()


@program(KIND, *CALLS)
def flow_chained_comparison(x):
    if -1 < x[0] < x[2] <= 5:
        return x * 10
    return x


@program(KIND, *CALLS)
def flow_early_return(x):
    if x.max() > 50:
        return "large", x
    if x.min() < -2:
        return "small", x + 2
    return "middle", x * 0


@program(KIND, *CALLS)
def flow_set_in_one_branch(x):
    scale = None
    if x.sum() > 0:
        scale = x.sum()
    if scale is None:
        return x
    return x / scale


@program(KIND, *CALLS)
def flow_unbound_in_one_branch(x):
    if x.sum() > 0:
        y = x * 2
    return y


@program(KIND, *CALLS)
def flow_type_changes(x):
    y = 0
    if x.sum() > 0:
        y = x * 2
    return x + y


@program(KIND, *CALLS)
def flow_dtype_changes(x):
    y = x
    if x.sum() > 0:
        y = x.astype(np.float32)
    return y, y.dtype == np.float32


@program(KIND, *CALLS)
def flow_rank_changes(x):
    y = x
    if x.sum() > 0:
        y = x[None]
    return y.sum(axis=-1)


@program(KIND, *CALLS)
def flow_size_changes(x):
    y = x
    if x.sum() > 0:
        y = x[1:]
    return y / len(y), y.shape[0]


@program(KIND, *CALLS)
def flow_mask(x):
    y = x[x > 0]
    return y.max() if y.size else x.min()


@program(KIND, *CALLS)
def flow_returns_argument_or_copy(x):
    y = x if x[0] > 0 else x.copy()
    y += 1
    return y


@program(KIND, *CALLS)
def flow_alias_written_later(x):
    y = np.zeros(4)
    if x.sum() > 0:
        y = x
    y[0] = 9
    return x.sum(), y


@program(KIND, *CALLS)
def flow_same_object(x):
    y = x
    if x.sum() > 0:
        y = x + 0
    return 1 if y is x else 2


@program(KIND, *CALLS)
def flow_write_in_branch(x):
    if x[0] > 0:
        x[1:] = 0
    else:
        x += 1
    return x.sum()


@program(KIND, *CALLS)
def flow_write_through_view(x):
    row = x[:2]
    if x.sum() > 0:
        row *= 5
    else:
        row[...] = -1
    return x + 0


@program(KIND, *CALLS)
def flow_out_in_branch(x):
    out = np.empty_like(x)
    if x.sum() > 0:
        np.add(x, 1, out=out)
    else:
        np.multiply(x, 3, out=out)
    return out


@program(KIND, *CALLS)
def flow_raise(x):
    if (x > 50).any():
        raise ValueError("too large")
    return np.sqrt(np.abs(x))


@program(KIND, *CALLS)
def flow_raise_with_value(x):
    if x[0] > 10:
        raise OverflowError(f"found {float(x[0])}")
    return x


@program(KIND, *CALLS)
def flow_assert(x):
    assert x.max() < 50, "too large"
    return x * 2


@program(KIND, *CALLS)
def flow_caught_raise(x):
    try:
        if x.sum() < 0:
            raise ArithmeticError
        return x * 2
    except ArithmeticError:
        return -x


@program(KIND, *CALLS)
def flow_finally(x):
    log = []
    try:
        if x.sum() > 0:
            return x, log
        log.append(1)
    finally:
        log.append(2)
    return -x, log


@program(KIND, *CALLS)
def flow_list_in_branch(x):
    found = [x.sum()]
    if x[0] > 0:
        found.append(x.max())
    return found


@program(KIND, *CALLS)
def flow_dict_in_branch(x):
    found = {"sum": x.sum()}
    if x[0] > 0:
        found["sum"] = found["sum"] * 2
    else:
        found["min"] = x.min()
    return found


@program(KIND, *CALLS)
def flow_random_in_branch(x):
    if x.sum() > 0:
        return x + np.random.rand()
    return x + np.random.normal(size=4) + np.random.rand()


@program(KIND, *CALLS)
def flow_generator_in_branch(x):
    rng = np.random.default_rng(5)
    y = rng.random(4)
    if x[0] > 0:
        y = y + rng.integers(10)
    return y + rng.random()


def _positive(x):
    if x.sum() > 0:
        return x
    return -x


@program(KIND, *CALLS)
def flow_in_called_function(x):
    return _positive(x) + _positive(x - 10)


@program(KIND, *CALLS)
def flow_lambda(x):
    pick = lambda value: value * 2 if value.sum() > 0 else value / 2  # noqa: E731
    return pick(x) + pick(-x)


@program(KIND, *CALLS)
def flow_recursion(x):
    def down(value, depth):
        if depth > 5 or np.abs(value).max() < 1:
            return value, depth
        return down(value / 2, depth + 1)

    return down(x, 0)


@program(KIND, (A, 4), (B, 0), (A, 1), (A, 2), (A, 9))
def flow_recursion_on_a_number(x, count):
    def halved(value, left):
        return value if left == 0 else halved(value * 0.5 + 1, left - 1)

    return halved(x, count)


@program(KIND, *CALLS)
def flow_errstate(x):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = x / x[0]
        if np.isfinite(y).all():
            return y
        y = np.nan_to_num(y)
    return y + 1


@program(KIND, *CALLS)
def flow_errstate_raises(x):
    with np.errstate(all="raise"):
        if x.sum() > 100:
            return x / (x - x)
        y = x + 1
    return y


@program(KIND, *CALLS)
def flow_walrus(x):
    if (total := x.sum()) > 0:
        return x / total
    return x - total


@program(KIND, *CALLS)
def flow_match(x):
    match int(np.sign(x.sum())):
        case 1:
            return x
        case 0:
            return x + 1
        case _:
            return -x


@program(KIND, *CALLS)
def flow_contains(x):
    return x * 2 if 0.5 in x else x


@program(KIND, *CALLS)
def flow_any_of_comprehension(x):
    return any(value > 50 for value in x), all(value > -2 for value in x)


@program(KIND, *CALLS)
def flow_max_of_numbers(x):
    return max(x[0], x[1], 0.25), min(float(x[2]), float(x[3])), sorted(float(value) for value in x)


@program(KIND, (M,), (-M,), (M[:2],))
def flow_axis_choice(m):
    axis = 0 if m.sum() > 0 else 1
    return m.sum(axis=axis)


@program(KIND, *CALLS)
def flow_index_from_data(x):
    place = int(np.argmax(x))
    return x[place] if place else x[-1]


@program(KIND, *CALLS)
def flow_string_from_branch(x):
    name = "up" if x[0] < x[1] else "down"
    return name, {"up": 1, "down": 2}[name]


@program(KIND, *CALLS)
def flow_swapped_variables(x):
    low, high = x[0], x[1]
    if low > high:
        low, high = high, low
    return low, high, x.clip(low, high)


@program(KIND, *CALLS)
def flow_function_chosen(x):
    function = np.sin if x.sum() > 0 else np.cos
    return function(x)


class _Meter:
    def __init__(self):
        self.best = None
        self.count = 0
        self.values = np.zeros(4)
        self.log = []

    def update(self, x):
        self.count += 1
        if self.best is None or x.max() > self.best:
            self.best = x.max()
            self.log.append(self.count)
        if x.sum() > 0:
            self.values += x
        else:
            self.values = x * 2
        return self.best


@made(KIND, *CALLS)
def flow_object():
    return _Meter().update


@made(KIND, *CALLS)
def flow_closure():
    total, table = 0.0, {"seen": np.zeros(4)}

    def program(x):
        nonlocal total
        if x[0] > 0:
            total = total + x.sum()
            table["seen"] = x
        return total, table["seen"] + 1

    return program


@made(KIND, *CALLS)
def flow_counter():
    counts = {"up": 0, "down": 0}

    def program(x):
        if x.sum() > 0:
            counts["up"] += 1
        else:
            counts["down"] += 1
        return x * counts["up"]

    return program
