"""Arguments in every position: plain numbers, flags, defaults, `*args`, `**kwargs`, and calls that do not fit."""

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("number_argument", kind="arguments")
def _():
    def f(x, scale, shift=0):
        return x * scale + shift

    return Case(
        f,
        example=lambda: call(torch.ones(2), 2),
        others=[
            lambda: call(torch.ones(2), 3),
            lambda: call(torch.ones(2), 2.5, shift=1),
            lambda: call(torch.ones(2), shift=4, scale=1),
        ],
    )


@program("boolean_argument", kind="arguments")
def _():
    def f(x, flag):
        return x * 2 if flag else x * 3

    return Case(
        f,
        example=lambda: call(torch.ones(2), True),
        others=[
            lambda: call(torch.ones(2), False),
            lambda: call(torch.ones(2), 0),
            lambda: call(torch.ones(2), torch.tensor(False)),
        ],
    )


@program("keyword_order", kind="arguments")
def _():
    def f(*, a, b):
        return a - b

    return Case(
        f,
        example=lambda: call(a=torch.ones(2), b=torch.zeros(2)),
        others=[lambda: call(b=torch.ones(2), a=torch.zeros(2))],
    )


@program("positional_or_keyword", kind="arguments")
def _():
    def f(x, y, z=1.0):
        return x - y * z

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2) * 2),
        others=[
            lambda: call(y=torch.ones(2), x=torch.zeros(2)),
            lambda: call(torch.ones(2), torch.ones(2), torch.ones(2) * 4),
        ],
    )


@program("star_arguments", kind="arguments")
def _():
    def f(*tensors, reduce="sum"):
        stacked = torch.stack(tensors)
        return getattr(stacked, reduce)(0)

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[
            lambda: call(torch.ones(2), torch.ones(2), torch.ones(2)),
            lambda: call(torch.ones(2), torch.zeros(2), reduce="mean"),
        ],
    )


@program("keyword_dictionary", kind="arguments")
def _():
    def f(x, **options):
        for name, value in options.items():
            x = getattr(x, name)(value)
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2), mul=2),
        others=[
            lambda: call(torch.ones(2), mul=2, add=3),
            lambda: call(torch.ones(2), add=3, mul=2),
            lambda: call(torch.ones(2)),
        ],
    )


@program("keywords_passed_on", kind="arguments")
def _():
    def inner(x, gain=1.0, bias=0.0):
        return x * gain + bias

    def f(x, *args, **kwargs):
        return inner(x, *args, **kwargs)

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[
            lambda: call(torch.ones(2), 2.0),
            lambda: call(torch.ones(2), bias=3.0),
            lambda: call(torch.ones(2), other=1),
        ],
    )


@program("default_tensor", kind="arguments")
def _():
    default = torch.ones(2)

    def f(x, y=default):
        return x * y

    def change():
        default.mul_(5)
        return call(torch.ones(2))

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[change, lambda: call(torch.ones(2), torch.zeros(2))],
        state=lambda: default,
    )


@program("default_none_replaced", kind="arguments")
def _():
    def f(x, dim=None):
        return x.sum() if dim is None else x.sum(dim)

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3)),
        others=[
            lambda: call(torch.ones(2, 3), 0),
            lambda: call(torch.ones(2, 3), dim=(0, 1)),
            lambda: call(torch.ones(2, 3), -1),
        ],
    )


@program("dimension_argument", kind="arguments")
def _():
    def f(x, dim, keepdim=False):
        return x.softmax(dim).amax(dim, keepdim=keepdim)

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3), 0),
        others=[
            lambda: call(torch.randn(2, 3), 1),
            lambda: call(torch.randn(2, 3), 0, keepdim=True),
            lambda: call(torch.randn(2, 3), 5),
        ],
    )


@program("shape_argument", kind="arguments")
def _():
    def f(x, shape):
        return x.reshape(shape)

    return Case(
        f,
        example=lambda: call(torch.arange(6), (2, 3)),
        others=[
            lambda: call(torch.arange(6), (3, 2)),
            lambda: call(torch.arange(6), [-1]),
            lambda: call(torch.arange(6), torch.Size([6, 1])),
        ],
    )


@program("slice_argument", kind="arguments")
def _():
    def f(x, where):
        return x[where]

    return Case(
        f,
        example=lambda: call(torch.arange(6), slice(0, 2)),
        others=[
            lambda: call(torch.arange(6), slice(1, None, 2)),
            lambda: call(torch.arange(6), 3),
            lambda: call(torch.arange(6), [0, 5]),
            lambda: call(torch.arange(6), None),
        ],
    )


@program("tensor_instead_of_number", kind="arguments")
def _():
    def f(x, scale):
        return x * scale

    return Case(
        f,
        example=lambda: call(torch.ones(2), 2.0),
        others=[lambda: call(torch.ones(2), torch.tensor([3.0, 4.0])), lambda: call(3.0, torch.ones(2))],
    )


