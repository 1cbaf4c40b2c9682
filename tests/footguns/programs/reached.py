"""State and code reached by roundabout ways: slots, descriptors, tables of methods, partials, imports, all globals."""

import array
import contextlib
import dataclasses
import functools
import importlib
import os
import sys
import tempfile
import types
import weakref

import numpy
import torch

from tests.footguns.ledger import Case, call, program

WORD = "CLEW_LEDGER_WORD"
total = 0


def _calls(count=3):
    """An example and further calls of the same shape, on which a counter shows."""
    return {"example": lambda: call(torch.ones(2)), "others": [lambda: call(torch.ones(2) * 2)] * (count - 1)}


@program("object_with_slots_counts", kind="reached")
def _():
    class Point:
        __slots__ = ("calls", "sum")

        def __init__(self):
            self.sum, self.calls = torch.zeros(2), 0

    point = Point()

    def f(x):
        point.calls += 1
        point.sum = point.sum + x
        return point.sum * point.calls

    return Case(f, **_calls(), state=lambda: (point.calls, point.sum))


@program("slots_read", kind="reached")
def _():
    class Options:
        __slots__ = ("scale",)

    options = Options()
    options.scale = 2.0
    change = {"other 1": lambda module: setattr(options, "scale", 5.0)}
    return Case(lambda x: x * options.scale, **_calls(2), between=change)


@program("frozen_dataclass_with_slots_result", kind="reached")
def _():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Scaled:
        x: torch.Tensor
        factor: int = 1

    def f(x, factor):
        return dataclasses.replace(Scaled(x, factor), x=x * factor)

    return Case(f, example=lambda: call(torch.ones(2), 1), others=[lambda: call(torch.ones(3), 4)])


@program("namespace_counts", kind="reached")
def _():
    space = types.SimpleNamespace(calls=0)

    def f(x):
        space.calls += 1
        return x * space.calls

    return Case(f, **_calls(), state=lambda: space.calls)


@program("singleton_made_in_new", kind="reached")
def _():
    class Single:
        only = None

        def __new__(cls):
            if cls.only is None:
                cls.only = object.__new__(cls)
                cls.only.calls = 0
            return cls.only

    def f(x):
        single = Single()
        single.calls += 1
        return x * single.calls

    return Case(f, **_calls(), state=lambda: Single.only and Single.only.calls)


@program("class_method_counts", kind="reached")
def _():
    class Base:
        calls = 0

        @classmethod
        def count(cls):
            cls.calls += 1
            return cls.calls

    class Derived(Base):
        pass

    return Case(lambda x: x * Base.count() + Derived.count(), **_calls(), state=lambda: (Base.calls, Derived.calls))


@program("object_gets_another_class", kind="reached")
def _():
    class Warm:
        def act(self, x):
            return x * 2

    class Cold:
        def act(self, x):
            self.__class__ = Warm
            return x

    engine = Cold()
    return Case(lambda x: engine.act(x), **_calls(), state=lambda: type(engine).__name__)


@program("array_of_numbers_counts", kind="reached")
def _():
    counts = array.array("d", [0.0])

    def f(x):
        counts[0] += 1
        return x * counts[0]

    return Case(f, **_calls(), state=lambda: list(counts))


@program("bytes_grow", kind="reached")
def _():
    held = bytearray()

    def f(x):
        held.append(x.shape[0])
        return x * len(held)

    return Case(f, **_calls(), state=lambda: bytes(held))


@program("numpy_array_counts", kind="reached")
def _():
    counts = numpy.zeros(2)

    def f(x):
        counts[0] += 1
        return x * float(counts[0])

    return Case(f, **_calls(), state=lambda: counts.copy())


@program("numpy_array_read", kind="reached")
def _():
    scale = numpy.array([2.0, 3.0])
    change = {"other 1": lambda module: scale.__setitem__(0, 9.0)}
    return Case(lambda x: x * float(scale[0]), **_calls(2), between=change)


@program("weak_dictionary_counts", kind="reached")
def _():
    class Key:
        pass

    key, counts = Key(), weakref.WeakKeyDictionary()

    def f(x):
        counts[key] = counts.get(key, 0) + 1
        return x * counts[key]

    return Case(f, **_calls(), state=lambda: list(counts.values()))


@program("descriptor_counts", kind="reached")
def _():
    class Counting:
        def __init__(self):
            self.reads = 0

        def __get__(self, owner, kind):
            self.reads += 1
            return self.reads

    counting = Counting()

    class Owner:
        value = counting

    owner = Owner()
    return Case(lambda x: x * owner.value, **_calls(), state=lambda: counting.reads)


@program("closures_in_a_table", kind="reached")
def _():
    def counter():
        count = 0

        def add():
            nonlocal count
            count += 1

        return {"add": add, "get": lambda: count}

    table = counter()

    def f(x):
        table["add"]()
        return x * table["get"]()

    return Case(f, **_calls(), state=lambda: table["get"]())


@program("methods_in_a_table", kind="reached")
def _():
    class Sum:
        def __init__(self):
            self.total = 0.0

        def add(self, x):
            self.total += 1
            return x + self.total

    held = Sum()
    table = {"plain": held.add, "partial": functools.partial(held.add)}
    return Case(
        lambda x, way: table[way](x),
        example=lambda: call(torch.ones(2), "plain"),
        others=[lambda: call(torch.ones(2), "partial"), lambda: call(torch.ones(2), "plain")],
        state=lambda: held.total,
    )


