"""`while` and `for`, with `else`, `break` and `continue`, nested; the number of rounds depends on values or sizes."""

import torch

from tests.control_flow.register import m, program, s, v

SIZES = lambda: [v(3, 4), v(30, 40), v(0.1, 0.1), v(0, 0), v(-300, 400)]
NUMBERS = lambda: [(v(1, 2), s(3)), (v(1, 2), s(0)), (v(1, 2), s(1)), (v(-1, 2), s(7)), (v(-1, 0), s(-2))]
ROWS = lambda: [
    m((1, 2), (3, 4), (5, 6)),
    m((-1, 2), (3, 4), (5, 6)),
    m((1, 2), (-3, 4), (5, 6)),
    m((1, 2), (3, 4), (-5, -6)),
    m((-1, -2), (-3, -4), (-5, -6)),
]
LENGTHS = lambda: [m((1, 2), (3, 4)), m((-1, 2)), m((1, 2), (-3, 4), (5, 6)), m(), m(*[(i, -i) for i in range(9)])]


@program("while", SIZES, shows="while")
def halve_until_short(x):
    n = 0
    while x.norm() > 1:
        x = x / 2
        n += 1
    return x, n


@program("while", lambda: [s(9.0), s(2.0), s(1e4), s(1.0), s(0.25)], shows="while")
def square_root(a):
    guess = a
    while (guess * guess - a).abs() > 1e-4:
        guess = (guess + a / guess) / 2
    return guess


@program("while", SIZES, shows="while")
def while_with_two_conditions(x):
    steps = 0
    while x.abs().max() > 1 and steps < 5:
        x = x * 0.7
        steps = steps + 1
    return x + steps


@program("while", SIZES, shows="while if")
def while_with_branch(x):
    up = down = 0
    while x.norm() > 2:
        if x[0] > 0:
            x = x - 1.5
            up += 1
        else:
            x = x * 0.5
            down += 1
    return x, up, down


@program("while", NUMBERS, shows="while")
def while_on_a_traced_number(x, n):
    left = n.item()
    while left > 0:
        x = x * 2 + left
        left -= 1
    return x


@program("while", SIZES, shows="while")
def two_loops_in_a_row(x):
    while x.norm() > 5:
        x = x / 2
    while x.norm() < 1 and x.norm() > 0:
        x = x * 3
    return x


@program("while_else", SIZES, shows="while")
def while_else_without_break(x):
    while x.norm() > 1:
        x = x / 3
    else:
        x = x + 100
    return x


@program("while_else", SIZES, shows="while")
def while_else_with_break(x):
    n = 0
    while x.norm() > 1:
        x = x / 2
        n += 1
        if n > 4:
            break
    else:
        n = -n
    return x, n


@program("while_else", ROWS, shows="for")
def for_else_finds_nothing(x):
    for row in x:
        if row.sum() < 0:
            found = row
            break
    else:
        found = x.mean(0)
    return found


@program("while_true", SIZES, shows="while")
def loop_until_small(x):
    while True:
        x = x / 2
        if x.norm() < 1:
            break
    return x


@program("while_true", SIZES, shows="while")
def test_in_the_middle(x):
    n = 0
    while True:
        n += 1
        x = x * 0.5
        if x.abs().max() < 1:
            break
        x = x - 0.1
    return x, n


@program("while_true", SIZES, shows="while")
def several_ways_out(x):
    why = 0
    while True:
        x = x * 0.5
        if x.norm() < 1:
            why = 1
            break
        if x[0] < -10:
            why = 2
            break
    return x, why


@program("for_rows", LENGTHS, shows="for")
def sum_rows(x):
    total = torch.zeros(2)
    for row in x:
        total = total * 0.5 + row
    return total


@program("for_rows", LENGTHS, shows="for if")
def rows_with_branch(x):
    total = torch.zeros(2)
    for row in x:
        if row.sum() > 0:
            total = total + row
        else:
            total = total - 1
    return total


@program("for_rows", LENGTHS, shows="for")
def recurrence_with_two_states(x):
    h, c = torch.zeros(2), torch.ones(2)
    for row in x:
        c = torch.sigmoid(row) * c
        h = torch.tanh(c + h)
    return h, c


@program("for_rows", lambda: [row.roll(place, 0) for place, row in enumerate(ROWS())], shows="for if")
def rows_of_one_length(x):
    best = x[0]
    for row in x:
        if row.norm() > best.norm():
            best = row
    return best


@program("for_rows", lambda: [v(1, 2, 3), v(-1, 2, -3), v(0), v(5, 5, 5, 5), v(-9)], shows="for if")
def numbers_of_a_vector(x):
    total = 0
    for number in x:
        if number > 0:
            total = total + number
    return total


@program("for_range", NUMBERS, shows="for")
def range_of_item(x, n):
    for _ in range(n.item()):
        x = x * 2 + 1
    return x


@program("for_range", NUMBERS, shows="for")
def range_uses_index(x, n):
    total = x.sum()
    for i in range(int(n)):
        total = total + i * x.max()
    return total


@program("for_range", NUMBERS, shows="for if")
def range_with_branch(x, n):
    for i in range(n.item()):
        if x.sum() > 5:
            x = x - i
        else:
            x = x + i
    return x


@program("for_range", lambda: [(v(1, 2), 3), (v(1, 2), 0), (v(1, 2), 5), (v(-1, 2), 1), (v(-1, 0), 9)], shows="for")
def range_of_an_argument(x, n):
    for i in range(1, n, 2):
        x = x + i
    return x


