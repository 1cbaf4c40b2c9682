"""Values that end up where one does not look: in handlers of loggers, recorded warnings, functions, errors, caches."""

import functools
import logging
import warnings

import torch

from tests.footguns.ledger import Case, call, program


class Keeper(logging.Handler):
    def __init__(self):
        super().__init__()
        self.count, self.texts = 0, []

    def emit(self, record):
        self.count += 1
        self.texts.append(record.getMessage())


def _logger():
    logger, keeper = logging.Logger("ledger"), Keeper()
    logger.addHandler(keeper)
    return logger, keeper


THREE, TWO, ONE = (lambda: call(torch.ones(3))), (lambda: call(-torch.ones(2))), (lambda: call(torch.full((1,), 5.0)))


@program("handler_keeps_what_is_logged", kind="kept_elsewhere")
def _():
    logger, keeper = _logger()

    def log(x):
        logger.info("%d values, sum %.1f", len(x), x.sum())
        return x * 2

    return Case(log, example=THREE, others=[TWO, ONE], state=lambda: (keeper.count, keeper.texts))


@program("handler_of_a_logger_in_an_object", kind="kept_elsewhere")
def _():
    logger, keeper = _logger()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.log = logger

        def forward(self, x):
            self.log.warning("shape %s", tuple(x.shape))
            return x + 1

    model = Model()
    return Case(lambda x: model(x), example=THREE, others=[TWO], state=lambda: (keeper.count, keeper.texts))


@program("filter_counts_what_is_logged", kind="kept_elsewhere")
def _():
    logger, keeper = _logger()
    seen = []
    logger.addFilter(lambda record: seen.append(record.levelno) or len(seen) % 2)

    def log(x):
        logger.info("once")
        return x * 2

    return Case(log, example=THREE, others=[TWO, ONE], state=lambda: (keeper.count, seen))


@program("warning_recorded", kind="kept_elsewhere")
def _():
    def warn(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn(f"{len(x)} values", stacklevel=2)
        return x, str(caught[0].message)

    return Case(warn, example=THREE, others=[TWO, ONE])


@program("text_made_and_printed_in_one_line", kind="kept_elsewhere")
def _():
    def show(x):
        text = f"{x.sum().item()}"; print(text)  # fmt: skip  # noqa: E702
        return text, x

    return Case(show, example=THREE, others=[TWO, ONE])


@program("shape_put_together_by_the_program", kind="kept_elsewhere")
def _():
    return Case(lambda x: (torch.Size((x.shape[0], 2)), range(x.shape[0])), example=THREE, others=[TWO, ONE])


@program("frozen_set_of_sizes", kind="kept_elsewhere")
def _():
    return Case(lambda x: (frozenset([x.shape[0]]), x * 2), example=THREE, others=[TWO])


@program("function_of_the_run_is_kept", kind="kept_elsewhere")
def _():
    kept = {}

    def keep(x):
        kept["double"] = lambda: x * 2
        return x + 1

    return Case(keep, example=THREE, others=[TWO], state=lambda: kept["double"]() if kept else None)


@program("method_of_a_tensor_is_kept", kind="kept_elsewhere")
def _():
    kept = {}

    def keep(x):
        kept["sum"] = x.sum
        return x * 2

    return Case(keep, example=THREE, others=[TWO], state=lambda: kept["sum"]() if kept else None)


class Failure(Exception):
    def __init__(self, text, tensor):
        super().__init__(text)
        self.tensor = tensor


@program("error_that_carries_a_tensor", kind="kept_elsewhere")
def _():
    def check(x):
        if x.sum() < 0:
            raise Failure("negative", x * 2)
        return x

    return Case(check, example=THREE, others=[TWO, ONE])


@program("cache_filled_by_a_refused_capture", kind="kept_elsewhere")
def _():
    @functools.lru_cache(None)
    def noise(count):
        return torch.rand(count)

    return Case(
        lambda x: x + noise(3),
        example=THREE,
        others=[lambda: call(torch.zeros(3))],
        state=lambda: noise.cache_info().currsize,
    )


BIG = int("123456789")
NAME = "".join(["a", "bc"])


@program("equal_numbers_that_are_two_objects", kind="kept_elsewhere")
def _():
    return Case(
        lambda x, number: x if number is BIG else -x,
        example=lambda: call(torch.ones(3), BIG),
        others=[lambda: call(torch.ones(3), int("123456789"))],
    )


@program("equal_texts_that_are_two_objects", kind="kept_elsewhere")
def _():
    return Case(
        lambda x, name: x if name is NAME else -x,
        example=lambda: call(torch.ones(3), NAME),
        others=[lambda: call(torch.ones(3), "".join(["ab", "c"]))],
    )


@program("two_equal_numbers_compared", kind="kept_elsewhere")
def _():
    return Case(
        lambda x, one, other: x if one is other else -x,
        example=lambda: call(torch.ones(3), BIG, BIG),
        others=[lambda: call(torch.ones(3), BIG, int("123456789"))],
    )


PAIR = (1, 2)


@program("equal_tuples_that_are_two_objects", kind="kept_elsewhere")
def _():
    return Case(
        lambda x, pair: x if pair is PAIR else -x,
        example=lambda: call(torch.ones(3), PAIR),
        others=[lambda: call(torch.ones(3), tuple([1, 2]))],
    )


@program("autocast_given_up_inside", kind="kept_elsewhere")
def _():
    layer = torch.nn.Linear(3, 2)

    def run(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(x)
            y = y.float().mean() if y.numel() else y.sum()
        return y, torch.is_autocast_enabled("cpu")

    return Case(run, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(0, 3))])


@program("argument_named_self", kind="kept_elsewhere")
def _():
    return Case(
        lambda x, /, **named: x * named["self"],
        example=lambda: call(torch.ones(3), self=2.0),
        others=[lambda: call(torch.ones(3), self=3.0)],
    )


@program("list_of_a_cache_grows", kind="kept_elsewhere")
def _():
    @functools.lru_cache(None)
    def scales():
        return [1.0, 2.0]

    def grow(x):
        scales().append(3.0)
        return x * len(scales())

    return Case(grow, example=THREE, others=[TWO, ONE])
