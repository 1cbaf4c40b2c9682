"""Several constructs in one program, the way they meet in code that was written without a thought of capture."""

import functools

import torch

from tests.control_flow.register import built, m, program, s, v

SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
LARGE = lambda: [v(3, 4), v(30, 40), v(0.1, 0), v(0, 0), v(-30, 4)]
ROWS = lambda: [m((1, 2), (3, 4)), m((-1, 2), (3, 4)), m((1, 2), (-3, 4)), m((-1, -2), (-3, -4)), m((9, 9), (0, 0))]
COUNTED = lambda: [(x, s(n)) for x, n in zip(SIGNS(), (2, 3, 0, 1, 5))]


@program("mixture", LARGE, shows="while for")
def ladder_in_a_for_in_a_while(x):
    rounds = 0
    while x.norm() > 1:
        for factor in (2.0, 3.0, 5.0):
            if x.abs().max() > 20:
                x = x / factor
            elif x.sum() < 0:
                return -x, rounds
            else:
                break
            rounds += 1
        x = x * 0.5
    return x, rounds


@program("mixture", ROWS)
def break_and_continue_and_else(x):
    kept = []
    for place, row in enumerate(x):
        if row.sum() < -5:
            break
        if row[0] < 0:
            continue
        kept.append(row * (place + 1))
    else:
        kept.append(x.sum(0))
    return torch.stack(kept).sum(0) if kept else torch.zeros(2)


@program("mixture", LARGE, shows="while")
def while_with_else_and_break(x):
    n = 0
    while n < 6:
        if x.norm() < 1:
            break
        x = x / 3
        n += 1
    else:
        x = x * 0
    return x, n


@program("mixture", SIGNS, shows="if")
def counter_of_an_inner_function(x):
    count = 0

    def step(value):
        nonlocal count
        if value > 0:
            count += 1
            return value * 2
        return value - 1

    total = step(x[0]) + step(x[1])
    return total, count


@program("mixture", SIGNS)
def functions_that_close_over_a_choice(x):
    scale = x.max() if x.sum() > 0 else x.min()

    def add(y):
        return y + scale

    def both(y):
        return add(y) if y[0] > scale / 2 else add(add(y))

    return both(x)


@program("mixture", SIGNS, shows="if")
def walrus_in_nested_conditions(x):
    if (total := x.sum()) > 0 and (top := x.max()) < 3:
        return total * top
    if (low := x.min()) < -2 or total == 0:
        return low - total
    return total


@program("mixture", SIGNS, shows="if")
def starred_targets_of_either(x):
    first, *rest = (x, x + 1, x + 2) if x[0] > 0 else (x * 2, x)
    return first, rest, len(rest)


@program("mixture", ROWS)
def sets_and_dicts_of_rows(x):
    totals = {i: row.sum() for i, row in enumerate(x)}
    positive = {i for i, total in totals.items() if total > 0}
    return sum(totals[i] for i in sorted(positive)) if positive else torch.zeros(())


@program("mixture", lambda: [(a, b) for a, b in zip(ROWS(), reversed(ROWS()))])
def rows_of_two_side_by_side(x, y):
    out = torch.zeros(2)
    for i, (a, b) in enumerate(zip(x, y)):
        if (a > b).all():
            out = out + a * i
        elif (a < b).any():
            out = out - b
        else:
            continue
        out = out / 2
    return out


@program("mixture", LARGE, shows="while")
def deleted_and_set_again(x):
    helper = x * 2
    if x.sum() > 5:
        del helper
        helper = x / 2
    n = 0
    while helper.norm() > 2:
        temporary = helper / 2
        helper = temporary
        del temporary
        n += 1
    return helper, n


class _Tally:
    def __init__(self):
        self.total, self.counts = torch.zeros(()), {"up": 0, "down": 0}
        self.recent = [0.0, 0.0]


@program("mixture", lambda: [(x, _Tally()) for x in SIGNS()], shows="if")
def augmented_attributes_and_items(x, tally):
    if x.sum() > 0:
        tally.total += x.sum()
        tally.counts["up"] += 1
        tally.recent[0] += 1.5
    else:
        tally.counts["down"] -= 2
        tally.recent[-1] *= 3
    return x + tally.total, tally.counts["up"]


@program("mixture", SIGNS)
def chains_of_three_and_four(x):
    a, b = x[0], x[1]
    if -2 < a < b < 5:
        return a + b
    if a >= b > -1 != a:
        return a - b
    return a * b


@program("mixture", SIGNS)
def ternaries_inside_ternaries(x):
    y = x * 2 if x[0] > 0 else (x + 1 if x[1] > 0 else (x - 1 if x.sum() < -2 else x))
    return y.relu() if y.max() > 1 else -y


@program("mixture", SIGNS)
def truth_and_numbers_out_of_tensors(x):
    flag, whole, real = bool(x.sum() > 0), int(x[1]), float(x[0])
    if flag and whole > 1:
        return x * real
    return x + whole if not flag else x - real


@program("mixture", SIGNS)
def membership_of_values(x):
    n = int(x[0])
    if n in (1, 3):
        return x * 2
    return x + 1 if n not in {0, -1} else x - 1


@program("mixture", ROWS)
def best_row_by_key(x):
    best = max(x, key=lambda row: row.sum().item())
    worst = min(x.unbind(0), key=torch.norm)
    return best, worst


@program("mixture", SIGNS)
def sorted_numbers_of_a_tensor(x):
    low, high = sorted(x.tolist())
    ordered = sorted([x[0], x[1]], key=lambda one: -one)
    return high - low, torch.stack(ordered)


