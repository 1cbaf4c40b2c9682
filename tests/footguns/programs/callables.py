"""Partials, lambdas, tables of functions, methods, decorators, caches, callbacks and globals."""

import functools
import operator

import torch
import torch.nn.functional as F
from torch import nn

from tests.footguns.ledger import Case, call, program

SCALE = 2.0
REGISTRY = {}
CALLS = []


@program("callable_argument", kind="callables")
def _():
    def f(x, activation):
        return activation(x) + 1

    return Case(
        f,
        example=lambda: call(torch.tensor([-1.0, 2.0]), torch.relu),
        others=[
            lambda: call(torch.tensor([-1.0, 2.0]), torch.tanh),
            lambda: call(torch.tensor([-1.0, 2.0]), lambda x: x * 3),
            lambda: call(torch.tensor([-1.0, 2.0]), nn.ELU()),
        ],
    )


@program("optional_callback", kind="callables")
def _():
    def f(x, callback=None):
        y = x.sin()
        if callback is not None:
            y = callback(y)
        return y

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2), callback=torch.neg), lambda: call(torch.ones(2), lambda y: y * y)],
    )


@program("callback_records", kind="callables")
def _():
    def with_log():
        log = []
        return lambda value: log.append(float(value))

    def f(x, callback):
        for step in range(3):
            x = x * 0.5
            callback(x.sum())
        return x

    return Case(
        f, example=lambda: call(torch.ones(2), with_log()), others=[lambda: call(torch.ones(2) * 6, with_log())]
    )


@program("partial_argument", kind="callables")
def _():
    def f(x, function):
        return function(x)

    return Case(
        f,
        example=lambda: call(torch.randn(3), functools.partial(torch.clamp, min=0.0)),
        others=[
            lambda: call(torch.randn(3), functools.partial(torch.clamp, min=0.5)),
            lambda: call(torch.randn(3), functools.partial(torch.clamp, max=0.0)),
        ],
    )


@program("partial_as_subject", kind="callables")
def _():
    def scale(x, factor, shift=0.0):
        return x * factor + shift

    return Case(
        functools.partial(scale, factor=3.0),
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2), shift=1.0), lambda: call(torch.ones(2), factor=5.0)],
    )


@program("table_of_functions", kind="callables")
def _():
    table = {"relu": F.relu, "gelu": F.gelu, "swish": lambda x: x * x.sigmoid()}

    def f(x, activation="relu"):
        return table[activation](x)

    return Case(
        f,
        example=lambda: call(torch.randn(4)),
        others=[
            lambda: call(torch.randn(4), "gelu"),
            lambda: call(torch.randn(4), activation="swish"),
            lambda: call(torch.randn(4), "none"),
        ],
    )


@program("table_indexed_by_tensor", kind="callables")
def _():
    experts = [torch.sin, torch.cos, torch.exp]

    def f(x, gate):
        return experts[gate.argmax()](x)

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.tensor([1.0, 0, 0])),
        others=[lambda: call(torch.ones(2), torch.tensor([0, 0, 1.0]))],
    )


@program("table_changed_between_calls", kind="callables")
def _():
    table = {"act": torch.sin}

    def f(x):
        return table["act"](x)

    def switch():
        table["act"] = torch.cos
        return call(torch.ones(2))

    return Case(f, example=lambda: call(torch.ones(2)), others=[switch])


@program("lambda_closure_rebound", kind="callables")
def _():
    scale = 2.0

    def f(x):
        return x * scale

    def rebind():
        nonlocal scale
        scale = 5.0
        return call(torch.ones(2))

    return Case(f, example=lambda: call(torch.ones(2)), others=[rebind])


@program("late_binding_lambdas", kind="callables")
def _():
    def f(x, factors):
        functions = []
        for factor in factors:
            functions.append(lambda y: y * factor)
        return [function(x) for function in functions]

    return Case(
        f, example=lambda: call(torch.ones(2), [1.0, 2.0]), others=[lambda: call(torch.ones(2), [3.0, 4.0, 5.0])]
    )


@program("global_number_changes", kind="callables")
def _():
    def reset(value=2.0):
        global SCALE
        SCALE = value

    def f(x):
        return x * SCALE

    def change():
        reset(7.0)
        return call(torch.ones(2))

    return Case(f, example=lambda: call(torch.ones(2)), others=[change], state=lambda: SCALE, reset=reset)


@program("global_counter", kind="callables")
def _():
    def f(x):
        CALLS.append(len(CALLS))
        return x * len(CALLS)

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3))],
        state=lambda: CALLS,
        reset=CALLS.clear,
    )


@program("registry_filled_by_call", kind="callables")
def _():
    def f(x, name):
        if name not in REGISTRY:
            REGISTRY[name] = len(REGISTRY) + 1
        return x * REGISTRY[name]

    return Case(
        f,
        example=lambda: call(torch.ones(2), "a"),
        others=[lambda: call(torch.ones(2), "b"), lambda: call(torch.ones(2), "a")],
        state=lambda: REGISTRY,
        reset=REGISTRY.clear,
    )


@program("bound_method", kind="callables")
def _():
    class Scaler:
        def __init__(self, factor):
            self.factor = factor

        def apply(self, x, power=1):
            return x * self.factor**power

    scaler = Scaler(3.0)
    return Case(
        scaler.apply,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2), power=2), lambda: call(torch.ones(3), 0)],
    )


