"""What a program finds around itself besides variables: context variables, iterators and random numbers in objects,
clocks under other names, texts in memory, folders and files, weak references."""

import contextlib
import contextvars
import functools
import io
import itertools
import os
import random
import time
import weakref

import numpy
import torch
from torch import nn

from tests.footguns.ledger import Case, call, program

PAIR = [lambda: call(torch.tensor([1.0, 2.0, 3.0])), lambda: call(torch.tensor([-1.0, -2.0, 0.5]))]
AGAIN = [PAIR[1], PAIR[1], PAIR[0]]

chosen: contextvars.ContextVar[float] = contextvars.ContextVar("ledger_chosen", default=1.0)
given: contextvars.ContextVar[object] = contextvars.ContextVar("ledger_given", default=2.0)


class Holder:
    """Holds what a program uses."""


@program("context_variable_counts", kind="surroundings")
def _():
    def f(x):
        chosen.set(chosen.get() + 1)
        return x * chosen.get()

    return Case(f, example=PAIR[0], others=AGAIN, state=lambda: chosen.get(), reset=lambda: chosen.set(1.0))


@program("context_variable_set_on_one_side", kind="surroundings")
def _():
    def f(x):
        if x.sum() > 0:
            chosen.set(3.0)
        return x * chosen.get()

    return Case(
        f, example=PAIR[1], others=[PAIR[0], PAIR[1]], state=lambda: chosen.get(), reset=lambda: chosen.set(1.0)
    )


@program("context_variable_keeps_a_tensor", kind="surroundings")
def _():
    def f(x):
        y = x * given.get()
        given.set(x.sum())
        return y

    return Case(f, example=PAIR[0], others=AGAIN, state=lambda: given.get(), reset=lambda: given.set(2.0))


@program("iterator_in_an_object", kind="surroundings")
def _():
    holder = Holder()
    holder.numbers = itertools.count(1)
    return Case(lambda x: x * next(holder.numbers), example=PAIR[0], others=AGAIN)


@program("iterator_in_a_module", kind="surroundings")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = iter(range(100))

        def forward(self, x):
            return x + next(self.steps)

    return Case(Model(), example=PAIR[0], others=AGAIN)


@program("random_numbers_of_a_module_of_its_own", kind="surroundings")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.stream = random.Random(0)

        def forward(self, x):
            return x * self.stream.random()

    return Case(Model(), example=PAIR[0], others=AGAIN)


@program("random_numbers_in_a_list", kind="surroundings")
def _():
    streams = [random.Random(0), numpy.random.default_rng(0)]
    return Case(lambda x: x * streams[0].random() + streams[1].random(), example=PAIR[0], others=AGAIN)


@program("generator_seeded_by_the_program", kind="surroundings")
def _():
    generators = [torch.Generator().manual_seed(0)]

    def f(x):
        generators[0].manual_seed(5)
        return x + torch.rand(3, generator=generators[0]) + torch.randn(3, generator=generators[0])

    return Case(f, example=PAIR[0], others=AGAIN, state=lambda: generators)


@program("python_stream_put_back", kind="surroundings")
def _():
    def f(x):
        before = random.getstate()
        first = random.random()
        random.setstate(before)
        return x * first + random.random()

    return Case(f, example=PAIR[0], others=AGAIN)


@program("clock_under_another_name", kind="surroundings")
def _():
    now = time.perf_counter
    started = now()

    def f(x):
        return x * 2, now() - started > 0.0, now() - now() <= 0.0

    return Case(f, example=PAIR[0], others=AGAIN)


@program("date_of_today", kind="surroundings")
def _():
    return Case(lambda x: x * time.localtime().tm_year, example=PAIR[0], others=AGAIN)


@program("working_folder_changed", kind="surroundings")
def _():
    home, change = os.getcwd(), os.chdir

    def f(x):
        change(os.sep)
        return x * 2

    return Case(f, example=PAIR[0], others=AGAIN, state=lambda: os.getcwd(), reset=lambda: os.chdir(home))


@program("text_in_memory_grows", kind="surroundings")
def _():
    text = io.StringIO()

    def f(x):
        text.write(f"{x.shape[0]};")
        return x * len(text.getvalue())

    return Case(f, example=PAIR[0], others=AGAIN, state=lambda: text.getvalue())


@program("printed_text_is_read_again", kind="surroundings")
def _():
    def f(x):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            print(x.sum().item())
        return x * len(text.getvalue())

    return Case(f, example=PAIR[0], others=AGAIN)


@program("text_kept_by_a_function_called_log", kind="surroundings")
def _():
    texts = []

    def log(text):
        texts.append(text)

    def f(x):
        log(f"{x.sum().item():.1f}")
        return x * len(texts[-1])

    return Case(f, example=PAIR[0], others=AGAIN, state=lambda: texts)


@program("object_behind_a_weak_reference", kind="surroundings")
def _():
    holder = Holder()
    holder.count = 1
    reference = weakref.ref(holder)

    def f(x):
        reference().count += 1
        return x * reference().count

    return Case(f, example=PAIR[0], others=AGAIN, state=lambda: holder.count)


@program("callbacks_for_the_end_of_a_block", kind="surroundings")
def _():
    log = []

    def f(x):
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, 1)
            if x.sum() > 0:
                stack.callback(log.append, 2)
            y = x * (1 + len(log))
        return y + len(log)

    return Case(f, example=PAIR[0], others=AGAIN, state=lambda: log)


@program("cached_method_counts_its_calls", kind="surroundings")
def _():
    class Tables:
        def __init__(self):
            self.calls = 0

        @functools.cache  # noqa: B019, the cache is the point
        def table(self, size):
            self.calls += 1
            return torch.arange(float(size))

    tables = Tables()
    return Case(lambda x: x + tables.table(x.shape[0]), example=PAIR[0], others=AGAIN, state=lambda: tables.calls)
