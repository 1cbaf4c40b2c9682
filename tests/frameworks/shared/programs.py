"""Programs written once for all frameworks: a maker gets a space and a world and gives a program; then its calls.

The first call is the example. The names of the functions are the names of the tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[Any], tuple[Any, ...]]]] = {}


def vectors(s: Any) -> tuple[Any, ...]:
    """Calls with one vector: the same size, then another."""
    return ((s.array([0.5, -1.0, 2.0]),), (s.array([3.0, 1.0, -4.0]),), (s.array([1.0, 2.0]),))


def matrices(s: Any) -> tuple[Any, ...]:
    """Calls with one matrix."""
    first = s.array([[0.5, -1.0, 2.0], [3.0, 4.0, 1.0]])
    return ((first,), (first * 2 - 1,), (s.array([[1.0, 2.0, 3.0]]),))


def shared(calls: Callable[[Any], tuple[Any, ...]] = vectors) -> Callable[[Any], Any]:
    """Register a program with its calls."""

    def register(make: Any) -> Any:
        PROGRAMS[make.__name__] = (make, calls)
        return make

    return register


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Box:
    value: Any
    times: int = 2


# ---- values --------------------------------------------------------------------------------------------------------


@shared(matrices)
def affine(s, world):
    weight = s.array([[1.0, 0.0], [0.5, 2.0], [1.0, 1.0]])
    return lambda x: s.matmul(x, weight) + 1


@shared(matrices)
def softmax(s, world):
    def program(x):
        shifted = s.exp(x - s.reshape(s.max(x, -1), (-1, 1)))
        return shifted / s.reshape(s.sum(shifted, -1), (-1, 1))

    return program


@shared()
def polynomial(s, world):
    def program(x):
        total = x * 0
        for degree in range(4):
            total = total + x**degree / (degree + 1)
        return total

    return program


@shared()
def masked(s, world):
    return lambda x: s.where(x > 0, s.sqrt(s.abs(x)), -x)


@shared()
def several_results(s, world):
    return lambda x: (s.sum(x), x[0], x[-1], s.mean(x * x))


@shared(matrices)
def slices(s, world):
    return lambda x: (x[:, 1:], x[0], x[..., -1], x[:, None], x[-1:, :2])


@shared(matrices)
def joined(s, world):
    return lambda x: (s.concat([x, x + 1], 0), s.stack([x, x * 2], 1), s.reshape(x, (-1,)))


@shared(lambda s: ((s.array([7, -3, 2]), 2), (s.array([1, 5, 9]), 2), (s.array([7, -3, 2]), 3)))
def integers(s, world):
    return lambda i, n: (i // n, i % n, i * n)


@shared(lambda s: ((s.array([1.0, 2.0]), s.array([2.0, 1.0])), (s.array([3.0, 1.0]), s.array([3.0, 1.0]))))
def comparisons(s, world):
    return lambda a, b: (a < b, a == b, (a > 1) & (b > 1), ~(a != b), s.where(a >= b, a, b))


@shared(matrices)
def products(s, world):
    return lambda x: (s.einsum("ij,kj->ik", x, x), s.matmul(x, s.transpose(x)))


@shared()
def ranked(s, world):
    return lambda x: (s.argmax(x, 0), s.cumsum(x, 0), s.minimum(x, x * 0))


@shared()
def sized(s, world):
    return lambda x: (x / x.shape[0], s.reshape(x, (1, x.shape[0])), len(x.shape))


# ---- nests and arguments -------------------------------------------------------------------------------------------


@shared(lambda s: tuple(({"b": x, "a": [x + 1, (x * 2, None)]},) for (x,) in vectors(s)))
def nests(s, world):
    return lambda held: {"sum": held["b"] + held["a"][0], "parts": (held["a"][1], [held["b"]]), "text": "x"}


@shared(lambda s: tuple((Pair(x, x + 1),) for (x,) in vectors(s)))
def named_tuples(s, world):
    return lambda pair: Pair(pair.right * 2, pair.left)


@shared(lambda s: tuple((Box(x),) for (x,) in vectors(s)) + ((Box(vectors(s)[0][0], 3),),))
def objects(s, world):
    return lambda box: box.value * box.times


@shared(lambda s: tuple((x, 2.5) for (x,) in vectors(s)) + ((vectors(s)[0][0], 0.5), (vectors(s)[0][0], -1.0)))
def numbers(s, world):
    return lambda x, rate: (x * rate, rate)


@shared(lambda s: tuple((x, "sum") for (x,) in vectors(s)) + ((vectors(s)[0][0], "max"),))
def texts(s, world):
    return lambda x, how: s.sum(x) if how == "sum" else s.max(x, 0)


@shared(lambda s: tuple((x, None) for (x,) in vectors(s)) + ((vectors(s)[0][0], vectors(s)[1][0]),))
def optional(s, world):
    return lambda x, bias: x if bias is None else x + bias


@shared()
def defaults(s, world):
    def program(x, scale=2.0, *rest, shift=1.0, **options):
        return x * scale + shift + len(rest) + len(options)

    return program


@shared(lambda s: tuple((x, x + 1, x * 2) for (x,) in vectors(s)) + ((vectors(s)[0][0],),))
def many(s, world):
    return lambda *arrays: s.stack(list(arrays), 0) * len(arrays)


@shared(lambda s: tuple((x, slice(0, 2)) for (x,) in vectors(s)) + ((vectors(s)[0][0], slice(1, 3)),))
def slice_arguments(s, world):
    return lambda x, part: x[part] * 2


# ---- what is around a program --------------------------------------------------------------------------------------


@shared()
def closures(s, world):
    weight, scale = s.array([2.0]), 3.0

    def helper(x):
        return x * weight + scale

    return lambda x: helper(helper(x))


@shared()
def partials(s, world):
    def program(scale, x, shift):
        return x * scale + shift

    return functools.partial(program, 2.0, shift=1.0)


@shared()
def methods(s, world):
    class Model:
        def __init__(self):
            self.weight = s.array([2.0])

        def apply(self, x):
            return x * self.weight

    return Model().apply


@shared()
def callable_objects(s, world):
    class Model:
        def __init__(self):
            self.weight = s.array([2.0])

        def __call__(self, x):
            return x * self.weight

    return Model()


@shared()
def decorated(s, world):
    def twice(function):
        @functools.wraps(function)
        def program(x):
            return function(function(x))

        return program

    @twice
    def program(x):
        return s.tanh(x) + 1

    return program


@shared(lambda s: (vectors(s)[0], lambda world: world.table.update(weight=vectors(s)[1][0]), vectors(s)[0]))
def changed_from_outside(s, world):
    world.table = {"weight": vectors(s)[0][0]}
    table = world.table
    return lambda x: x * table["weight"]


# ---- control flow --------------------------------------------------------------------------------------------------


@shared()
def branch_on_data(s, world):
    def program(x):
        if s.sum(x) > 0:
            return x * 2
        return -x

    return program


@shared()
def loop_on_data(s, world):
    def program(x):
        while s.max(s.abs(x), 0) > 1:
            x = x / 2
        return x

    return program


@shared(lambda s: tuple((x, n) for (x,) in vectors(s) for n in (3, 1)))
def branch_on_number(s, world):
    return lambda x, n: x * n if n > 2 else x - n


@shared()
def branch_on_shape(s, world):
    return lambda x: x[:2] * 10 if x.shape[0] > 2 else x


@shared(lambda s: tuple((x, n) for (x,) in vectors(s) for n in (3, 0)))
def loop_by_number(s, world):
    def program(x, n):
        for step in range(n):
            x = x * 0.5 + step
        return x

    return program


@shared(matrices)
def loop_over_rows(s, world):
    def program(x):
        total = x[0] * 0
        for place in range(x.shape[0]):
            total = total * 2 + x[place]
        return total

    return program


@shared(lambda s: tuple((x, n) for (x,) in vectors(s) for n in (2, -2)))
def raises(s, world):
    def program(x, n):
        if n < 0:
            raise ValueError("negative")
        return x * n

    return program


# ---- state, effects, random numbers --------------------------------------------------------------------------------


@shared()
def counters(s, world):
    world.count = 0

    def program(x):
        world.count += 1
        return x * world.count

    return program


@shared()
def state_of_arrays(s, world):
    world.last = s.array([0.0])

    def program(x):
        result = x + world.last
        world.last = s.reshape(s.sum(x), (1,))
        return result

    return program


@shared()
def histories(s, world):
    world.seen = []

    def program(x):
        world.seen.append(s.sum(x))
        return x + 1

    return program


@shared(lambda s: tuple(({"x": x},) for (x,) in vectors(s)))
def changed_arguments(s, world):
    def program(held):
        held["twice"] = held["x"] * 2
        return held["x"] + 1

    return program


@shared()
def random_numbers(s, world):
    return lambda x: x * s.uniform(1) + s.sum(s.uniform(2))


@shared()
def written_items(s, world):
    def program(x):
        y = x + 0
        y[0] = 9.0
        y += 1
        return y

    return program


@shared()
def written_arguments(s, world):
    def program(x):
        x[0] = 9.0
        return x * 2

    return program


@shared()
def prints(s, world):
    def program(x):
        print("called")
        return x + 1

    return program
