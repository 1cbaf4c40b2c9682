"""What lies deep, or where nobody looks: below many attributes, in classes, default values, caches and enumerations."""

import collections
import contextlib
import enum
import functools
import os
import random
import tempfile
import time
import types

import torch

from tests.footguns.ledger import Case, call, program


def _calls(count=3):
    """An example and further calls of the same shape."""
    return {"example": lambda: call(torch.ones(2)), "others": [lambda: call(torch.ones(2) * 2)] * (count - 1)}


def _deep():
    leaf = types.SimpleNamespace(scale=2.0)
    return types.SimpleNamespace(
        inner=types.SimpleNamespace(table={"k": [types.SimpleNamespace(rows=[[{"z": leaf}]])]})
    )


def _leaf(top):
    return top.inner.table["k"][0].rows[0][0]["z"]


@program("setting_nine_levels_down", kind="deep_down")
def _():
    top = _deep()
    change = {"other 1": lambda module: setattr(_leaf(top), "scale", 5.0)}
    return Case(lambda x: x * top.inner.table["k"][0].rows[0][0]["z"].scale, **_calls(), between=change)


@program("counter_nine_levels_down", kind="deep_down")
def _():
    top = _deep()

    def f(x):
        leaf = top.inner.table["k"][0].rows[0][0]["z"]
        leaf.scale += 1
        return x * leaf.scale

    return Case(f, **_calls(), state=lambda: _leaf(top).scale)


@program("setting_behind_a_bound_method", kind="deep_down")
def _():
    class Scaling:
        def __init__(self):
            self.options = {"scale": [2.0]}

        def __call__(self, x):
            return x * self.options["scale"][0]

        def apply(self, x):
            return self(x)

    scaling = Scaling()
    apply = scaling.apply
    change = {"other 1": lambda module: scaling.options["scale"].__setitem__(0, 5.0)}
    return Case(lambda x: apply(x), **_calls(), between=change)


@program("setting_in_a_list_of_very_many", kind="deep_down")
def _():
    many = [types.SimpleNamespace(scale=1.0) for _ in range(600)]
    change = {"other 1": lambda module: setattr(many[555], "scale", 5.0)}
    return Case(lambda x: x * many[555].scale, **_calls(), between=change)


def _making_folders(f):
    folder = os.path.join(tempfile.gettempdir(), f"clew-ledger-{os.getpid()}")

    def found():
        """Whether there is a folder, which is taken away at once."""
        if not os.path.exists(folder):
            return False
        os.rmdir(folder)
        return True

    return Case(lambda x: f(x, folder), **_calls(), state=found)


@program("function_of_the_system_in_a_class", kind="deep_down")
def _():
    class Tools:
        make = staticmethod(os.mkdir)

    def f(x, folder):
        Tools.make(folder)
        return x + 1

    return _making_folders(f)


@program("function_of_the_system_as_default_value", kind="deep_down")
def _():
    def f(x, folder, make=os.mkdir):
        make(folder)
        return x + 1

    return _making_folders(f)


@program("function_of_the_system_as_argument", kind="deep_down")
def _():
    folder = os.path.join(tempfile.gettempdir(), f"clew-ledger-{os.getpid()}")

    def f(x, make):
        make(folder)
        return x + 1

    def found():
        return os.path.exists(folder) and (os.rmdir(folder) or True)

    inputs = [lambda: call(torch.ones(2), os.mkdir)] * 3
    return Case(f, example=inputs[0], others=inputs[1:], state=found)


@program("random_numbers_from_a_class_attribute", kind="deep_down")
def _():
    class Tools:
        draw = staticmethod(random.random)
        between = random.uniform

    return Case(lambda x: x + Tools.draw() + Tools.between(0, 1), **_calls())


@program("random_numbers_from_default_values", kind="deep_down")
def _():
    def noise(x, draw=random.random, *, around=random.gauss):
        return x + draw() + around(0, 1)

    return Case(lambda x: noise(x), **_calls())


