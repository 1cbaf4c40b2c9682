"""Variables of branches and loops: one-sided, of changing type, unpacked, augmented, deleted; star arguments."""

import torch

from tests.control_flow.register import Keywords, m, program, v

SIGNS = lambda: [v(1, 2), v(-1, -2), v(0, 0), v(3, -4), v(-3, 9)]
PAIRS = lambda: [
    (v(1, 2), v(3, 4)),
    (v(-1, 2), v(3, 4)),
    (v(-1, -2), v(3, 4)),
    (v(1, 2), v(-3, 0)),
    (v(-5, 0), v(-1, 0)),
]
ROWS = lambda: [m((1, 2), (3, 4)), m((-1, 2), (3, 4)), m((1, 2), (-3, 4)), m((-1, -2), (-3, -4)), m((9, 9), (0, 0))]


@program("one_sided", SIGNS, shows="if")
def used_where_defined(x):
    if x.sum() > 0:
        extra = x * 3
        x = x + extra
    return x


@program("one_sided", SIGNS, shows="if")
def used_behind_the_same_test(x):
    large = x.sum() > 2
    if large:
        bonus = x.max()
    y = x * 2
    if large:
        y = y + bonus
    return y


@program("one_sided", SIGNS, shows="if")
def unbound_on_the_other_side(x):
    if x.sum() > 0:
        y = x * 2
    return y + 1


@program("one_sided", ROWS, shows="for")
def loop_variable_after_the_loop(x):
    for row in x:
        last = row * 2
        if row.min() < 0:
            break
    return last + row


@program("type_change", SIGNS, shows="if")
def none_or_tensor(x):
    extra = None
    if x.sum() > 0:
        extra = x.sum()
    if extra is None:
        return x
    return x + extra


@program("type_change", SIGNS, shows="if")
def number_becomes_tensor(x):
    total = 0
    if x.max() > 2:
        total = x.sum()
    return x + total


@program("type_change", SIGNS, shows="if")
def tensor_becomes_number(x):
    scale = x.mean()
    if x.min() < 0:
        scale = 2.5
    return x * scale


@program("type_change", SIGNS, shows="if")
def int_or_float(x):
    if x.sum() > 0:
        n = 2
    else:
        n = 0.5
    return x * n, n


@program("type_change", SIGNS, shows="while")
def number_becomes_tensor_in_loop(x):
    total = 0
    while total < 3:
        total = total + x.abs().sum() + 1
    return total


@program("type_change", SIGNS, shows="if")
def string_by_value(x):
    mode = "relu" if x.sum() > 0 else "tanh"
    return getattr(torch, mode)(x), mode


@program("unpack", PAIRS, shows="if")
def swap(x, y):
    if x.sum() > y.sum():
        x, y = y, x
    return x - y


@program("unpack", PAIRS, shows="if")
def unpack_in_both(x, y):
    if x.min() > 0:
        (a, b), *rest = (x, y), x + y, x - y
    else:
        (a, b), *rest = (y, x), x * y
    return a - 2 * b + sum(rest)


@program("unpack", ROWS, shows="if")
def unpack_rows(x):
    first, second = x
    if first.sum() > second.sum():
        first, second = second, first
    return first * 2 + second


@program("unpack", lambda: [v(8, 3), v(3, 8), v(1, 1), v(9, 27), v(100, 35)], shows="while")
def unpack_in_while(x):
    a, b = x[0], x[1]
    while b > 0.5:
        a, b = b, torch.remainder(a, b)
    return a


@program("augmented", SIGNS, shows="if")
def plus_equals(x):
    y = x.clone()
    if x.sum() > 0:
        y += 1
    else:
        y *= 3
        y -= x
    return y


@program("augmented", SIGNS, shows="if")
def number_plus_equals(x):
    count = 1
    if x[0] > 0:
        count += 2
    if x[1] > 0:
        count *= 5
    return count, x**2


@program("augmented", ROWS, shows="for if")
def augmented_in_loop(x):
    total = torch.zeros(2)
    for row in x:
        if row.max() > 2:
            total += row
        else:
            total /= 2
    return total


@program("walrus", SIGNS, shows="if")
def walrus_in_if(x):
    if (total := x.sum()) > 0:
        return x / total
    return x - total


@program("walrus", lambda: [v(3, 4), v(30, 40), v(0, 0), v(1, 0), v(-300, 0)], shows="while")
def walrus_in_while(x):
    while (size := x.norm()) > 1:
        x = x / 2
    return x, size


@program("walrus", SIGNS, shows="if")
def walrus_in_ternary(x):
    y = (peak := x.max()) * 2 if x.sum() > 0 else (peak := x.min())
    return y + peak


@program("delete", SIGNS, shows="if")
def delete_in_branch(x):
    y = x * 2
    if x.sum() > 0:
        del y
        return x
    return y


@program("delete", SIGNS, shows="if")
def delete_and_define_again(x):
    y = x + 1
    if x.max() > 2:
        z = y * 2
        del y
        y = z - 1
    return y


@program(
    "delete",
    lambda: [
        ({"a": v(1, 2), "b": v(1, 1)},),
        ({"a": v(-1, 2), "b": v(1, 1)},),
        ({"a": v(-1, -2), "b": v(1, 1)},),
        ({"a": v(0, 0), "b": v(1, 2)},),
        ({"a": v(5, 5), "b": v(0, 1)},),
    ],
)
def delete_item(named):
    if named["a"].sum() > 0:
        del named["b"]
    return sum(named.values())


@program("star_args", PAIRS, shows="if")
def any_number_of_tensors(*tensors):
    total = tensors[0]
    for tensor in tensors[1:]:
        if tensor.sum() > 0:
            total = total + tensor
        else:
            total = total - tensor
    return total


@program("star_args", lambda: [Keywords((x,), {"bias": y}) for x, y in PAIRS()], shows="if")
def star_kwargs(x, *rest, scale=2.0, **named):
    if x.sum() > 0:
        x = x * scale
    for name, value in named.items():
        if value.min() < 0:
            x = x - value
    return x


@program("star_args", PAIRS, shows="if")
def spread_into_a_helper(x, y):
    given = {"shift": y}
    if x.sum() > 0:
        given["scale"] = 3.0
    return _affine(*[x], **given)


def _affine(x, scale=1.0, shift=0.0):
    if x.max() > 1:
        return x * scale + shift
    return x + shift


@program("star_args", PAIRS, shows="if")
def defaults_and_keyword_only(x, y, /, limit=2.0, *, floor=0.0):
    if x.max() > limit:
        return x + y
    if y.min() < floor:
        return y
    return x
