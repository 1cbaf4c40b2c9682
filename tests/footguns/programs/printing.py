"""Printing, logging and formatting of values: text that is only shown, and text that decides or is returned."""

import logging
import warnings

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program

logger = logging.getLogger("footguns")


@program("print_tensor", kind="printing")
def _():
    def f(x):
        y = x * 2
        print("y is", y)
        return y + 1

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3) * 4)])


@program("print_size_and_item", kind="printing")
def _():
    def f(x):
        print(f"batch of {x.shape[0]}, mean {x.mean().item():.3f}")
        return x - x.mean()

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.arange(5.0))])


@program("logging_of_value", kind="printing")
def _():
    def f(x):
        logger.debug("loss %s at %d", x.sum(), x.shape[0])
        logger.info("shape %s", tuple(x.shape))
        return x.exp()

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(4))])


@program("warning_on_value", kind="printing")
def _():
    def f(x):
        if x.abs().max() > 10:
            warnings.warn("large input", stacklevel=2)
            x = x.clamp(-10, 10)
        return x

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2) * 50)])


@program("formatted_key", kind="printing")
def _():
    tables = {"table_2": 2.0, "table_3": 30.0}

    def f(x):
        return x * tables.get(f"table_{x.shape[0]}", 1.0)

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(4))]
    )


@program("formatted_attribute", kind="printing")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            for index in range(3):
                setattr(self, f"layer{index}", nn.Linear(2, 2))

        def forward(self, x, index):
            return getattr(self, f"layer{index}")(x)

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2), 0),
        others=[lambda: call(torch.ones(1, 2), 2), lambda: call(torch.ones(1, 2), 5)],
    )


@program("text_of_value_decides", kind="printing")
def _():
    def f(x):
        if str(x.item()).startswith("-"):
            return -x
        return x * 2

    return Case(f, example=lambda: call(torch.tensor(1.5)), others=[lambda: call(torch.tensor(-1.5))])


@program("repr_of_tensor_decides", kind="printing")
def _():
    def f(x):
        if "nan" in repr(x):
            return torch.zeros_like(x)
        return x + 1

    return Case(
        f, example=lambda: call(torch.tensor([1.0, 2.0])), others=[lambda: call(torch.tensor([1.0, float("nan")]))]
    )


@program("percent_format_result", kind="printing")
def _():
    def f(x):
        return "%d rows, %.1f in all" % (x.shape[0], x.sum())  # noqa: UP031

    return Case(f, example=lambda: call(torch.ones(2, 2)), others=[lambda: call(torch.ones(3, 2) * 2)])


@program("format_method_result", kind="printing")
def _():
    def f(x, name):
        return f"{name}:{x.shape[-1]:>4}:{x.dtype!r}", x * 2

    return Case(
        f,
        example=lambda: call(torch.ones(2), "a"),
        others=[
            lambda: call(torch.ones(3), "a"),
            lambda: call(torch.ones(2), "b"),
            lambda: call(torch.ones(2, dtype=torch.int8), "a"),
        ],
    )


@program("text_log_kept", kind="printing")
def _():
    class Logged(nn.Module):
        def __init__(self):
            super().__init__()
            self.lines = []

        def forward(self, x):
            self.lines.append(f"mean={x.mean():.2f} n={len(x)}")
            return x * 2

    return Case(
        Logged(), example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3) * 4)], state=lambda m: m.lines
    )


@program("metrics_dictionary", kind="printing")
def _():
    metrics = {}

    def f(x):
        metrics["mean"] = x.mean().item()
        metrics[f"size/{x.shape[0]}"] = metrics.get(f"size/{x.shape[0]}", 0) + 1
        return x - metrics["mean"]

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.arange(3.0))], state=lambda: metrics)


@program("verbose_flag", kind="printing")
def _():
    def f(x, verbose=False):
        y = x.sin()
        if verbose:
            print("sin:", y)
            y = y + 0
        return y

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.zeros(3), verbose=True)])


@program("debug_level_decides", kind="printing")
def _():
    chatty = logging.getLogger("footguns.own")

    def f(x):
        if chatty.isEnabledFor(logging.INFO):
            return x, x.mean()
        return x, None

    def quieter():
        chatty.setLevel(logging.ERROR)
        return call(torch.ones(2))

    reset = lambda: chatty.setLevel(logging.INFO)
    return Case(f, example=lambda: call(torch.ones(2)), others=[quieter], reset=reset)


@program("sorted_text_of_numbers", kind="printing")
def _():
    def f(x):
        words = sorted(map(str, x.tolist()))
        return torch.tensor([float(word) for word in words])

    return Case(
        f,
        example=lambda: call(torch.tensor([1, 2])),
        others=[lambda: call(torch.tensor([9, 10])), lambda: call(torch.tensor([2, 1]))],
    )


@program("progress_of_a_loop", kind="printing")
def _():
    def f(x, steps=2):
        for step in range(steps):
            x = x * 1.5
            if step % 2 == 0:
                print(f"step {step}: {float(x.sum()):.3f}")
        return x

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2), 5), lambda: call(torch.zeros(3))]
    )
