"""Traced numbers and shapes where someone looks closely: JSON, fractions, types, signs of zero; switches of torch."""

import fractions
import json
import math

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


def _sizes():
    return {
        "example": lambda: call(torch.ones(2)),
        "others": [lambda: call(torch.ones(3)), lambda: call(torch.ones(4))],
    }


@program("sizes_written_as_json", kind="impostors")
def _():
    return Case(lambda x: json.dumps({"shape": list(x.shape), "count": x.numel()}), **_sizes())


@program("fraction_of_size", kind="impostors")
def _():
    return Case(lambda x: x * float(fractions.Fraction(x.shape[0], 8)), **_sizes())


@program("type_of_a_shape", kind="impostors")
def _():
    return Case(lambda x: (type(x.shape).__name__, type(x.shape) is torch.Size, x * x.shape[0]), **_sizes())


@program("type_of_an_item", kind="impostors")
def _():
    return Case(
        lambda x: type(x.item()).__name__,
        example=lambda: call(torch.tensor(2.0)),
        others=[lambda: call(torch.tensor(2)), lambda: call(torch.tensor(True))],
    )


@program("class_made_by_type", kind="impostors")
def _():
    class Registry(type):
        made = []

        def __new__(cls, name, bases, names):
            cls.made.append(name)
            return type.__new__(cls, name, bases, names)

    def f(x):
        kind = Registry(f"Kind{len(Registry.made)}", (), {"factor": len(Registry.made)})
        return x * kind.factor

    return Case(f, **_sizes(), state=lambda: list(Registry.made))


@program("broadcast_of_shapes", kind="impostors")
def _():
    return Case(
        lambda x, y: torch.zeros(torch.broadcast_shapes(x.shape, y.shape)),
        example=lambda: call(torch.ones(2, 1), torch.ones(3)),
        others=[lambda: call(torch.ones(2, 1), torch.ones(5)), lambda: call(torch.ones(1, 1), torch.ones(1))],
    )


@program("sign_of_a_zero", kind="impostors")
def _():
    return Case(
        lambda x, sign: x * math.copysign(1, sign),
        example=lambda: call(torch.ones(2), 0.0),
        others=[lambda: call(torch.ones(2), -0.0), lambda: call(torch.ones(2), 3.0)],
    )


@program("positional_only_and_the_rest", kind="impostors")
def _():
    def f(x, /, factor=2, *more, **rest):
        return x * factor + len(more) + sum(rest.values())

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2), 3, x=9), lambda: call(x=torch.ones(2)), lambda: call(torch.ones(2), 3, 4)],
        same_text=False,
    )


@program("result_type_of_two", kind="impostors")
def _():
    return Case(
        lambda x, y: torch.zeros(2, dtype=torch.result_type(x, y)),
        example=lambda: call(torch.arange(2), 2),
        others=[lambda: call(torch.ones(2).double(), 2), lambda: call(torch.ones(2), 2.5)],
    )


@program("default_dtype_switched_inside", kind="impostors")
def _():
    def f(x):
        torch.set_default_dtype(torch.float64)
        made = torch.zeros(x.shape[0])
        torch.set_default_dtype(torch.float32)
        return made

    return Case(f, **_sizes())


@program("storage_set_to_another", kind="impostors")
def _():
    def f(x, y):
        x.set_(y)
        return x + 1

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.arange(3.0)),
        others=[lambda: call(torch.ones(4), torch.arange(5.0))],
    )


@program("packed_sequence_through_lstm", kind="impostors")
def _():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(2, 3, batch_first=True)

        def forward(self, x, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            result, (hidden, _) = self.lstm(packed)
            return nn.utils.rnn.pad_packed_sequence(result, batch_first=True)[0], hidden

    return Case(
        Packed(),
        example=lambda: call(torch.randn(2, 4, 2), torch.tensor([4, 2])),
        others=[lambda: call(torch.randn(3, 5, 2), torch.tensor([1, 5, 2]))],
        gradients=True,
    )
