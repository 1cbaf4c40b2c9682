"""`assert`, `raise`, `try` / `except` / `finally`, `with`, `match`."""

import contextlib

import torch

from tests.control_flow.register import built, m, program, s, v

SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
ROWS = lambda: [m((1, 2), (3, 4)), m((-1, 2), (3, 4)), m((1, 2), (-3, 4)), m((-1, -2), (-3, -4)), m((9, 9), (0, 0))]
KINDS = lambda: [(v(1, 2), s(0)), (v(1, 2), s(1)), (v(1, 2), s(2)), (v(-1, 2), s(7)), (v(-1, 0), s(-2))]


@program("assert", SIGNS)
def assert_with_message(x):
    assert x.sum() >= 0, "the sum must not be negative"
    return x.sqrt()


@program("assert", SIGNS)
def assert_with_formatted_message(x):
    total = x.sum().item()
    assert total < 4, f"{total} is too much"
    return x + total


@program("assert", SIGNS)
def assert_without_message(x):
    assert torch.isfinite(x).all() and x.min() > -2
    return x.exp()


@program("assert", SIGNS)
def assert_inside_a_branch(x):
    if x[0] > 0:
        assert x[1] > 0, "both must be positive"
        x = x * 2
    return x


@program("raise", SIGNS, shows="if")
def raise_value_error(x):
    if x.sum() < 0:
        raise ValueError("the sum must not be negative")
    return x.sqrt()


@program("raise", SIGNS, shows="if")
def raise_on_each_side(x):
    if x.max() > 5:
        raise OverflowError("too large")
    elif x.min() < -2:
        raise ValueError(f"too small: {x.min().item()}")
    return x


@program("raise", ROWS, shows="for")
def raise_in_loop(x):
    total = torch.zeros(2)
    for place, row in enumerate(x):
        if row.sum() < 0:
            raise IndexError(f"row {place} is negative")
        total = total + row
    return total


@program("raise", SIGNS, shows="if")
def raise_after_a_change(x):
    x.add_(1)
    if x.sum() < 0:
        raise ValueError("negative")
    return x


@program("raise", SIGNS)
def raise_and_catch_by_text(x):
    try:
        if x.sum() < 0:
            raise ValueError(f"{x.sum().item()} is too small")
        y = x * 2
    except ValueError as error:
        y = x - 1 if "-3" in str(error) else x + 1
    return y


@program("raise", SIGNS)
def raise_with_finally_around(x):
    notes = []
    try:
        if x.sum() < 0:
            raise ValueError(f"{x.sum().item()} is too small")
        x = x * 2
    finally:
        notes.append(x)
    return x, notes


@program("raise", SIGNS)
def raise_inside_of_a_with(x):
    with torch.no_grad():
        if x.sum() < 0:
            raise ValueError(f"{x.max():.1f} is all there is")
        y = x * 2
    return y


class _Refused(Exception):
    def __init__(self, place, value):
        super().__init__(f"{place}: {value}")
        self.place = place


@program("raise", SIGNS)
def raise_an_error_of_its_own(x):
    if x.sum() < 0:
        raise _Refused(1, x.sum().item())
    return x * 2


@built("raise", SIGNS, state=lambda function: function.calls)
def raise_after_counting():
    def count(x):
        if x.sum() < 0:
            count.calls += 1
            raise ValueError(f"refused {count.calls} times")
        return x + count.calls

    count.calls = 0
    return count


@built("raise", SIGNS)
def raise_after_a_variable_outside():
    last = torch.zeros(2)

    def keep(x):
        nonlocal last
        before = last
        if x.max() > 2:
            last = x
            raise ValueError("kept")
        return x + before

    return keep


@program("raise", SIGNS)
def raise_in_a_function_that_is_asked(x):
    def positive(value):
        if value < 0:
            raise ValueError(f"{value} is negative, of shape {x.shape}, {x.dtype}")
        return value.sqrt()

    return positive(x[0]) + positive(x[1])


@program("raise", SIGNS)
def raise_while_looking_for_more(x):
    n = 0
    while x.norm() > 1:
        n += 1
        if n > 2:
            raise RuntimeError(f"no end after {n} rounds, at {x.norm():.3f}")
        x = x / 3
    return x, n


