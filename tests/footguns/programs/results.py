"""Results of every form: data classes, named tuples, scalars, None, arguments handed back, nests that vary."""

import collections
import dataclasses
from typing import NamedTuple

import torch
from torch import nn
from torch.utils import _pytree as pytree

from tests.footguns.ledger import Case, call, program


class Moments(NamedTuple):
    mean: torch.Tensor
    count: int


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor | None = None
    steps: int = 0


class ModelOutput(collections.OrderedDict):
    """In the way of the well-known class: a dictionary whose entries are attributes too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


class Registered:
    def __init__(self, value, tag):
        self.value, self.tag = value, tag


pytree.register_pytree_node(Registered, lambda r: ([r.value], r.tag), lambda values, tag: Registered(*values, tag))


@program("named_tuple_result", kind="results")
def _():
    def f(x):
        return Moments(x.mean(), x.numel())

    return Case(
        f, example=lambda: call(torch.ones(4)), others=[lambda: call(torch.ones(6)), lambda: call(torch.ones(2, 3))]
    )


@program("named_tuple_changed", kind="results")
def _():
    def f(moments):
        return moments._replace(count=moments.count + 1, mean=moments.mean * 2)

    return Case(f, example=lambda: call(Moments(torch.ones(2), 1)), others=[lambda: call(Moments(torch.ones(2), 5))])


@program("dataclass_result", kind="results")
def _():
    def f(x, labels=None):
        logits = x * 2
        return Output(logits, None if labels is None else (logits - labels).square().mean(), steps=x.shape[0])

    return Case(
        f,
        example=lambda: call(torch.ones(3)),
        others=[lambda: call(torch.ones(3), torch.zeros(3)), lambda: call(torch.ones(5))],
    )


@program("model_output_result", kind="results")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x, output_hidden=False):
            hidden = self.layer(x)
            output = ModelOutput(last=hidden.relu())
            if output_hidden:
                output["hidden"] = (x, hidden)
            return output

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2)), lambda: call(torch.ones(1, 2), output_hidden=True)],
    )


@program("torch_return_type", kind="results")
def _():
    def f(x):
        return x.max(dim=-1)

    return Case(f, example=lambda: call(torch.randn(2, 3)), others=[lambda: call(torch.randn(4, 2))])


@program("registered_pytree_result", kind="results")
def _():
    def f(x, tag):
        return Registered(x + 1, tag)

    return Case(f, example=lambda: call(torch.ones(2), "a"), others=[lambda: call(torch.ones(2), "b")])


@program("registered_pytree_argument", kind="results")
def _():
    def f(holder):
        return holder.value * len(holder.tag)

    return Case(
        f, example=lambda: call(Registered(torch.ones(2), "a")), others=[lambda: call(Registered(torch.ones(2), "abc"))]
    )


@program("scalar_result_of_size", kind="results")
def _():
    def f(x):
        return x.shape[0] * x.dim()

    return Case(
        f, example=lambda: call(torch.ones(2, 3)), others=[lambda: call(torch.ones(5, 3)), lambda: call(torch.ones(2))]
    )


@program("scalar_result_of_item", kind="results")
def _():
    def f(x):
        return x.sum().item()

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 3), lambda: call(torch.ones(2, dtype=torch.int64))],
    )


@program("boolean_result", kind="results")
def _():
    def f(x):
        return bool((x > 0).all())

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.tensor([1.0, -1.0]))])


@program("string_result", kind="results")
def _():
    def f(x):
        return f"{tuple(x.shape)} {x.dtype} mean {x.mean():.2f}"

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 3), lambda: call(torch.ones(2, 2, dtype=torch.float64))],
    )


@program("none_result", kind="results")
def _():
    def f(x, out):
        out.copy_(x * 2)

    return Case(
        f, example=lambda: call(torch.ones(2), torch.zeros(2)), others=[lambda: call(torch.ones(2) * 5, torch.zeros(2))]
    )


@program("sometimes_none", kind="results")
def _():
    def f(x):
        if x.sum() > 0:
            return x

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(-torch.ones(2))])


@program("argument_handed_back", kind="results")
def _():
    def f(x, y):
        return x, [y, x], x + y

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.zeros(2)),
        others=[lambda: call(torch.ones(3), torch.ones(3))],
        aliasing=True,
    )


@program("constant_result", kind="results")
def _():
    table = torch.arange(3.0)

    def f(x):
        return table, torch.zeros(2), {"name": "fixed", "n": 3}

    def spoil():
        table.add_(1)
        return call(torch.ones(1))

    return Case(f, example=lambda: call(torch.ones(1)), others=[spoil], state=lambda: table)


@program("fresh_result_each_call", kind="results")
def _():
    def f(x):
        buffer = torch.zeros(3)
        buffer[: x.shape[0]] = x
        return buffer

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(1) * 7), lambda: call(torch.ones(3) * 2)],
        aliasing=True,
    )


@program("fresh_list_each_call", kind="results")
def _():
    def f(x):
        parts = []
        parts.append(x + 1)
        parts.append({"n": x.shape[0]})
        return parts

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(5))], aliasing=True)


@program("result_depends_on_flag", kind="results")
def _():
    def f(x, output_attentions=False, use_cache=False):
        outputs = (x * 2,)
        if use_cache:
            outputs += ((x, x + 1),)
        if output_attentions:
            outputs += (x.softmax(-1),)
        return outputs

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2), use_cache=True), lambda: call(torch.ones(2), True, True)],
    )


@program("dictionary_keyed_by_size", kind="results")
def _():
    def f(x):
        return {x.shape[0]: x.sum(), "rank": x.dim()}

    return Case(
        f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(3, 2))]
    )


@program("dictionary_keyed_by_value", kind="results")
def _():
    def f(labels, values):
        return {int(label): value * 2 for label, value in zip(labels, values)}

    return Case(
        f,
        example=lambda: call(torch.tensor([1, 2]), torch.ones(2)),
        others=[
            lambda: call(torch.tensor([5, 2]), torch.ones(2)),
            lambda: call(torch.tensor([4, 4]), torch.tensor([1.0, 2.0])),
        ],
    )


@program("generator_result", kind="results")
def _():
    def f(x, n):
        for index in range(n):
            yield x + index

    return Case(
        f,
        example=lambda: call(torch.ones(2), 2),
        others=[lambda: call(torch.ones(2), 3), lambda: call(torch.zeros(1), 1)],
    )


@program("map_result", kind="results")
def _():
    def f(x):
        return map(torch.exp, x)

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.zeros(3))])


@program("shape_result", kind="results")
def _():
    def f(x):
        return x.shape, x.size(), list(x.stride()), x.T.shape

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(4, 1)), lambda: call(torch.ones(3, 2).T)],
    )


@program("dtype_and_device_result", kind="results")
def _():
    def f(x):
        return x.dtype, x.device, x.requires_grad, x.is_contiguous()

    return Case(
        f,
        example=lambda: call(torch.ones(2, 3)),
        others=[
            lambda: call(torch.ones(2, 3, dtype=torch.int32)),
            lambda: call(torch.ones(2, 3).T),
            lambda: call(torch.ones(2, requires_grad=True)),
        ],
    )


@program("same_tensor_twice_in_result", kind="results")
def _():
    def f(x):
        y = x * 2
        return {"a": y, "b": y, "c": y.view(-1)}

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(4))], aliasing=True)


@program("set_result", kind="results")
def _():
    def f(labels):
        return set(labels.tolist())

    return Case(f, example=lambda: call(torch.tensor([1, 1, 2])), others=[lambda: call(torch.tensor([3, 1, 2]))])


@program("plain_number_through", kind="results")
def _():
    def f(x, n, flag, name):
        return x * 2, n + 1, not flag, name.upper(), n / 2

    return Case(
        f,
        example=lambda: call(torch.ones(1), 1, True, "a"),
        others=[lambda: call(torch.ones(1), 4, False, "b"), lambda: call(torch.ones(1), 2.5, True, "a")],
    )


@program("generator_given_back_after_a_write", kind="results")
def _():
    def f(x, table):
        table["rows"] = x.shape[0]
        return (row * 2 for row in x)

    others = [lambda: call(torch.ones(3, 2), {}), lambda: call(torch.ones(2, 4), {"rows": 1})]
    return Case(f, example=lambda: call(torch.ones(2, 2), {}), others=others)