@program("for_size", LENGTHS)
def range_of_size(x):
    total = torch.zeros(2)
    for i in range(x.shape[0]):
        total = torch.tanh(total + x[i])
    return total


@program("for_size", LENGTHS, shows="if")
def range_of_size_with_branch(x):
    total = torch.zeros(2)
    for i in range(len(x)):
        if x[i].sum() > 0:
            total = total + x[i]
    return total


@program("for_size", ROWS, shows="if")
def backwards_over_columns(x):
    out = torch.zeros(3)
    for column in reversed(range(x.size(1))):
        out = out * 2 + x[:, column]
        if out.min() < 0:
            out = out.relu()
    return out


@program("for_enumerate", LENGTHS, shows="for")
def enumerate_rows(x):
    total = torch.zeros(2)
    for place, row in enumerate(x):
        total = total + row * place
    return total


@program("for_enumerate", lambda: [(a, a * 2) for a in LENGTHS()], shows="for if")
def zip_of_two(x, y):
    total = torch.zeros(2)
    for a, b in zip(x, y):
        if (a * b).sum() > 9:
            total = total + a
        else:
            total = total + b
    return total


@program("for_enumerate", lambda: [(a, -a) for a in ROWS()], shows="if")
def enumerate_of_zip(x, y):
    best, where = x[0].sum(), 0
    for place, (a, b) in enumerate(zip(x, y), start=1):
        if (a - b).sum() > best:
            best, where = (a - b).sum(), place
    return best, where


@program("break", ROWS, shows="for")
def break_at_negative(x):
    total = torch.zeros(2)
    for row in x:
        if row.min() < 0:
            break
        total = total + row
    return total


@program("break", SIZES, shows="while")
def break_after_work(x):
    n = 0
    while n < 10:
        x = x / 2
        n += 1
        if x.norm() < 1:
            break
    return x, n


@program("break", lambda: [v(1, 2), v(5, 2), v(50, 2), v(0, 2), v(-5, 2)], shows="if")
def break_in_static_loop(x):
    for i in range(4):
        if x[0] > 10:
            break
        x = x * (i + 2)
    return x, i


@program("continue", ROWS, shows="for if")
def skip_negative_rows(x):
    total = torch.ones(2)
    for row in x:
        if row.min() < 0:
            continue
        total = total * row
    return total


@program("continue", SIZES, shows="while if")
def continue_in_while(x):
    n = skipped = 0
    while n < 6:
        n += 1
        if x[0] > 2:
            x = x / 2
            continue
        skipped += 1
        x = x + 0.5
    return x, skipped


@program("continue", ROWS, shows="for if")
def break_and_continue(x):
    taken = []
    total = torch.zeros(2)
    for row in x:
        if row.sum() < -5:
            break
        if row.sum() < 5:
            continue
        total = total + row
    return total


@program("nested_loops", ROWS, shows="for")
def loop_in_loop(x):
    total = torch.zeros(())
    for row in x:
        for number in row:
            if number > 0:
                total = total + number
    return total


@program("nested_loops", ROWS, shows="for")
def inner_break(x):
    count = 0
    for row in x:
        for number in row:
            if number < 0:
                break
            count += 1
    return count, x


@program("nested_loops", lambda: [row * 3**place for place, row in enumerate(ROWS())], shows="while for")
def while_in_for(x):
    total = torch.zeros(2)
    for row in x:
        while row.norm() > 3:
            row = row / 2
        total = total + row
    return total


@program("nested_loops", SIZES, shows="while")
def for_in_while(x):
    while x.norm() > 4:
        for factor in (0.9, 0.8, 0.7):
            x = x * factor
            if x.norm() < 2:
                break
    return x


@program("nested_loops", lambda: [(s(3), s(2)), (s(0), s(5)), (s(2), s(0)), (s(4), s(4)), (s(1), s(1))], shows="for")
def two_ranges(n, k):
    total = torch.zeros(())
    for i in range(n.item()):
        for j in range(k.item()):
            total = total + i * 10 + j
    return total


@program(
    "for_containers",
    lambda: [[v(1, 2), v(-3, 4)], [v(-1, 2), v(-3, -4)], [v(0, 0), v(3, 4)], [v(9, 9), v(9, 9)], [v(-1, -1), v(2, 2)]],
    shows="if",
)
def list_of_tensors(tensors):
    total = torch.zeros(2)
    for tensor in tensors:
        if tensor.sum() > 0:
            total = total + tensor
    return total


@program(
    "for_containers",
    lambda: [
        {"a": v(1, 2), "b": v(-3, 4)},
        {"a": v(-1, 2), "b": v(-3, -4)},
        {"a": v(-9, 0), "b": v(3, 4)},
        {"a": v(9, 9), "b": v(9, 9)},
        {"a": v(0, 0), "b": v(0, 0)},
    ],
    shows="if",
)
def dict_of_tensors(named):
    out = {}
    for name, tensor in named.items():
        if tensor.max() > 3:
            out[name] = tensor / tensor.max()
        else:
            out[name] = tensor
    return out


@program(
    "for_containers",
    lambda: [
        ([1.0, 2.0], v(1, 2)),
        ([1.0, 2.0], v(-1, 2)),
        ([3.0, -2.0], v(4, 2)),
        ([0.0, 0.0], v(-1, -2)),
        ([-1.0, 5.0], v(0, 0)),
    ],
    shows="if",
)
def list_of_numbers(weights, x):
    for weight in weights:
        if (x * weight).sum() > 1:
            x = x * weight
        else:
            x = x + weight
    return x
