"""Objects with attributes, properties, operators, context managers and iterators of their own."""

import contextlib
import dataclasses
import enum
from types import SimpleNamespace

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("config_object", kind="objects")
def _():
    def f(x, config):
        if config.normalise:
            x = x / x.norm()
        return x * config.scale

    return Case(
        f,
        example=lambda: call(torch.ones(4), SimpleNamespace(normalise=True, scale=2.0)),
        others=[
            lambda: call(torch.ones(4), SimpleNamespace(normalise=False, scale=2.0)),
            lambda: call(torch.ones(4), SimpleNamespace(normalise=True, scale=5.0)),
        ],
    )


@program("object_holding_tensors", kind="objects")
def _():
    class Batch:
        def __init__(self, x, y):
            self.x, self.y = x, y

    def f(batch):
        return batch.x * 2 - batch.y

    return Case(
        f,
        example=lambda: call(Batch(torch.ones(2), torch.zeros(2))),
        others=[lambda: call(Batch(torch.ones(3), torch.ones(3) * 4))],
    )


@program("object_mutated", kind="objects")
def _():
    class State:
        def __init__(self, hidden):
            self.hidden = hidden
            self.step = 0

    def f(state, x):
        state.hidden = state.hidden * 0.5 + x
        state.step += 1
        return state.hidden.sum() * state.step

    def later():
        state = State(torch.ones(2))
        state.step = 4
        return call(state, torch.ones(2))

    return Case(f, example=lambda: call(State(torch.zeros(2)), torch.ones(2)), others=[later])


@program("object_returned_new", kind="objects")
def _():
    class Pair:
        def __init__(self, left, right):
            self.left, self.right = left, right

    def f(x):
        return Pair(x + 1, [x * 2])

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3) * 4)], aliasing=True)


@program("object_returned_itself", kind="objects")
def _():
    class Box:
        def __init__(self, value):
            self.value = value

    def f(box):
        box.value = box.value + 1
        return box

    return Case(f, example=lambda: call(Box(torch.ones(2))), others=[lambda: call(Box(torch.zeros(3)))], aliasing=True)


@program("property_with_branch", kind="objects")
def _():
    class Signal:
        def __init__(self, samples, rate):
            self.samples, self.rate = samples, rate

        @property
        def normalised(self):
            return self.samples / self.rate if self.rate > 10 else self.samples

    def f(signal):
        return signal.normalised.sum()

    return Case(
        f,
        example=lambda: call(Signal(torch.ones(4), 20)),
        others=[lambda: call(Signal(torch.ones(4), 5)), lambda: call(Signal(torch.ones(4), 40))],
    )


@program("dunder_getattr", kind="objects")
def _():
    class Lazy:
        def __init__(self, **values):
            self.__dict__["values"] = values

        def __getattr__(self, name):
            try:
                return self.__dict__["values"][name]
            except KeyError as error:
                raise AttributeError(name) from error

    def f(x, lazy):
        return x * lazy.gain + getattr(lazy, "bias", 0.0)

    return Case(
        f,
        example=lambda: call(torch.ones(2), Lazy(gain=2.0)),
        others=[lambda: call(torch.ones(2), Lazy(gain=3.0)), lambda: call(torch.ones(2), Lazy(gain=2.0, bias=1.0))],
    )


@program("operator_overloads", kind="objects")
def _():
    class Dual:
        def __init__(self, real, dual):
            self.real, self.dual = real, dual

        def __mul__(self, other):
            other = other if isinstance(other, Dual) else Dual(other, 0.0)
            return Dual(self.real * other.real, self.real * other.dual + self.dual * other.real)

    def f(a, b):
        return (a * b * 2.0).dual

    return Case(
        f,
        example=lambda: call(Dual(torch.ones(2), torch.ones(2)), Dual(torch.ones(2) * 3, torch.zeros(2))),
        others=[
            lambda: call(Dual(torch.ones(2), torch.ones(2)), 4.0),
            lambda: call(Dual(torch.ones(3), torch.ones(3) * 2), Dual(torch.ones(3), torch.ones(3))),
        ],
    )


@program("own_context_manager", kind="objects")
def _():
    log = []

    @contextlib.contextmanager
    def section(name):
        log.append(f"enter {name}")
        try:
            yield len(log)
        finally:
            log.append(f"leave {name}")

    def f(x, name="work"):
        with section(name) as depth:
            x = x * depth
        return x

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2), name="rest")], state=lambda: log
    )


