"""Modules: recurrent layers, attention, tied weights, parametrizations, layer drop, containers of layers."""

import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from tests.footguns.ledger import Case, call, program


@program("lstm_with_state", kind="modules")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(2, 3, batch_first=True, bidirectional=True)

        def forward(self, x, state=None):
            y, (hidden, cell) = self.lstm(x, state)
            return y[:, -1], hidden

    return Case(
        Model(),
        example=lambda: call(torch.randn(2, 3, 2)),
        others=[
            lambda: call(torch.randn(1, 5, 2)),
            lambda: call(torch.randn(2, 3, 2), (torch.ones(2, 2, 3), torch.ones(2, 2, 3))),
        ],
        gradients=True,
    )


@program("multihead_attention", kind="modules")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x, padding=None, need_weights=False):
            return self.attention(x, x, x, key_padding_mask=padding, need_weights=need_weights)

    return Case(
        Model(),
        example=lambda: call(torch.randn(2, 3, 4)),
        others=[
            lambda: call(torch.randn(1, 5, 4)),
            lambda: call(torch.randn(2, 3, 4), torch.tensor([[False, False, True]] * 2)),
            lambda: call(torch.randn(2, 3, 4), need_weights=True),
        ],
    )


@program("scaled_dot_product_causal", kind="modules")
def _():
    def f(query, key, value):
        causal = query.shape[-2] > 1 and query.shape[-2] == key.shape[-2]
        return F.scaled_dot_product_attention(query, key, value, is_causal=causal)

    return Case(
        f,
        example=lambda: call(*torch.randn(3, 1, 4, 2).unbind()),
        others=[
            lambda: call(torch.randn(1, 1, 2), *torch.randn(2, 1, 4, 2).unbind()),
            lambda: call(torch.randn(1, 3, 2), *torch.randn(2, 1, 4, 2).unbind()),
            lambda: call(*torch.randn(3, 2, 6, 2).unbind()),
        ],
    )


@program("transformer_layer_eval", kind="modules")
def _():
    return Case(
        nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(),
        example=lambda: call(torch.randn(2, 3, 4)),
        others=[
            lambda: call(torch.randn(1, 5, 4)),
            lambda: call(torch.randn(2, 3, 4), src_key_padding_mask=torch.tensor([[False, False, True]] * 2)),
        ],
    )


@program("tied_weights", kind="modules")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens):
            return self.head(self.embed(tokens))

    return Case(
        Model(),
        example=lambda: call(torch.tensor([[0, 1]])),
        others=[lambda: call(torch.tensor([[4, 1, 2]]))],
        gradients=True,
    )


@program("shared_layer_called_twice", kind="modules")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.again = self.layer

        def forward(self, x, times=2):
            for _ in range(times):
                x = self.again(self.layer(x)).tanh()
            return x

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(3, 2), times=1)],
        gradients=True,
    )


@program("weight_norm_parametrization", kind="modules")
def _():
    return Case(
        parametrizations.weight_norm(nn.Linear(2, 3)),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(4, 2) * 3)],
        gradients=True,
    )


@program("spectral_norm_in_training", kind="modules")
def _():
    return Case(
        parametrizations.spectral_norm(nn.Linear(3, 3)).train(),
        example=lambda: call(torch.ones(1, 3)),
        others=[lambda: call(torch.ones(4, 3) * 3)],
        gradients=True,
    )


@program("own_parametrization", kind="modules")
def _():
    class Symmetric(nn.Module):
        def forward(self, weight):
            return weight.triu() + weight.triu(1).T

    layer = nn.Linear(3, 3, bias=False)
    parametrize.register_parametrization(layer, "weight", Symmetric())

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            with parametrize.cached():
                return self.layer(x) + self.layer(x * 2)

    return Case(
        Model(), example=lambda: call(torch.ones(1, 3)), others=[lambda: call(torch.ones(4, 3) * 3)], gradients=True
    )


@program("layer_drop", kind="modules")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                if self.training and random.uniform(0, 1) < 0.5:
                    continue
                x = layer(x)
            return x

    return Case(Model().train(), example=lambda: call(torch.ones(1, 2)), others=[lambda: call(torch.ones(1, 2))] * 3)


@program("module_dict_by_name", kind="modules")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Linear(2, 3)})

        def forward(self, x, task):
            return self.heads[task](x)

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2), "a"),
        others=[lambda: call(torch.ones(1, 2), "b"), lambda: call(torch.ones(1, 2), "c")],
    )


@program("embedding_of_shifted_tokens", kind="modules")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.position = nn.Embedding(6, 2), nn.Embedding(8, 2)
            self.register_buffer("positions", torch.arange(8)[None], persistent=False)

        def forward(self, tokens, past=0):
            length = tokens.shape[1]
            return self.embed(tokens) + self.position(self.positions[:, past : past + length])

    return Case(
        Model(),
        example=lambda: call(torch.tensor([[1, 2]])),
        others=[lambda: call(torch.tensor([[1, 2, 3, 4]])), lambda: call(torch.tensor([[5]]), past=3)],
    )


@program("loop_over_named_parameters", kind="modules")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2, bias=False)])

        def forward(self, x, penalised="weight"):
            penalty = sum(p.square().sum() for name, p in self.named_parameters() if name.endswith(penalised))
            for layer in self.layers:
                x = layer(x)
            return x.sum() + penalty

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(1, 2), "bias"), lambda: call(torch.ones(3, 2))],
        gradients=True,
    )


@program("model_to_dtype_inside", kind="modules")
def _():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x.to(self.layer.weight.dtype)).to(x.dtype)

    return Case(
        Model(),
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(1, 2, dtype=torch.float64)), lambda: call(torch.ones(1, 2, dtype=torch.int64))],
    )


@program("submodule_method", kind="modules")
def _():
    class Coder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.calls = 0

        def encode(self, x, gain=1.0):
            self.calls += 1
            return self.layer(x) * gain * self.calls

    model = Coder()
    return Case(
        model.encode,
        example=lambda: call(torch.ones(1, 2)),
        others=[lambda: call(torch.ones(1, 2), gain=3.0), lambda: call(torch.ones(4, 2))],
        state=lambda: model.calls,
    )
