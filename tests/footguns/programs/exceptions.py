"""Exceptions: the program's own, raised or caught, on some inputs and not on others."""

import contextlib

import torch
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("raises_on_rank", kind="exceptions")
def _():
    def f(x):
        if x.dim() != 2:
            raise ValueError(f"expected a matrix, got {x.dim()} dimensions")
        return x @ x.T

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3)),
        others=[lambda: call(torch.randn(3)), lambda: call(torch.randn(4, 2))],
    )


@program("raises_on_value", kind="exceptions")
def _():
    def f(probabilities):
        if (probabilities < 0).any():
            raise ValueError("a probability is negative")
        return probabilities / probabilities.sum()

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.tensor([1.0, -1.0]))])


@program("raises_on_mismatch", kind="exceptions")
def _():
    def f(x, y):
        if x.shape != y.shape:
            raise ValueError(f"shapes differ: {tuple(x.shape)} and {tuple(y.shape)}")
        return x * y

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2), torch.ones(1)), lambda: call(torch.ones(4), torch.ones(4))],
    )


@program("catches_shape_error", kind="exceptions")
def _():
    def f(x, y):
        try:
            return x @ y
        except RuntimeError:
            return x @ y.T

    return Case(
        f,
        example=lambda: call(torch.randn(2, 3), torch.randn(4, 3)),
        others=[lambda: call(torch.randn(2, 3), torch.randn(3, 4)), lambda: call(torch.randn(2, 3), torch.randn(3, 3))],
    )


@program("catches_shape_error_later", kind="exceptions")
def _():
    def f(x, y):
        try:
            return x + y
        except RuntimeError:
            return x.sum() + y.sum()

    return Case(
        f,
        example=lambda: call(torch.ones(2), torch.ones(2)),
        others=[lambda: call(torch.ones(2), torch.ones(3)), lambda: call(torch.ones(3), torch.ones(1))],
    )


@program("catches_key_error", kind="exceptions")
def _():
    def f(batch):
        try:
            weight = batch["weight"]
        except KeyError:
            weight = torch.ones_like(batch["x"])
        return batch["x"] * weight

    return Case(
        f,
        example=lambda: call({"x": torch.ones(2)}),
        others=[lambda: call({"x": torch.ones(2), "weight": torch.full((2,), 3.0)})],
    )


@program("catches_index_error", kind="exceptions")
def _():
    def f(x, index):
        try:
            return x[index]
        except IndexError:
            return torch.zeros(())

    return Case(
        f,
        example=lambda: call(torch.ones(3), 1),
        others=[lambda: call(torch.ones(3), 5), lambda: call(torch.ones(1), 1)],
    )


@program("catches_attribute_error", kind="exceptions")
def _():
    class Config:
        pass

    def config(**options):
        made = Config()
        vars(made).update(options)
        return made

    def f(x, options):
        try:
            scale = options.scale
        except AttributeError:
            scale = 1.0
        return x * scale

    return Case(
        f, example=lambda: call(torch.ones(2), config()), others=[lambda: call(torch.ones(2), config(scale=4.0))]
    )


@program("catches_type_error_of_callback", kind="exceptions")
def _():
    def f(x, function):
        try:
            return function(x, 2)
        except TypeError:
            return function(x)

    return Case(
        f,
        example=lambda: call(torch.ones(2), lambda x: x + 1),
        others=[lambda: call(torch.ones(2), lambda x, n: x * n * 5), lambda: call(torch.ones(2), torch.neg)],
    )


@program("division_by_python_zero", kind="exceptions")
def _():
    def f(x, count):
        try:
            factor = 1 / count
        except ZeroDivisionError:
            factor = 0.0
        return x * factor

    return Case(
        f,
        example=lambda: call(torch.ones(2), 4),
        others=[lambda: call(torch.ones(2), 0), lambda: call(torch.ones(2), 8)],
    )


@program("singular_matrix", kind="exceptions")
def _():
    def f(matrix):
        try:
            return torch.linalg.inv(matrix)
        except RuntimeError:
            return torch.linalg.pinv(matrix)

    return Case(
        f,
        example=lambda: call(torch.eye(2) * 2),
        others=[lambda: call(torch.zeros(2, 2)), lambda: call(torch.eye(3) * 4)],
    )