@program("raise", SIGNS)
def raise_with_values_as_arguments(x):
    if x.max() > 2:
        raise ValueError("too large", x.max().item(), x.shape[0])
    assert x.min() > -2, (x.min().item(), "too small")
    return x


@program("assert", SIGNS)
def assert_in_a_row(x):
    assert x.ndim == 1
    assert x.max() < 8, f"{x.max().item()!r:>8}"
    assert x.sum() > -3 and x.sum() < 5, x.sum().item()
    return x.cumsum(0)


@program("try", SIGNS, shows="if")
def try_around_a_branch(x):
    try:
        if x.sum() > 0:
            y = x.sqrt()
        else:
            y = x.exp()
    except RuntimeError:
        y = x
    return y


@program("try", SIGNS, shows="if")
def raise_and_catch(x):
    try:
        if x.sum() < 0:
            raise ValueError("negative")
        y = x * 2
    except ValueError:
        y = -x
    return y


@program("try", SIGNS, shows="if")
def finally_after_return(x):
    log = []
    try:
        if x.max() > 2:
            return x - 1, log
        y = x + 1
    finally:
        log.append(1)
    return y, log


@program("try", SIGNS, shows="if")
def try_with_else(x):
    total = x.sum()
    try:
        scale = {1: 2.0}[1]
    except KeyError:
        scale = 0.0
    else:
        if total < 0:
            scale = scale * 3
    return x * scale


@program("try", SIGNS)
def catch_by_item(x):
    try:
        y = 1 / int(x[0].item())
    except ZeroDivisionError:
        y = 0.0
    return x + y


@program("with", SIGNS, shows="if")
def no_grad_in_branch(x):
    w = torch.ones(2, requires_grad=True)
    if x.sum() > 0:
        with torch.no_grad():
            y = x * w
    else:
        y = x * w
    return y, y.requires_grad


@program("with", ROWS, shows="for if")
def with_inside_a_loop(x):
    total = torch.zeros(2)
    for row in x:
        with torch.no_grad():
            weight = row.norm()
        if weight > 3:
            total = total + row / weight
    return total


@program("with", SIGNS, shows="if")
def branch_inside_with(x):
    with torch.no_grad():
        if x.max() > 2:
            y = x * 2
        else:
            y = x / 2
    return y


@program("with", SIGNS, shows="if")
def return_inside_with(x):
    with contextlib.nullcontext():
        if x.sum() > 0:
            return x + 1
    return x - 1


@program("with", SIGNS, shows="if")
def own_context_manager(x):
    log = []

    @contextlib.contextmanager
    def noted():
        log.append("in")
        yield
        log.append("out")

    with noted():
        if x.sum() > 0:
            x = x * 3
    return x, log


@program("with", SIGNS, shows="if")
def suppressed(x):
    y = x + 1
    with contextlib.suppress(ValueError):
        if x.sum() < 0:
            raise ValueError
        y = y * 2
    return y


@program("match", KINDS, shows="if")
def match_a_number(x, kind):
    match kind.item():
        case 0:
            return x.sin()
        case 1 | 2:
            return x.cos()
        case other if other > 5:
            return x * other
        case _:
            return x


@program("match", SIGNS, shows="if")
def match_with_guards(x):
    match x.sum():
        case total if total > 2:
            y = x - total
        case total if total < -2:
            y = x + total
        case _:
            y = x
    return y * 2


@program(
    "match",
    lambda: [("relu", v(3, -2)), ("relu", v(-1, -2)), ("relu", v(0, 5)), ("relu", v(-9, 9)), ("relu", v(3, 3))],
    shows="if",
)
def match_a_string_then_a_value(kind, x):
    match kind:
        case "relu":
            return x.relu() if x.sum() > 0 else x
        case "tanh":
            return x.tanh()


@program("match", SIGNS, shows="if")
def match_a_sequence(x):
    pair = (x, x + 1) if x.sum() > 0 else (x,)
    match pair:
        case (a, b):
            return a + b
        case (a,):
            return a
