"""Branches on strings and on types: `isinstance`, `type(x) is`, `hasattr`, `callable`, None or not."""

import numbers
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("mode_string", kind="types")
def _():
    def f(x, mode="sum"):
        if mode == "sum":
            return x.sum()
        elif mode == "mean":
            return x.mean()
        raise ValueError(f"unknown mode {mode!r}")

    return Case(
        f,
        example=lambda: call(torch.ones(3)),
        others=[lambda: call(torch.ones(3), "mean"), lambda: call(torch.ones(3), mode="max")],
    )


@program("string_prefix", kind="types")
def _():
    def f(x, name):
        if name.startswith("log_"):
            x = x.log()
        if name.lower().endswith("norm"):
            x = x / x.sum()
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2) * 3, "plain"),
        others=[lambda: call(torch.ones(2) * 3, "log_x"), lambda: call(torch.ones(2) * 3, "LNorm")],
    )


@program("einsum_string", kind="types")
def _():
    def f(equation, a, b):
        return torch.einsum(equation, a, b)

    return Case(
        f,
        example=lambda: call("ij,jk->ik", torch.randn(2, 2), torch.randn(2, 2)),
        others=[
            lambda: call("ij,jk->ki", torch.randn(2, 2), torch.randn(2, 2)),
            lambda: call("ij,kj->ik", torch.randn(3, 2), torch.randn(4, 2)),
        ],
    )


@program("tensor_or_number", kind="types")
def _():
    def f(x, weight):
        if isinstance(weight, torch.Tensor):
            return x * weight.softmax(0)
        return x * weight

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2), 3.0), lambda: call(torch.ones(2), torch.tensor([1.0, 5.0]))],
    )


@program("number_or_sequence", kind="types")
def _():
    def f(x, kernel):
        kernel = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
        return nn.functional.avg_pool2d(x, kernel)

    return Case(
        f,
        example=lambda: call(torch.randn(1, 1, 4, 4), 2),
        others=[
            lambda: call(torch.randn(1, 1, 4, 4), (4, 2)),
            lambda: call(torch.randn(1, 1, 4, 4), [1, 2]),
            lambda: call(torch.randn(1, 1, 4, 4), 4),
        ],
    )


@program("bool_is_an_int", kind="types")
def _():
    def f(x, flag):
        if isinstance(flag, bool):
            return -x if flag else x
        return x * flag

    return Case(
        f,
        example=lambda: call(torch.ones(2), True),
        others=[lambda: call(torch.ones(2), 1), lambda: call(torch.ones(2), False), lambda: call(torch.ones(2), 3)],
    )


@program("int_or_float_argument", kind="types")
def _():
    def f(x, amount):
        if type(amount) is int:
            return x[:amount]
        return x[: int(len(x) * amount)]

    return Case(
        f,
        example=lambda: call(torch.arange(4), 1),
        others=[
            lambda: call(torch.arange(4), 1.0),
            lambda: call(torch.arange(4), 3),
            lambda: call(torch.arange(8), 0.5),
        ],
    )


@program("int_or_float_promotes", kind="types")
def _():
    def f(x, amount):
        return x * amount

    return Case(
        f,
        example=lambda: call(torch.arange(3), 2),
        others=[
            lambda: call(torch.arange(3), 2.0),
            lambda: call(torch.arange(3), True),
            lambda: call(torch.arange(3), 2j),
        ],
    )


@program("type_is_dict", kind="types")
def _():
    def f(batch):
        if type(batch) is dict:
            return batch["x"] + 1
        if isinstance(batch, Mapping):
            return batch["x"] + 2
        return batch

    from collections import OrderedDict

    return Case(
        f,
        example=lambda: call({"x": torch.ones(2)}),
        others=[lambda: call(OrderedDict(x=torch.ones(2))), lambda: call(torch.ones(2))],
    )


@program("list_or_tuple", kind="types")
def _():
    def f(values):
        joined = torch.stack(list(values))
        return joined.sum(0) if isinstance(values, list) else joined.prod(0)

    return Case(
        f, example=lambda: call([torch.ones(2), torch.ones(2)]), others=[lambda: call((torch.ones(2), torch.ones(2)))]
    )


@program("hasattr_branch", kind="types")
def _():
    class Plain:
        pass

    class Rich:
        weight = 4.0

    def f(x, holder):
        if hasattr(holder, "weight"):
            return x * holder.weight
        return x

    return Case(
        f,
        example=lambda: call(torch.ones(2), Plain()),
        others=[lambda: call(torch.ones(2), Rich()), lambda: call(torch.ones(2), nn.Linear(2, 2, bias=False))],
    )


@program("callable_branch", kind="types")
def _():
    def f(x, activation):
        if callable(activation):
            return activation(x)
        return x if activation is None else getattr(torch, activation)(x)

    return Case(
        f,
        example=lambda: call(torch.ones(2), None),
        others=[lambda: call(torch.ones(2), torch.sin), lambda: call(torch.ones(2), "cos")],
    )