@program("clock_as_default_value", kind="deep_down")
def _():
    def late(x, clock=time.perf_counter):
        return x + (clock() - time.perf_counter() > -1)

    return Case(lambda x: late(x), **_calls())


@program("generator_of_the_users_class", kind="deep_down")
def _():
    class Doubled(random.Random):
        def random(self):
            return super().random() * 2

    generator = Doubled(3)
    return Case(lambda x: x + generator.random(), **_calls(), state=generator.getstate)


@program("generator_of_the_system", kind="deep_down")
def _():
    generator = random.SystemRandom()
    return Case(lambda x: x + (generator.random() >= 0), **_calls())


@program("cached_function_that_counts", kind="deep_down")
def _():
    count = [0]

    @functools.lru_cache
    def doubled(number):
        count[0] += 1
        return number * 2.0

    return Case(lambda x: x * doubled(x.shape[0]) + doubled(7), **_calls(), state=lambda: count[0])


@program("flags_and_numbers", kind="deep_down")
def _():
    class Mode(enum.IntFlag):
        NEAR = 1
        FAR = 2

    def f(x, mode):
        return x * mode + (10 if mode & Mode.NEAR else 0)

    modes = [Mode.FAR, 2, Mode.NEAR | Mode.FAR, 3, 1]
    others = [lambda mode=mode: call(torch.ones(2), mode) for mode in modes]
    return Case(f, example=lambda: call(torch.ones(2), Mode.NEAR), others=others)


@program("contexts_on_a_stack_in_a_loop", kind="deep_down")
def _():
    log = []

    @contextlib.contextmanager
    def noted(number):
        log.append(number)
        try:
            yield number * 2
        finally:
            log.append(-number)

    def f(x):
        with contextlib.ExitStack() as stack:
            for number in range(x.shape[0]):
                x = x + stack.enter_context(noted(number))
        return x

    return Case(f, **_calls(), state=lambda: list(log))


@program("deque_of_a_size", kind="deep_down")
def _():

    def f(x, n):
        return torch.stack(list(collections.deque(x, maxlen=n)))

    others = [lambda n=n: call(torch.arange(4.0), n) for n in (1, 3)]
    return Case(f, example=lambda: call(torch.arange(4.0), 2), others=others)


@program("equal_keys_of_other_types", kind="deep_down")
def _():
    def f(table):
        return table[1] * 2, [type(key).__name__ for key in table]

    others = [lambda key=key: call({key: torch.ones(2)}) for key in (True, 1.0)]
    return Case(f, example=lambda: call({1: torch.ones(2)}), others=others)


@program("counter_in_the_class_of_an_autograd_function", kind="deep_down")
def _():
    class Doubled(torch.autograd.Function):
        count = 0

        @staticmethod
        def forward(ctx, x):
            Doubled.count += 1
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    return Case(lambda x: Doubled.apply(x), **_calls(), state=lambda: Doubled.count)


@program("write_through_a_variable_before_an_error", kind="deep_down")
def _():
    kept = {"count": 0, "sum": torch.zeros(2)}

    def f(x):
        kept["count"] += 1
        kept["sum"].add_(x)
        if x.sum() < 0:
            raise ValueError(f"call {kept['count']}")
        kept["count"] += 10
        return x * kept["sum"]

    others = [lambda: call(-torch.ones(2)), lambda: call(torch.ones(2) * 3), lambda: call(-torch.ones(2) * 5)]
    return Case(f, example=lambda: call(torch.ones(2)), others=others, state=lambda: (kept["count"], kept["sum"]))


@program("write_through_an_argument_before_an_error", kind="deep_down")
def _():
    def f(kept, x):
        kept.count += 1
        kept.sum.add_(x)
        if x.sum() < 0:
            raise ValueError("negative")
        kept.count += 10
        return x * kept.sum

    def inputs(value):
        return lambda: call(types.SimpleNamespace(count=0, sum=torch.zeros(2)), torch.ones(2) * value)

    return Case(f, example=inputs(1), others=[inputs(-1), inputs(2)])