@program("context_sets_global_mode", kind="objects")
def _():
    mode = SimpleNamespace(scale=1.0)

    @contextlib.contextmanager
    def scaled(by):
        before, mode.scale = mode.scale, by
        try:
            yield
        finally:
            mode.scale = before

    def inner(x):
        return x * mode.scale

    def f(x, by):
        with scaled(by):
            y = inner(x)
        return y + inner(x)

    return Case(
        f, example=lambda: call(torch.ones(2), 3.0), others=[lambda: call(torch.ones(2), 9.0)], state=lambda: mode.scale
    )


@program("iterator_object", kind="objects")
def _():
    class Batches:
        def __init__(self, data, size):
            self.data, self.size = data, size

        def __len__(self):
            return -(-len(self.data) // self.size)

        def __iter__(self):
            for index in range(len(self)):
                yield self.data[index * self.size : (index + 1) * self.size]

    def f(batches):
        return sum(batch.mean() for batch in batches) / len(batches)

    return Case(
        f,
        example=lambda: call(Batches(torch.arange(6.0), 2)),
        others=[lambda: call(Batches(torch.arange(6.0), 3)), lambda: call(Batches(torch.arange(9.0) * 2, 2))],
    )


@program("iterator_kept_between_calls", kind="objects")
def _():
    schedule = iter([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])

    def f(x):
        return x * next(schedule)

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2))])


@program("enum_argument", kind="objects")
def _():
    class Reduction(enum.Enum):
        SUM = "sum"
        MEAN = "mean"

    def f(x, reduction):
        if reduction is Reduction.SUM:
            return x.sum()
        return x.mean() if reduction == Reduction.MEAN else x

    return Case(
        f,
        example=lambda: call(torch.ones(3), Reduction.SUM),
        others=[lambda: call(torch.ones(3), Reduction.MEAN), lambda: call(torch.ones(3), None)],
    )


@program("dataclass_argument", kind="objects")
def _():
    @dataclasses.dataclass
    class Options:
        depth: int = 2
        gain: float = 1.5
        bias: torch.Tensor | None = None

    def f(x, options):
        for _ in range(options.depth):
            x = x * options.gain
        return x if options.bias is None else x + options.bias

    return Case(
        f,
        example=lambda: call(torch.ones(2), Options()),
        others=[
            lambda: call(torch.ones(2), Options(depth=3)),
            lambda: call(torch.ones(2), Options(gain=3.0)),
            lambda: call(torch.ones(2), Options(bias=torch.ones(2))),
        ],
    )


@program("dataclass_replace", kind="objects")
def _():
    @dataclasses.dataclass(frozen=True)
    class State:
        hidden: torch.Tensor
        step: int

    def f(state):
        return dataclasses.replace(state, hidden=state.hidden * 2, step=state.step + 1)

    return Case(
        f,
        example=lambda: call(State(torch.ones(2), 0)),
        others=[lambda: call(State(torch.ones(2), 7)), lambda: call(State(torch.ones(3), 1))],
    )


@program("module_as_argument", kind="objects")
def _():
    def f(x, layer):
        return layer(x).relu()

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3), nn.Linear(3, 2)),
        others=[
            lambda: call(torch.randn(2, 3), nn.Linear(3, 2)),
            lambda: call(torch.randn(2, 3), nn.Identity()),
            lambda: call(torch.randn(2, 3), nn.Linear(3, 5)),
        ],
    )


@program("slots_object", kind="objects")
def _():
    class Point:
        __slots__ = ("x", "y")

        def __init__(self, x, y):
            self.x, self.y = x, y

    def f(point):
        point.x, point.y = point.y, point.x + 1
        return point.x - point.y

    return Case(
        f,
        example=lambda: call(Point(torch.ones(2), torch.zeros(2))),
        others=[lambda: call(Point(torch.ones(3) * 5, torch.zeros(3)))],
    )


@program("equality_and_hash", kind="objects")
def _():
    class Key:
        def __init__(self, name):
            self.name = name

        def __eq__(self, other):
            return isinstance(other, Key) and self.name == other.name

        def __hash__(self):
            return hash(self.name)

    table = {Key("a"): 2.0, Key("b"): 5.0}

    def f(x, key):
        return x * table.get(key, 1.0)

    return Case(
        f,
        example=lambda: call(torch.ones(2), Key("a")),
        others=[lambda: call(torch.ones(2), Key("b")), lambda: call(torch.ones(2), Key("c"))],
    )