@program("none_or_mask", kind="types")
def _():
    def f(scores, mask=None):
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return scores.softmax(-1)

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3)),
        others=[
            lambda: call(torch.randn(2, 3), torch.tensor([[True, False, True], [True, True, True]])),
            lambda: call(torch.randn(2, 3), mask=None),
        ],
    )


@program("mask_then_none", kind="types")
def _():
    def f(scores, mask=None):
        if mask is not None:
            scores = scores + mask
        return scores * 2

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2)), lambda: call(torch.ones(2), None)],
    )


@program("numpy_or_tensor", kind="types")
def _():
    def f(x):
        if isinstance(x, np.ndarray):
            x = torch.from_numpy(x) * 10
        return x + 1

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(np.ones(2, dtype=np.float32))])


@program("parameter_or_tensor", kind="types")
def _():
    def f(x):
        return x * 2 if isinstance(x, nn.Parameter) else x * 3

    return Case(
        f,
        example=lambda: call(nn.Parameter(torch.ones(2))),
        others=[lambda: call(torch.ones(2, requires_grad=True)), lambda: call(torch.ones(2))],
    )


@program("tensor_subclass", kind="types")
def _():
    class Tagged(torch.Tensor):
        pass

    def f(x):
        y = x + 1
        return y.as_subclass(torch.Tensor) * (5 if type(x) is torch.Tensor else 7)

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2).as_subclass(Tagged))])


@program("isinstance_of_number", kind="types")
def _():
    def f(x, p):
        if isinstance(p, numbers.Integral):
            return x.pow(p).sum()
        if isinstance(p, numbers.Real):
            return x.abs().pow(p).sum()
        return x.abs().max()

    return Case(
        f,
        example=lambda: call(torch.tensor([-1.0, 2.0]), 3),
        others=[
            lambda: call(torch.tensor([-1.0, 2.0]), 3.0),
            lambda: call(torch.tensor([-1.0, 2.0]), "inf"),
            lambda: call(torch.tensor([-1.0, 2.0]), 2),
        ],
    )


@program("size_is_an_int", kind="types")
def _():
    def f(x, size=None):
        size = x.shape[0] if size is None else size
        if not isinstance(size, int):
            size = size[0]
        return x.new_full((size,), float(size))

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(2), (4,)), lambda: call(torch.ones(2), 5)],
    )


@program("string_sequence_check", kind="types")
def _():
    def f(x, names):
        if isinstance(names, str):
            names = [names]
        assert isinstance(names, Sequence)
        return {name: x * index for index, name in enumerate(names, start=1)}

    return Case(
        f,
        example=lambda: call(torch.ones(2), "ab"),
        others=[lambda: call(torch.ones(2), ["a", "b"]), lambda: call(torch.ones(2), "xyz")],
    )


@program("type_as_argument", kind="types")
def _():
    def f(x, kind):
        return kind([x, x + 1])

    return Case(
        f,
        example=lambda: call(torch.ones(2), list),
        others=[lambda: call(torch.ones(2), tuple), lambda: call(torch.ones(2), torch.stack)],
    )


@program("class_name_branch", kind="types")
def _():
    def f(x, layer):
        name = layer.__class__.__name__
        if "Norm" in name:
            return x
        return layer(x)

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3), nn.LayerNorm(3)),
        others=[lambda: call(torch.randn(2, 3), nn.Tanh()), lambda: call(torch.randn(2, 3), nn.Softmax(-1))],
    )


@program("output_type_flag", kind="types")
def _():
    def f(x, return_dict=True):
        y = x * 2
        if not return_dict:
            return (y,)
        return {"y": y}

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2), return_dict=False), lambda: call(torch.ones(2), False)],
    )


@program("dtype_string", kind="types")
def _():
    def f(x, dtype="float32"):
        return x.to(getattr(torch, dtype)) / 2

    return Case(
        f,
        example=lambda: call(torch.arange(3)),
        others=[lambda: call(torch.arange(3), "float64"), lambda: call(torch.arange(3), dtype="float16")],
    )


@program("bytes_and_characters", kind="types")
def _():
    def f(table, word):
        return torch.stack([table[ord(letter) - ord("a")] for letter in word]).sum(0)

    return Case(
        f,
        example=lambda: call(torch.arange(8.0).view(4, 2), "ab"),
        others=[lambda: call(torch.arange(8.0).view(4, 2), "dc"), lambda: call(torch.arange(8.0).view(4, 2), "a")],
    )


@program("numbers_compared_by_identity", kind="types")
def _():
    def f(x, a, b):
        return x * a if a is b else -x

    return Case(
        f,
        example=lambda: call(torch.ones(2), 3, 3),
        others=[lambda: call(torch.ones(2), 3, 4), lambda: call(torch.ones(2), 5, 5)],
    )
