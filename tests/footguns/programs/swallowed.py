"""What a program catches, drops or hands to others during a capture: refusals, errors, threads, callbacks."""

import collections
import contextlib
import datetime
import decimal
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy
import torch

from tests.footguns.ledger import Case, call, program

KIND = "swallowed"


def ones(*sizes):
    return torch.arange(1.0, 1 + math.prod(sizes)).reshape(sizes)


@program("greedy_decoder_counts_its_tokens", kind=KIND)
def _():
    def f(token):
        tokens = []
        while len(tokens) < 6:
            token = (token * 5 + 3) % 11
            tokens.append(token)
            if token.item() == 0:
                break
        return torch.stack(tokens), len(tokens)

    others = [lambda: call(torch.tensor(9)), lambda: call(torch.tensor(0)), lambda: call(torch.tensor(1))]
    return Case(f, example=lambda: call(torch.tensor(3)), others=others)


@program("list_fills_up_to_a_number", kind=KIND)
def _():
    def f(x, number):
        found = []
        while len(found) < number and x.item() != 4:
            x = (x * 5 + 3) % 11
            found.append(x)
        return found

    others = [lambda: call(torch.tensor(9), 3), lambda: call(torch.tensor(0), 7), lambda: call(torch.tensor(1), 0)]
    return Case(f, example=lambda: call(torch.tensor(3), 5), others=others)


@program("unused_numbers_that_raise", kind=KIND)
def _():
    def f(x, n):
        math.sqrt(n)
        1 << n
        return x

    return Case(f, example=lambda: call(ones(3), 2), others=[lambda: call(ones(3), -1), lambda: call(ones(3), 0)])


@program("unused_size_of_data_is_negative", kind=KIND)
def _():
    def f(x, n):
        torch.zeros(n.item())
        return x

    example = lambda: call(ones(3), torch.tensor(2))  # noqa: E731
    return Case(f, example=example, others=[lambda: call(ones(3), torch.tensor(-1))])


@program("unused_division_in_a_branch", kind=KIND)
def _():
    def f(x, n):
        if x.sum().item() > 0:
            1 / n
        return x

    others = [lambda: call(ones(3), 0.0), lambda: call(-ones(3), 0.0)]
    return Case(f, example=lambda: call(ones(3), 5.0), others=others)


TAKING_PLAIN_NUMBERS = {
    "decimal": lambda n: float(decimal.Decimal(n)),
    "timedelta": lambda n: datetime.timedelta(days=n).total_seconds(),
    "deque": lambda n: len(collections.deque(range(100), maxlen=n)),
    "ldexp": lambda n: math.ldexp(1.5, n),
    "width_of_text": lambda n: len("%*d" % (n, 3)),  # noqa: UP031
    "modulo": lambda n: pow(3, n, 7),
}


def _caught(function):
    def f(x, n):
        try:
            factor = function(n) + function(x.shape[0])
        except Exception:
            factor = -1.0
        return x * factor

    return Case(f, example=lambda: call(ones(3), 3), others=[lambda: call(ones(3), 4), lambda: call(ones(5), 3)])


for _name, _function in TAKING_PLAIN_NUMBERS.items():
    program(f"{_name}_takes_plain_numbers_alone", kind=KIND)(lambda function=_function: _caught(function))


def _by_except(act, x):
    try:
        return act(x)
    except Exception:
        return x.sum() * 0 - 7


def _by_bare_except(act, x):
    try:
        return act(x)
    except:  # noqa: E722
        return x.sum() * 0 - 7


def _by_finally(act, x):
    found = x.sum() * 0 - 7
    try:
        found = act(x)
    finally:
        return found  # noqa: B012


def _by_suppress(act, x):
    found = x.sum() * 0 - 7
    with contextlib.suppress(Exception):
        found = act(x)
    return found


def _again_and_again(act, x):
    while True:
        try:
            return act(x)
        except Exception:
            continue


def _refused(x):
    return x.sum() + len(os.urandom(3))


def _branches(x):
    return x.sum() * 2 if x.sum() > 0 else x.sum() - 1


def _handled(handler, act):
    return Case(
        lambda x: handler(act, x),
        example=lambda: call(ones(3)),
        others=[lambda: call(-ones(3)), lambda: call(ones(4))],
    )


for _handler in (_by_except, _by_bare_except, _by_finally, _by_suppress, _again_and_again):
    for _act in (_refused, _branches):
        _title = f"{_handler.__name__}_of_{_act.__name__}".replace("_of__", "_of_").strip("_")
        program(f"swallowed_{_title}", kind=KIND)(lambda handler=_handler, act=_act: _handled(handler, act))