@program("number_instead_of_tensor", kind="arguments")
def _():
    def f(x, scale):
        return x * scale + scale

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.tensor(2.0)),
        others=[lambda: call(torch.ones(2), 5.0), lambda: call(torch.ones(2), 7)],
    )


@program("large_and_special_numbers", kind="arguments")
def _():
    def f(x, limit):
        return x.clamp(max=limit)

    return Case(
        f,
        example=lambda: call(torch.tensor([1.0, 1e9]), 10.0),
        others=[
            lambda: call(torch.tensor([1.0, 1e9]), float("inf")),
            lambda: call(torch.tensor([1.0, 1e9]), float("nan")),
            lambda: call(torch.tensor([1.0, 1e9]), -0.0),
        ],
    )


@program("number_compared", kind="arguments")
def _():
    def f(x, step):
        if step < 10:
            return x * step / 10
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2), 3),
        others=[lambda: call(torch.ones(2), 5), lambda: call(torch.ones(2), 50)],
    )


@program("missing_argument", kind="arguments")
def _():
    def f(x, y):
        return x + y

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2)), lambda: call(torch.ones(2), torch.ones(2) * 3)],
        same_text=False,
    )


@program("surplus_argument", kind="arguments")
def _():
    def f(x):
        return x + 1

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2), torch.ones(2)), lambda: call(torch.ones(3), y=1)],
        same_text=False,
    )


@program("misspelt_keyword", kind="arguments")
def _():
    def f(x, mask=None):
        return x if mask is None else x * mask

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2), maks=torch.zeros(2)), lambda: call(torch.ones(2), mask=torch.zeros(2))],
        same_text=False,
    )


@program("other_structure", kind="arguments")
def _():
    def f(pair):
        return pair[0] - pair[1]

    return Case(
        f,
        example=lambda: call((torch.ones(2), torch.zeros(2))),
        others=[
            lambda: call([torch.ones(2) * 3, torch.zeros(2)]),
            lambda: call(torch.tensor([1.0, 5.0])),
            lambda: call({0: torch.ones(2), 1: torch.ones(2)}),
            lambda: call((torch.ones(2) * 7, torch.zeros(2), torch.ones(2))),
        ],
    )


@program("unused_argument", kind="arguments")
def _():
    def f(x, unused=None, other=3):
        return x * 2

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3), unused=torch.ones(2)), lambda: call(torch.ones(2), "text", other=None)],
    )


@program("extra_entries_in_dict", kind="arguments")
def _():
    def f(batch):
        return batch["x"] * 2, len(batch)

    return Case(
        f,
        example=lambda: call({"x": torch.ones(2)}),
        others=[lambda: call({"x": torch.ones(2), "id": "a7"}), lambda: call({"id": 4, "x": torch.ones(3)})],
    )


@program("output_flags_of_config", kind="arguments")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.output_hidden = False

        def forward(self, x, output_hidden=None):
            output_hidden = output_hidden if output_hidden is not None else self.output_hidden
            y = self.layer(x)
            return (y, x) if output_hidden else (y,)

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[
            lambda: call(torch.ones(1, 2), output_hidden=True),
            lambda: call(torch.ones(1, 2), output_hidden=False),
        ],
    )


@program("list_of_layers_to_return", kind="arguments")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

        def forward(self, x, wanted=(0,)):
            found = []
            for index, layer in enumerate(self.layers):
                x = layer(x)
                if index in wanted:
                    found.append(x)
            return found

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[
            lambda: call(torch.ones(1, 2), wanted=[1, 2]),
            lambda: call(torch.ones(1, 2), ()),
            lambda: call(torch.ones(1, 2), {0}),
        ],
    )


@program("integer_overflow_of_size", kind="arguments")
def _():
    def f(x, shift):
        return (x + (1 << shift)) % 1000, x.new_tensor(1 << shift)

    return Case(
        f,
        example=lambda: call(torch.arange(3), 4),
        others=[lambda: call(torch.arange(3), 40), lambda: call(torch.arange(3), 0)],
    )


@program("optional_array_asked_for_its_size", kind="arguments")
def _():
    def f(x, mask=None):
        if mask is None:
            return x
        return x * mask.shape[0]

    others = [lambda: call(torch.ones(3)), lambda: call(torch.ones(3), torch.ones(4)), lambda: call(torch.ones(3), 2)]
    return Case(f, example=lambda: call(torch.ones(3), torch.ones(2, 3)), others=others)


@program("array_that_may_not_be_none", kind="arguments")
def _():
    def f(x, y):
        assert y is not None, "an array is needed"
        return x * y.shape[0]

    others = [lambda: call(torch.ones(3), None), lambda: call(torch.ones(3), torch.ones(4))]
    return Case(f, example=lambda: call(torch.ones(3), torch.ones(2)), others=others)