@program("cholesky_with_jitter", kind="exceptions")
def _():
    def f(matrix):
        jitter = 0.0
        for attempt in range(4):
            try:
                return torch.linalg.cholesky(matrix + jitter * torch.eye(len(matrix))), attempt
            except torch.linalg.LinAlgError:
                jitter = max(jitter * 10, 1e-3)
        raise ValueError("not positive definite")

    return Case(
        f,
        example=lambda: call(torch.eye(2)),
        others=[lambda: call(torch.zeros(2, 2)), lambda: call(-torch.eye(2)), lambda: call(torch.eye(3) * 9)],
    )


@program("finally_resets_state", kind="exceptions")
def _():
    log = []

    def f(x):
        log.append("enter")
        try:
            if x.sum() < 0:
                raise ArithmeticError("negative")
            return x + 1
        finally:
            log.append("leave")

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(-torch.ones(2))], state=lambda: log)


@program("suppressed_error", kind="exceptions")
def _():
    def f(x):
        with contextlib.suppress(RuntimeError):
            x = x.view(2, -1)
        return x * 2

    return Case(
        f, example=lambda: call(torch.ones(4)), others=[lambda: call(torch.ones(3)), lambda: call(torch.ones(6))]
    )


@program("custom_exception_class", kind="exceptions")
def _():
    class TooLong(Exception):
        def __init__(self, length):
            super().__init__(f"{length} tokens are too many")
            self.length = length

    def f(tokens):
        try:
            if tokens.shape[0] > 4:
                raise TooLong(tokens.shape[0])
        except TooLong as error:
            tokens = tokens[: 8 - error.length]
        return tokens * 2

    return Case(
        f, example=lambda: call(torch.arange(3)), others=[lambda: call(torch.arange(6)), lambda: call(torch.arange(5))]
    )


@program("example_raises", kind="exceptions")
def _():
    def f(x):
        if x.sum() > 0:
            raise RuntimeError("positive inputs are not supported")
        return x

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(-torch.ones(2))])


@program("torch_error_is_the_users", kind="exceptions")
def _():
    layer = nn.Linear(3, 2)

    def f(x):
        return layer(x).softmax(-1)

    return Case(
        f,
        example=lambda: call(torch.ones(1, 3)),
        others=[lambda: call(torch.ones(1, 4)), lambda: call(torch.ones(5, 3))],
    )


@program("raise_from", kind="exceptions")
def _():
    def f(table, key):
        try:
            return table[key] * 2
        except KeyError as error:
            raise ValueError(f"no entry {key}") from error

    return Case(
        f,
        example=lambda: call({"a": torch.ones(2), "b": torch.zeros(2)}, "a"),
        others=[
            lambda: call({"a": torch.ones(2), "b": torch.zeros(2)}, "b"),
            lambda: call({"a": torch.ones(2), "b": torch.zeros(2)}, "c"),
        ],
    )


@program("retry_with_smaller_step", kind="exceptions")
def _():
    def checked(x):
        if not torch.isfinite(x).all():
            raise FloatingPointError("overflow")
        return x

    def f(x):
        scale = 1.0
        while True:
            try:
                return checked((x * scale).exp())
            except FloatingPointError:
                scale /= 10

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2) * 500), lambda: call(torch.ones(2) * 5000)],
    )


@program("catches_error_of_a_layer", kind="exceptions")
def _():
    class Careful(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.drop = torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)

        def forward(self, x):
            try:
                x = self.linear(self.drop(x))
            except RuntimeError:
                x = x * 2
            return x + torch.rand(1)

    return Case(
        make=Careful,
        example=lambda: call(torch.ones(2, 3)),
        others=[lambda: call(torch.ones(2, 4)), lambda: call(torch.ones(2, 3).long())],
    )


@program("norm_fails_where_no_state_is_written", kind="exceptions")
def _():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.last = torch.nn.BatchNorm1d(4), None

        def forward(self, x):
            if not x.any():
                self.last = x
            return self.norm(x)

    others = [lambda: call(torch.ones(1, 4)), lambda: call(torch.zeros(1, 4)), lambda: call(torch.zeros(2, 4))]
    return Case(make=Model, example=lambda: call(torch.ones(2, 4)), others=others, state=lambda model: model.last)


@program("drawn_where_no_state_is_written", kind="exceptions")
def _():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.last = torch.nn.Linear(4, 4), None

        def forward(self, x):
            if x.sum() > 0:
                x = torch.nn.functional.dropout(x) @ self.linear.weight
            else:
                self.last = x
            return x

    others = [lambda: call(torch.ones(2, 4).long()), lambda: call(torch.ones(2, 3)), lambda: call(-torch.ones(2, 4))]
    return Case(make=Model, example=lambda: call(torch.ones(2, 4)), others=others, state=lambda model: model.last)