@program("thread_asks_for_a_number", kind=KIND)
def _():
    def f(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(x.sum().item()))
        thread.start()
        thread.join()
        return x * found[0]

    return Case(f, example=lambda: call(ones(3)), others=[lambda: call(ones(3) * 2)])


@program("thread_writes_in_place", kind=KIND)
def _():
    def f(x):
        made = x.clone()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(made.mul_, 3).result()
        return made

    return Case(f, example=lambda: call(ones(3)), others=[lambda: call(ones(3) * 2)])


@program("pool_from_outside_computes", kind=KIND)
def _():
    pool = ThreadPoolExecutor(1)

    def f(x):
        return x * pool.submit(lambda: x.sum().item()).result()

    return Case(f, example=lambda: call(ones(3)), others=[lambda: call(ones(3) * 2)])


@program("sizes_repeated", kind=KIND)
def _():
    def f(x):
        return x.shape * 2, 2 * x.shape, x.shape[:1] + (1,)

    return Case(f, example=lambda: call(ones(2, 3)), others=[lambda: call(ones(4, 3))])


@program("callbacks_of_numpy_change_a_count", kind=KIND)
def _():
    count = {"calls": 0}

    def f(x):
        def twice(value):
            count["calls"] += 1
            return value * 2

        return torch.from_numpy(numpy.vectorize(twice, otypes=[float])(x.numpy()))

    others = [lambda: call(ones(3) * 2), lambda: call(ones(4))]
    return Case(f, example=lambda: call(ones(3)), others=others, state=lambda: count)


@program("default_of_a_function_set_anew", kind=KIND)
def _():
    def scale(x, factor=2.0, *, shift=1.0):
        return x * factor + shift

    def change(_):
        scale.__defaults__ = (5.0,)

    def change_more(_):
        scale.__kwdefaults__ = {"shift": 3.0}

    return Case(
        lambda x: scale(x),
        example=lambda: call(ones(3)),
        others=[lambda: call(ones(3) * 2), lambda: call(ones(4))],
        between={"other 1": change, "other 2": change_more},
    )


class Keeping:
    """A manager that keeps all errors."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


@contextlib.contextmanager
def keeping():
    try:
        yield
    except RuntimeError:
        pass


def keeper():
    return Keeping()


@program("manager_of_the_user_keeps_an_error", kind=KIND)
def _():
    def f(x):
        with Keeping():
            x.add_(0.5)
        return x * 2

    others = [lambda: call(ones(2, 3).long()), lambda: call(ones(3))]
    return Case(f, example=lambda: call(ones(2, 3)), others=others)


@program("manager_in_an_attribute_keeps_an_error", kind=KIND)
def _():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.keeping = Keeping()

        def forward(self, x):
            with self.keeping:
                x.add_(0.5)
            with keeper():
                x = x[1]
            return x * 2

    others = [lambda: call(ones(2, 3).long()), lambda: call(ones(1, 3)), lambda: call(ones(3))]
    return Case(make=Model, example=lambda: call(ones(2, 3)), others=others)


@program("generator_as_a_manager_keeps_an_error", kind=KIND)
def _():
    def f(x):
        with keeping():
            x.add_(0.5)
        return x * 2

    others = [lambda: call(ones(2, 3).long()), lambda: call(ones(3))]
    return Case(f, example=lambda: call(ones(2, 3)), others=others)


@program("finally_returns_after_an_error", kind=KIND)
def _():
    def f(x):
        try:
            x.add_(0.5)
        finally:
            return x * 2

    others = [lambda: call(ones(2, 3).long()), lambda: call(ones(3))]
    return Case(f, example=lambda: call(ones(2, 3)), others=others)


@program("finally_goes_on_after_an_error", kind=KIND)
def _():
    def f(x):
        for _ in range(2):
            try:
                x.add_(0.5)
            finally:
                continue
        return x * 2

    others = [lambda: call(ones(2, 3).long()), lambda: call(ones(3))]
    return Case(f, example=lambda: call(ones(2, 3)), others=others)


@program("example_fails_where_a_manager_keeps_the_error", kind=KIND)
def _():
    def f(x):
        with Keeping():
            x.add_(0.5)
        return x * 2

    others = [lambda: call(ones(2, 3)), lambda: call(ones(3).long())]
    return Case(f, example=lambda: call(ones(2, 3).long()), others=others)