@program("function_in_a_list_counts_itself", kind="reached")
def _():
    def step(x):
        step.calls = getattr(step, "calls", 0) + 1
        return x * step.calls

    steps = [step]

    def f(x):
        for one in steps:
            x = one(x)
        return x

    return Case(f, **_calls(), state=lambda: getattr(step, "calls", 0))


@program("partial_holds_a_list", kind="reached")
def _():
    log = []

    def g(held, x):
        held.append(len(held))
        return x * len(held)

    return Case(functools.partial(g, log), **_calls(), state=lambda: list(log))


@program("decorator_remembers_failures", kind="reached")
def _():
    failures = []

    def retrying(function):
        @functools.wraps(function)
        def wrapper(x):
            for attempt in range(3):
                try:
                    return function(x, attempt)
                except ValueError:
                    failures.append(attempt)
            return x

        return wrapper

    @retrying
    def f(x, attempt=0):
        if attempt < x.shape[0] - 1:
            raise ValueError("not yet")
        return x * attempt

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(1)), lambda: call(torch.ones(3))],
        state=lambda: list(failures),
    )


@program("asks_how_a_cache_stands", kind="reached")
def _():
    @functools.lru_cache
    def twice(number):
        return number * 2

    def f(x):
        twice(x.shape[0])
        return x * twice.cache_info().misses

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3))])


@program("global_set_by_its_name", kind="reached")
def _():
    def f(x):
        globals()["total"] += 1
        return x * globals()["total"]

    def reset():
        globals()["total"] = 0

    return Case(f, **_calls(), state=lambda: total, reset=reset)


@program("module_imported_in_the_body", kind="reached")
def _():
    held = sys.modules["clew_ledger_made"] = types.ModuleType("clew_ledger_made")
    held.calls = 0

    def f(x):
        import clew_ledger_made

        clew_ledger_made.calls += 1
        return x * clew_ledger_made.calls

    return Case(f, **_calls(), state=lambda: held.calls)


@program("module_imported_by_text", kind="reached")
def _():
    held = sys.modules["clew_ledger_text"] = types.ModuleType("clew_ledger_text")
    held.scale = 2.0
    change = {"other 1": lambda module: setattr(held, "scale", 5.0)}
    return Case(lambda x: x * importlib.import_module("clew_ledger_text").scale, **_calls(2), between=change)


@program("environment_written", kind="reached")
def _():
    def f(x):
        os.environ[WORD] = str(int(os.environ.get(WORD, "0")) + 1)
        return x * int(os.environ[WORD])

    return Case(f, **_calls(), state=lambda: os.environ.get(WORD), reset=lambda: os.environ.pop(WORD, None))


@program("file_written", kind="reached")
def _():
    path = tempfile.mktemp()

    def f(x):
        with open(path, "a") as file:
            file.write("a" * x.shape[0])
        return x * os.path.getsize(path)

    def reset():
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    return Case(f, **_calls(), state=lambda: os.path.exists(path) and os.path.getsize(path), reset=reset)


@program("constant_changed_through_data", kind="reached")
def _():
    scale = torch.tensor([2.0, 3.0])
    change = {"other 1": lambda module: scale.data.fill_(9.0)}
    return Case(lambda x: x * scale.sum() * 2, **_calls(2), between=change)


@program("constant_changed_through_numpy", kind="reached")
def _():
    numbers = numpy.array([2.0, 3.0])
    scale = torch.from_numpy(numbers)
    change = {"other 1": lambda module: numbers.fill(9.0)}
    return Case(lambda x: x * scale.sum() * 2, **_calls(2), between=change)


@program("torch_raises_after_a_count", kind="reached")
def _():
    calls = [0]

    def f(x, y):
        calls[0] += 1
        return x @ y

    return Case(
        f,
        example=lambda: call(torch.ones(2, 2), torch.ones(2, 2)),
        others=[lambda: call(torch.ones(2, 3), torch.ones(2, 2)), lambda: call(torch.ones(2, 2), torch.ones(2, 2))],
        state=lambda: list(calls),
        same_text=False,
    )


@program("called_object_with_slots", kind="reached")
def _():
    class Counter:
        __slots__ = ("calls",)

        def __init__(self):
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            return x * self.calls

    counter = Counter()
    return Case(counter, **_calls(), state=lambda: counter.calls)


@program("hook_on_the_gradients_of_a_module", kind="reached")
def _():
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, incoming, outgoing: (incoming[0] * 10,))
    return Case(
        layer,
        example=lambda: call(torch.ones(2, 2).requires_grad_()),
        others=[lambda: call(torch.ones(3, 2).requires_grad_())],
        gradients=True,
    )


@program("buffer_registered_in_forward", kind="reached")
def _():
    class Positions(torch.nn.Module):
        def forward(self, x):
            if not hasattr(self, "positions"):
                self.register_buffer("positions", torch.arange(4.0), persistent=False)
            return x + self.positions[: x.shape[0]]

    return Case(
        Positions(),
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(1))],
    )