@program("method_by_name", kind="callables")
def _():
    def f(x, reduction):
        return getattr(x, reduction)(dim=-1)

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3), "sum"),
        others=[lambda: call(torch.randn(2, 3), "mean"), lambda: call(torch.randn(2, 3), "argmax")],
    )


@program("function_by_name", kind="callables")
def _():
    def f(x, name):
        return getattr(torch, name)(x)

    return Case(
        f,
        example=lambda: call(torch.randn(3), "sin"),
        others=[lambda: call(torch.randn(3), "cos"), lambda: call(torch.randn(3), "no_such")],
    )


@program("callable_object", kind="callables")
def _():
    class Ema:
        def __init__(self):
            self.value = None

        def __call__(self, x):
            self.value = x if self.value is None else 0.5 * self.value + 0.5 * x
            return self.value

    ema = Ema()
    return Case(
        ema, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 9)], state=lambda: ema.value
    )


@program("decorated_with_counter", kind="callables")
def _():
    def counted(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            wrapper.calls += 1
            return function(*args, **kwargs) * wrapper.calls

        wrapper.calls = 0
        return wrapper

    @counted
    def f(x):
        return x + 1

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3))], state=lambda: f.calls)


@program("decorator_with_options", kind="callables")
def _():
    def scaled(by):
        def decorate(function):
            @functools.wraps(function)
            def wrapper(x, *args, scale=by, **kwargs):
                return function(x, *args, **kwargs) * scale

            return wrapper

        return decorate

    @scaled(by=3.0)
    def f(x, shift=0.0):
        return x + shift

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[
            lambda: call(torch.ones(2), shift=1.0),
            lambda: call(torch.ones(2), scale=10.0),
            lambda: call(torch.ones(2), 4.0),
        ],
    )


@program("lru_cache_on_size", kind="callables")
def _():
    @functools.cache
    def positions(length):
        return torch.arange(length).float() / length

    def f(x):
        return x + positions(x.shape[-1])

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3)),
        others=[lambda: call(torch.randn(2, 5)), lambda: call(torch.randn(4, 1))],
    )


@program("lru_cache_on_number", kind="callables")
def _():
    @functools.cache
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    def f(x, n):
        return x / factorial(n)

    return Case(
        f,
        example=lambda: call(torch.ones(2), 3),
        others=[lambda: call(torch.ones(2), 5), lambda: call(torch.ones(2), 0)],
    )


@program("cache_keyed_by_tensor", kind="callables")
def _():
    cache = {}

    def f(x):
        if x not in cache:
            cache[x] = x.sum() * 2
        return cache[x] + len(cache)

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3) * 4)], state=lambda: len(cache)
    )


@program("cached_property", kind="callables")
def _():
    class Window:
        def __init__(self, size):
            self.size = size

        @functools.cached_property
        def weights(self):
            return torch.linspace(0, 1, self.size)

    def f(x, window):
        return x * window.weights

    return Case(
        f,
        example=lambda: call(torch.ones(3), Window(3)),
        others=[lambda: call(torch.ones(4), Window(4)), lambda: call(torch.ones(1), Window(5))],
    )


@program("single_dispatch", kind="callables")
def _():
    @functools.singledispatch
    def f(x):
        return x * 2

    @f.register
    def _(x: list):
        return [f(part) for part in x]

    @f.register
    def _(x: dict):
        return {key: f(part) - 1 for key, part in x.items()}

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call([torch.ones(2)]), lambda: call({"a": torch.ones(2)})],
    )


@program("operator_as_argument", kind="callables")
def _():
    def f(a, b, combine=operator.add):
        return combine(a, b)

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2) * 3),
        others=[
            lambda: call(torch.ones(2), torch.ones(2) * 3, operator.sub),
            lambda: call(torch.ones(2), torch.ones(2) * 3, combine=max_of),
        ],
    )


def max_of(a, b):
    return torch.maximum(a, b) * 10


@program("composed_pipeline", kind="callables")
def _():
    def f(x, steps):
        for step in steps:
            x = step(x)
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2), [torch.sin, torch.neg]),
        others=[
            lambda: call(torch.ones(2), [torch.neg, torch.exp]),
            lambda: call(torch.ones(2), [torch.sin]),
            lambda: call(torch.ones(2), []),
        ],
    )


@program("nonlocal_counter", kind="callables")
def _():
    count = 0

    def f(x):
        nonlocal count
        count += 1
        return x / count

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(5))], state=lambda: count)


@program("mutable_default", kind="callables")
def _():
    def f(x, seen=[]):
        seen.append(float(x.sum()))
        return x * len(seen)

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(2), [1.0, 2.0])],
        state=lambda: f.__defaults__,
    )


@program("static_and_class_methods", kind="callables")
def _():
    class Ops:
        gain = 2.0

        @staticmethod
        def shift(x, by):
            return x + by

        @classmethod
        def amplify(cls, x):
            return x * cls.gain

    def f(x, ops, by):
        return ops.shift(ops.amplify(x), by)

    class Loud(Ops):
        gain = 10.0

    return Case(
        f,
        example=lambda: call(torch.ones(2), Ops, 1),
        others=[lambda: call(torch.ones(2), Loud, 1), lambda: call(torch.ones(2), Ops(), 3)],
    )
