"""Flags and dicts among the arguments: both values of a flag, and dicts with other keys, in one capture.

Beside flags that are asked for their truth are those that torch takes as plain ones, those that are numbers or indices
as well, and those whose other value raises, writes or changes state. Of dicts, the items that are read count.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from tests.footguns.ledger import Case, MakeInputs, call, program


def case(name: str, *calls: MakeInputs, **more: Any) -> Any:
    """Registers a function; the first call is the example."""

    def register(function: Any) -> Any:
        program(name, kind="flags")(lambda: Case(function, example=calls[0], others=list(calls[1:]), **more))
        return function

    return register


def x() -> torch.Tensor:
    return torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


BOTH: list[MakeInputs] = [lambda: call(x(), True), lambda: call(x() * 2, False), lambda: call(x()[:1], True)]
BOTH_OR_NOT: list[MakeInputs] = [
    *BOTH,
    lambda: call(x(), 1),
    lambda: call(x(), None),
    lambda: call(x(), torch.tensor(True)),
]


@case("flag_for_torch_and_for_python", *BOTH)
def _for_both(x, keep):
    total = x.sum(1, keepdim=keep)
    if keep:
        return x / total
    return x.max(), total


@case("flag_whose_other_value_writes", *BOTH_OR_NOT)
def _writes(x, inplace):
    y = x.view(-1)
    if inplace:
        y.mul_(2)
    return torch.nn.functional.relu(x, inplace=inplace), y


@case("flag_that_is_a_number_too", *BOTH_OR_NOT)
def _number(x, flag):
    return x * flag + x[:, int(flag)].sum(0, keepdim=flag)


@case("flag_whose_other_value_raises", lambda: call(x(), False), lambda: call(x(), True), lambda: call(x(), False))
def _raises(x, strict):
    if strict:
        raise ValueError(f"no {strict} here")
    return x.cumsum(1)


@case(
    "two_flags_that_are_compared",
    lambda: call(x(), True, False),
    lambda: call(x(), False, False),
    lambda: call(x(), True, True),
    lambda: call(x(), False, True),
)
def _compared(x, first, second):
    y = x.sort(1, descending=first, stable=second).values
    if first == second:
        y = y + 1
    if first and not second:
        y = y * 3
    return y.argsort(1, descending=second)


@case(
    "flag_that_chooses_the_structure",
    lambda: call(x(), False),
    lambda: call(x(), return_dict=True),
    lambda: call(x()[:1], return_dict=False),
)
def _structure(x, return_dict=False):
    y = x.softmax(-1)
    return {"y": y, "n": x.shape[0]} if return_dict else (y,)


@program("flag_that_changes_state", kind="flags")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))
            self.count = 0

        def forward(self, x, update, keep=False):
            y = x.mean(0, keepdim=keep)
            if update:
                self.seen += x.sum(0)
                self.count += 1
            return y + self.seen if self.training else y * self.count

    return Case(
        make=Model,
        example=lambda: call(x(), False),
        others=[lambda: call(x(), True), lambda: call(x(), True, True), lambda: call(x(), False, keep=True)],
        state=lambda model: (model.count, model.seen),
        between={"other 3": lambda model: model.eval()},
    )


@program("flags_of_an_object", kind="flags")
def _():
    def f(x, config):
        if config.scale:
            x = x * config.rate
        return x.std(0, unbiased=config.unbiased)

    def given(scale: Any, unbiased: Any, rate: Any = 2.0) -> MakeInputs:
        return lambda: call(x(), SimpleNamespace(scale=scale, unbiased=unbiased, rate=rate))

    return Case(f, example=given(True, True), others=[given(False, True), given(True, False, 3.0), given(0, True)])


def _dicts(*more: MakeInputs) -> list[MakeInputs]:
    return [
        lambda: call({"x": x(), "train": True}),
        lambda: call({"train": False, "x": x() * 2}),
        lambda: call({"train": True, "id": "a", "x": x()[:1]}),
        lambda: call(OrderedDict(train=False, x=x())),
        lambda: call({"x": x()}),
        *more,
    ]


@case("flag_in_a_dict", *_dicts(lambda: call({"x": x(), "train": 1})))
def _in_a_dict(batch):
    y = batch["x"] * 2
    return y.clamp(min=0) if batch["train"] else y.sum(0)


@case("dict_read_and_given_back", *_dicts())
def _given_back(batch):
    return batch["x"] + 1, batch


@case("dict_read_and_written_to", *_dicts())
def _written(batch):
    batch["y"] = batch["x"] + 1
    return batch["y"] * 2


@case("dict_read_in_a_comprehension", *_dicts(lambda: call({"x": x(), "train": True, "y": x()})))
def _comprehension(batch):
    return [batch[key] * 2 for key in ("x", "y") if key in batch]


@case(
    "dict_whose_items_make_themselves",
    lambda: call(x(), {"scale": 2.0}),
    lambda: call(x(), defaultdict(float)),
    lambda: call(x(), {}),
    lambda: call(x(), {"bias": 1.0, "scale": 3.0}),
    lambda: call(x(), None),
)
def _makes(x, options):
    y = x * options["scale"]
    return y + options.get("bias", 0.5)


@case(
    "one_dict_under_two_names",
    lambda: call({"x": x()}, {"x": x() + 1}),
    lambda: call(*[{"x": x()}] * 2),
    lambda: call({"x": x(), "z": 1}, {"x": x()}),
)
def _two_names(first, second):
    first["x"].add_(1)
    return second["x"] * 2


@case(
    "keywords_that_are_read",
    lambda: call(x()),
    lambda: call(x(), scale=3.0),
    lambda: call(x(), other=x()),
    lambda: call(x(), shift=2.0, scale=1.0),
    lambda: call(x(), shift=x()),
)
def _keywords(x, **options):
    y = x * options.get("scale", 2.0)
    if "shift" in options:
        y = y - options["shift"]
    return y


@case("flag_that_decides_whether_a_function_writes", *BOTH)
def _writes_or_not(x, inplace):
    return torch.nn.functional.relu(x, inplace=inplace), x


@case("flag_given_by_position_that_decides_whether_a_function_writes", *BOTH)
def _writes_by_position(x, inplace):
    y = torch.nn.functional.leaky_relu(x, 0.1, inplace)
    return torch.nn.functional.elu(y + 1, 1.0, inplace), x, y


@case("flag_that_decides_the_rank_of_what_a_python_function_gives", *BOTH)
def _rank(x, keep):
    y = torch.norm(x, dim=1, keepdim=keep)
    return y.shape, y.ndim, [row * 2 for row in y], y.reshape(y.shape[0], -1)


@case("flag_that_decides_whether_several_are_given", *BOTH)
def _several(x, flag):
    return torch.unique(x, return_inverse=flag), torch.nn.functional.max_pool1d(x[None], 2, return_indices=flag)


@program("flag_and_mode_that_decide_whether_a_function_writes", kind="flags")
def _():
    class Model(nn.Module):
        def forward(self, x, quiet):
            y = torch.nn.functional.dropout(x, 0.5, self.training and not quiet)
            return torch.nn.functional.relu(y, inplace=not self.training), y, x

    return Case(
        make=Model,
        example=lambda: call(x(), True),
        others=[lambda: call(x(), True), lambda: call(x(), False), lambda: call(x(), False)],
        between={"other 1": lambda model: model.eval(), "other 3": lambda model: model.train()},
    )


PAIRS: list[MakeInputs] = [
    lambda first=first, second=second: call(x(), first, second)  # type: ignore[misc]
    for first in (True, False)
    for second in (True, False)
]


@case("flag_asked_where_another_one_says_so", *PAIRS)
def _asked_in_a_side(x, first, second):
    return x * (first and not second), x + (first or not second)


@case("flag_asked_by_a_function_in_a_side", *PAIRS)
def _asked_by_a_function(x, first, second):
    def scale(value, flag):
        return value * 2 if flag else value - 1

    y = scale(x, second) if first else x
    return y + second, [scale(row, not first) for row in y]