@program("mixture", ROWS)
def any_that_ends_early(x):
    seen = []

    def look(row):
        seen.append(1)
        return row[0] < 0

    found = any(look(row) for row in x)
    return found, len(seen), all(row.sum() > 0 for row in x)


@program("mixture", LARGE)
def recursion_with_an_accumulator(x):
    def shrink(value, depth):
        if value.norm() <= 1 or depth == 4:
            return value, depth
        return shrink(value / 4, depth + 1)

    return shrink(x, 0)


@program("mixture", LARGE)
def generator_that_is_left_early(x):
    def halves(value):
        while True:
            yield value
            value = value / 4

    for n, value in enumerate(halves(x)):
        if value.norm() < 2:
            return value, n
    return x, -1


@program("mixture", SIGNS)
def return_inside_try_with_finally(x):
    notes = []
    try:
        if x.sum() > 0:
            return x * 2, notes
        x = x + 1
    finally:
        notes.append("left")
    return x, notes


@program("mixture", SIGNS)
def finally_that_changes_the_value(x):
    scale = 1
    try:
        if x[0] > 0:
            scale = 2
            y = x * scale
        else:
            y = x - 1
    finally:
        scale += 10
    return y * scale


@program("mixture", lambda: [(x, k) for x, k in zip(SIGNS(), map(s, (0, 1, 2, 3, 4)))])
def match_on_a_value_with_a_guard(x, kind):
    match int(kind):
        case 0 if x.sum() > 0:
            return x
        case 0 | 1:
            return x + 1
        case n if n > 3:
            return x * n
        case _:
            return -x


@program("mixture", SIGNS)
def match_on_the_shape_of_a_choice(x):
    y = x.reshape(1, 2) if x.sum() > 0 else x
    match tuple(y.shape):
        case (n,):
            return y * n
        case (rows, columns):
            return y + rows * columns


@program("mixture", COUNTED, shows="for")
def stacked_and_skipped(x, n):
    found = [x]
    for i in range(int(n)):
        if i == 1:
            continue
        found.append(found[-1] * 2 + i)
    return torch.stack(found).sum(0)


@program("mixture", COUNTED)
def list_returned_from_a_loop(x, n):
    out = []
    for i in range(int(n)):
        out.append(x + i)
    return out


@built("mixture", SIGNS)
def decorated_and_partial():
    def doubled(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            result = function(*args, **kwargs)
            return result * 2 if result.sum() > 3 else result

        return inner

    @doubled
    def f(scale, x):
        return x * scale if x[0] > 0 else x

    return functools.partial(f, 3.0)


@program("mixture", SIGNS)
def lambdas_chosen_by_value(x):
    steps = [lambda y: y + 1, lambda y: y * 2, lambda y: -y]
    step = steps[0] if x.sum() > 0 else steps[1] if x.sum() < 0 else steps[2]
    return step(step(x))


class _Shape:
    def area(self, x):
        return x.prod() if x.min() > 0 else x.new_zeros(())


class _Scaled(_Shape):
    def __init__(self, scale):
        self.scale = scale

    def area(self, x):
        found = super().area(x)
        if found > 1:
            return found * self.scale
        return found - self.scale


@built("mixture", SIGNS)
def super_inside_a_branch():
    return _Scaled(2.0).area


_calls = 0


@program("mixture", SIGNS, shows="if")
def global_counter_in_a_branch(x):
    global _calls
    before = _calls
    if x.sum() > 0:
        _calls = before + 1
    answer = x + _calls
    _calls = 0
    return answer


@program("mixture", SIGNS)
def assert_then_branch_then_raise(x):
    assert x.max() < 8, "too large"
    if x.sum() < -2:
        if x[0] < x[1]:
            raise ValueError("falling")
        raise KeyError(3)
    return x.abs().sqrt()


@program("mixture", SIGNS)
def message_made_of_values(x):
    if x.max() > 5:
        raise ValueError(f"largest is {x.max().item():.2f} of {tuple(x.shape)}")
    return x * 2


@program("mixture", SIGNS)
def error_caught_outside_of_the_branch(x):
    def check(value):
        if value.sum() < 0:
            raise ValueError("negative")
        return value.sqrt()

    try:
        return check(x)
    except ValueError as error:
        return x, str(error)


@program("mixture", LARGE, shows="while")
def two_flags_and_a_bound(x):
    done, steps, grew = False, 0, False
    while not done and steps < 10:
        following = x * 0.3 + 0.1
        grew = bool(following.norm() > x.norm())
        done = grew or bool((following - x).abs().max() < 0.05)
        x = following
        steps += 1
    return x, steps, grew


@program("mixture", LARGE, shows="while")
def numbers_and_tensors_in_turn(x):
    total, last = 0, None
    while x.abs().max() > 1:
        last = x.max().item()
        total = total + last
        x = x / 5
    return x, total, last


@program("mixture", ROWS)
def two_loops_that_share_a_variable(x):
    best = x[0]
    for row in x:
        if row.sum() > best.sum():
            best = row
    rest = torch.zeros(2)
    for row in x:
        if (row != best).any():
            rest = rest + row
    return best, rest


@program("mixture", SIGNS)
def while_that_pops(x):
    waiting, total = [x, x + 1, x * 2], torch.zeros(())
    while waiting:
        one = waiting.pop()
        if one.sum() > 4:
            total = total + one.max()
        elif one.sum() < -3:
            break
        else:
            total = total - 1
    return total, len(waiting)