@program("dynamic_cache", kind="objects")
def _():
    class DynamicCache:
        def __init__(self):
            self.keys = []

        def update(self, key, layer):
            if layer == len(self.keys):
                self.keys.append(key)
            else:
                self.keys[layer] = torch.cat([self.keys[layer], key], dim=1)
            return self.keys[layer]

        def length(self):
            return self.keys[0].shape[1] if self.keys else 0

    def filled(length):
        cache = DynamicCache()
        cache.update(torch.randn(1, length, 2), 0)
        return cache

    def f(x, cache):
        past = cache.length()
        keys = cache.update(x + torch.arange(past, past + x.shape[1])[None, :, None], 0)
        return x @ keys.transpose(1, 2)

    return Case(
        f,
        example=lambda: call(torch.randn(1, 3, 2), DynamicCache()),
        others=[
            lambda: call(torch.randn(1, 1, 2), filled(3)),
            lambda: call(torch.randn(1, 5, 2), DynamicCache()),
            lambda: call(torch.randn(1, 1, 2), filled(6)),
        ],
        aliasing=True,
    )


@program("two_names_for_one_object", kind="objects")
def _():
    class Box:
        def __init__(self, value):
            self.value = value

    def f(a, b):
        a.value = a.value + 1
        return b.value * 2

    def same():
        box = Box(torch.ones(2))
        return call(box, box)

    return Case(f, example=lambda: call(Box(torch.ones(2)), Box(torch.ones(2))), others=[same])


@program("deletes_an_attribute", kind="objects")
def _():
    def f(x, options):
        if hasattr(options, "once"):
            x = x * options.once
            del options.once
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2), SimpleNamespace()),
        others=[lambda: call(torch.ones(2), SimpleNamespace(once=4.0))],
    )


@program("subclass_overrides", kind="objects")
def _():
    class Base:
        def gain(self):
            return 2.0

        def run(self, x):
            return x * self.gain()

    class Child(Base):
        def gain(self):
            return super().gain() + 1

    def f(x, layer):
        return layer.run(x)

    return Case(f, example=lambda: call(torch.ones(2), Base()), others=[lambda: call(torch.ones(2), Child())])


@program("numeric_object", kind="objects")
def _():
    class Learned:
        def __init__(self, value):
            self.value = value

        def __float__(self):
            return self.value

        def __index__(self):
            return int(self.value)

    def f(x, amount):
        return x[: int(amount)] * float(amount)

    return Case(
        f,
        example=lambda: call(torch.ones(5), Learned(2.0)),
        others=[lambda: call(torch.ones(5), Learned(3.5)), lambda: call(torch.ones(5), 4)],
    )


class Measured:
    """What a program makes of an array: a size, a number and the array."""

    def __init__(self, value, number=0):
        self.size, self.number, self.value = value.shape, number, value


@program("object_made_in_a_loop_that_returns", kind="objects")
def _():
    def f(x):
        for _ in range(x.shape[0] % 4):
            return Measured(x)

    others = [lambda: call(torch.ones(1, 4)), lambda: call(torch.ones(4, 4)), lambda: call(torch.ones(3, 2))]
    return Case(f, example=lambda: call(torch.ones(2, 4)), others=others)


@program("object_of_a_row_made_in_a_loop", kind="objects")
def _():
    def f(x):
        for row in x:
            if row.sum() > 0:
                return Measured(row, row.sum().item())

    others = [lambda: call(-torch.ones(2, 4)), lambda: call(torch.tensor([[-1.0], [5.0]])), lambda: call(torch.ones(3))]
    return Case(f, example=lambda: call(torch.ones(2, 4)), others=others)


@program("object_made_on_the_only_way_that_goes_on", kind="objects")
def _():
    def f(x):
        if x.sum() > 0:
            made = Measured(x * 2, x.sum().item())
        else:
            raise ValueError("negative")
        return made.value, made.number, made

    others = [lambda: call(torch.ones(2, 4) * 3), lambda: call(-torch.ones(2, 4)), lambda: call(torch.ones(3, 1))]
    return Case(f, example=lambda: call(torch.ones(2, 4)), others=others)
