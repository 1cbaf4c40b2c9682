"""Re-inplacing, inlining, recognition, dtypes and devices: each equal to what it stands for."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import clew
from tests.passes.programs import owner_of, passed, same_as, targets
from tests.strategies import runnable_graphs

X = torch.randn(2, 3)

# ---- re-inplacing ----------------------------------------------------------------------------------------------------


def activations(x):
    y = (x - 1.0).relu()
    z = torch.sigmoid(x - 2.0)
    return y.tanh().sum() + z.mean(), z.exp()


def test_reinplace():
    captured = clew.reinplace(clew.trace(activations, (X,)))
    assert targets(captured) == ["sub", "relu_", "sub", "sigmoid_", "tanh_", "sum", "mean", "add", "exp_"]
    with torch.no_grad():
        same_as(captured, activations, (X,))
    with pytest.raises(clew.GuardError, match="is_grad_enabled"):
        captured(X)


def needed(x):
    y = x - 1.0
    return torch.relu(y) + y, torch.relu(x), torch.tanh(y.view(6))


def test_what_is_needed_later_is_not_written_to():
    captured = clew.reinplace(clew.trace(needed, (X,)))
    assert not any(target.endswith("_") for target in targets(captured))


# ---- modules and functions -------------------------------------------------------------------------------------------


def layers():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.GroupNorm(2, 4), nn.Dropout(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 4), nn.LayerNorm(4), nn.GELU(), nn.Softmax(-1),
    )  # fmt: skip


def test_inline_modules():
    x = torch.randn(2, 3, 8, 8)
    model = layers().eval()
    captured = passed(clew.inline_modules, model, x)
    assert not captured.graph.find_nodes(op="call_module")
    assert list(captured.state_dict()) == list(model.state_dict())
    captured.train()
    with pytest.raises(clew.GuardError, match=r"not self\[1\]\.training"):
        captured(x)


def test_inlined_dropout_follows_its_mode():
    captured = clew.inline_modules(clew.trace(nn.Sequential(nn.Dropout(0.5)).eval(), (X,)))
    assert torch.equal(captured(X), X)
    torch.manual_seed(0)
    ours = captured.train()(X)
    torch.manual_seed(0)
    assert torch.equal(ours, F.dropout(X, 0.5))


def test_inlined_weights_train():
    captured = clew.inline_modules(clew.symbolic_trace(nn.Sequential(nn.Linear(3, 2))))
    captured(X).sum().backward()
    assert captured.get_parameter("0.weight").grad is not None


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(6, 4)), nn.Parameter(torch.randn(6))
        self.g, self.h = nn.Parameter(torch.rand(6)), nn.Parameter(torch.rand(6))

    def linear(self, x):
        return x @ self.w.t() + self.b, self.b + torch.matmul(x, self.w.T), torch.addmm(self.b, x[0], self.w.t())

    def layer_norm(self, x):
        y = x.repeat(1, 1, 2)[..., :6]
        first = (y - y.mean(dim=-1, keepdim=True)) / torch.sqrt(y.var(-1, unbiased=False, keepdim=True) + 1e-5)
        centred = y - torch.mean(y, -1, keepdim=True)
        second = centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.g * first + self.h, second * self.g + self.h

    def rms_norm(self, x):
        y = x.repeat(1, 1, 2)[..., :6]
        return self.g * (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6))

    def scaled_dot_product_attention(self, x):
        mask = torch.zeros(5, 5) + x.mean()
        masked = torch.softmax(x @ x.transpose(-2, -1) * 0.5 + mask, dim=-1) @ x
        return masked, F.softmax(torch.matmul(x, x.mT) / 2.0, -1).matmul(x)

    def rms_norm_that_casts(self, x):
        wide = x.repeat(1, 1, 2)[..., :6].to(torch.float32)
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.g * normed.to(x.dtype)

    def gelu(self, x):
        by_tanh = 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
        return by_tanh, x * 0.5 * (1 + torch.erf(x / math.sqrt(2.0)))

    def rotary_embedding(self, x):
        cos, sin = x.cos(), x.sin()
        return x * cos + torch.cat((-x[..., 2:], x[..., :2]), dim=-1) * sin


FUSED = ["linear", "layer_norm", "rms_norm", "gelu", "scaled_dot_product_attention", "rotary_embedding"]


@pytest.mark.parametrize("name", FUSED)
def test_recognize(name):
    model = Parts()
    model.forward = getattr(model, name)
    x = torch.randn(2, 5, 4)
    captured = clew.trace(model, (x,))
    lines_before = {node.source.lineno for node in captured.graph.nodes if node.source is not None}
    clew.recognize(captured, fast=True)
    captured.graph.lint()
    found = [node for node in captured.graph.nodes if getattr(node.target, "__name__", "") == name]
    results = model(x)
    assert len(found) == (len(results) if isinstance(results, tuple) else 1)
    assert all(node.source.lineno in lines_before and node.value_type is not None for node in found)
    torch.testing.assert_close(captured(x), results, rtol=1e-4, atol=1e-5)
    assert not [node for node in clew.recognize(clew.trace(model, (x,)), only=("none",)).graph.nodes
                if getattr(node.target, "__name__", "") == name]  # fmt: skip


def test_a_norm_that_casts_gives_every_dtype():
    model = Parts()
    model.forward = model.rms_norm_that_casts
    captured = clew.recognize(clew.trace(model, (torch.randn(2, 5, 4),)))
    assert "rms_norm" in targets(captured) and "rsqrt" not in targets(captured)
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        x = torch.randn(2, 5, 4, dtype=dtype)
        torch.testing.assert_close(captured(x), model(x))


Q, K, V = (torch.randn(2, 3, size, 4) for size in (5, 6, 6))
KEPT = torch.ones(5, 6, dtype=torch.bool).tril()
ATTENTIONS = {
    "product": lambda q, k, v: (q @ k.transpose(-2, -1) * 0.5).softmax(-1) @ v,
    "quotient": lambda q, k, v: torch.softmax(torch.matmul(q, k.mT) / 2, dim=-1).matmul(v),
    "computed scale": lambda q, k, v: torch.softmax(q @ k.mT / math.sqrt(k.shape[-1]), -1) @ v,
    "queries": lambda q, k, v: F.softmax((q * 0.5) @ k.transpose(2, 3), dim=-1) @ v,
    "queries divided": lambda q, k, v: F.softmax((q / 2) @ k.transpose(-1, -2), dim=-1) @ v,
    "permuted": lambda q, k, v: torch.softmax(q @ k.permute(0, 1, 3, 2) * 0.5, -1) @ v,
    "cast": lambda q, k, v: F.softmax(q @ k.mT * 0.5, dim=-1, dtype=torch.float32).to(q.dtype) @ v,
    "cast to values": lambda q, k, v: (q @ k.mT * 0.5).softmax(-1).type(v.dtype) @ v,
    "no dropout": lambda q, k, v: F.dropout((q @ k.mT * 0.5).softmax(-1), 0.1, False) @ v,
    "mask": lambda q, k, v: (q @ k.mT * 0.5 + torch.where(KEPT, 0.0, -1e9)).softmax(-1) @ v,
    "causal": lambda q, k, v: F.softmax(q @ k.mT / 2 + torch.full((5, 6), -1e4).triu(1), -1, dtype=torch.float32) @ v,
    "repeated": lambda q, k, v: (q @ k[:, :1].expand(2, 3, 6, 4).mT * 0.5).softmax(-1) @ v,
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_in_all_spellings(name):
    captured = clew.remove_dropout(clew.trace(ATTENTIONS[name], (Q, K, V)))
    clew.recognize(captured)
    assert "scaled_dot_product_attention" in targets(captured) and "softmax" not in targets(captured)
    torch.testing.assert_close(captured(Q, K, V), ATTENTIONS[name](Q, K, V))


def test_a_mask_that_may_hide_a_whole_row_needs_fast():
    def attention(q, k, v, mask):
        return (q @ k.mT * 0.5 + mask).softmax(-1) @ v

    hidden = torch.where(KEPT, 0.0, float("-inf"))
    hidden[0] = float("-inf")
    captured = clew.recognize(clew.trace(attention, (Q, K, V, torch.zeros(5, 6))))
    assert "scaled_dot_product_attention" not in targets(captured)
    torch.testing.assert_close(captured(Q, K, V, hidden), attention(Q, K, V, hidden), equal_nan=True)
    assert "scaled_dot_product_attention" in targets(clew.recognize(captured, fast=True))


def test_a_bool_mask_is_not_taken_for_an_added_one():
    def attention(x, mask):
        return torch.softmax(x @ x.mT * 0.5 + mask, dim=-1) @ x

    x = torch.randn(1, 5, 4)
    captured = clew.recognize(clew.trace(attention, (x, torch.ones(5, 5, dtype=torch.bool))), fast=True)
    assert "scaled_dot_product_attention" not in targets(captured)
    captured = clew.recognize(clew.trace(attention, (x, torch.zeros(5, 5))), fast=True)
    assert "scaled_dot_product_attention" in targets(captured)
    with pytest.raises(clew.GuardError, match="is_floating_point"):
        captured(x, torch.ones(5, 5, dtype=torch.bool))


# ---- dtypes, devices, operators --------------------------------------------------------------------------------------


def test_convert_dtype():
    x = torch.randn(2, 3, 8, 8)
    model = layers().eval()
    expected = copy.deepcopy(model).to(torch.bfloat16)(x.bfloat16())
    captured = clew.trace(model, (x,))
    clew.convert_dtype(captured, torch.bfloat16)
    assert torch.equal(captured(x), expected)
    assert {parameter.dtype for parameter in captured.parameters()} == {torch.bfloat16}
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    back = clew.convert_dtype(clew.trace(model, (x,)), torch.bfloat16, results=torch.float32)
    assert torch.equal(back(x), expected.float())


def test_tied_weights_stay_tied():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    captured = clew.convert_dtype(clew.trace(model, (X,)), torch.float64)
    assert captured.get_parameter("0.weight") is captured.get_parameter("1.weight")


def test_convert_dtype_of_parametrized_layers():
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)), nn.Tanh()).eval()
    captured = clew.convert_dtype(clew.trace(model, (torch.randn(3, 2),)), torch.float64)
    x = torch.randn(3, 2, dtype=torch.float64)
    torch.testing.assert_close(captured(x), copy.deepcopy(model).double()(x))
    assert model[0].weight.dtype is torch.float32


def test_place():
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    captured = clew.place(clew.trace(model, (X,)), "meta")
    assert captured(X).device.type == "meta" and model(X).device.type == "cpu"


def test_decompose():
    x = torch.randn(2, 3, 8, 8)
    model = layers().eval()
    module = clew.decompose(clew.trace(model, (x,)))
    calls = [node.target for node in module.graph.nodes if node.op == "call_function"]
    assert any(target is torch.ops.aten.addmm.default for target in calls)
    torch.testing.assert_close(module(x), model(x))
    assert list(module.state_dict()) == list(model.state_dict())


class Asking(nn.Module):
    """Branches and loops on what arrays hold, a question, and a write."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, mask=None):
        y = self.layer(x)
        if mask is not None and not mask.all():
            y = y.masked_fill(~mask, 0.0)
        self.calls.add_(1)
        rounds = 0
        while y.abs().max() > 1 and rounds < 10:
            y, rounds = y / 2, rounds + 1
        for row in x[: int(mask.sum()) // 4]:
            y = y + row
        first, *_ = mask.sum(1).tolist()
        y = y[:, :first]
        return {"y": y, "rounds": rounds}


def test_decompose_takes_the_way_of_the_example_and_guards_it(capfd):
    torch.manual_seed(0)
    model, x, mask = Asking().eval(), torch.randn(3, 4) * 5, torch.ones(3, 4, dtype=torch.bool)
    captured = clew.trace(model, (x, mask))
    module = clew.decompose(captured, (x, mask))
    assert captured.calls == model.calls == 0 and capfd.readouterr().err == ""
    torch.testing.assert_close(module(x, mask), model(x, mask))
    torch.testing.assert_close(module(x * 1.01, mask)["y"], model(x * 1.01, mask)["y"])
    before = module.calls.clone()
    for other in ((x * 100, mask), (x, ~mask), (x / 100, mask)):
        with pytest.raises(clew.GuardError, match=r"where: .*test_rewriting.py"):
            module(*other)
    assert torch.equal(module.calls, before)


def test_decompose_carries_guards_on_settings():
    """Of layers that the result does not have: the setting of the capture stands in their place."""

    class Patches(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.Conv2d(3, 4, 4, stride=4)

        def forward(self, x):
            if x.shape[2] // self.project.stride[0] == 5:
                return x
            return self.project(x)

    model, x = Patches().eval(), torch.randn(2, 3, 16, 16)
    module = clew.decompose(clew.trace(model, (x,)), (x,))
    torch.testing.assert_close(module(x), model(x))


# ---- any order -------------------------------------------------------------------------------------------------------

PASSES = [
    clew.dead_code, clew.common_subexpressions, clew.constant_folding, clew.simplify, clew.functionalize,
    clew.reinplace, clew.inline_modules, clew.recognize, clew.remove_dropout, clew.fold_batch_norm,
]  # fmt: skip


@given(runnable_graphs(most_nodes=12), st.lists(st.sampled_from(PASSES), min_size=2, max_size=6))
@settings(max_examples=80, deadline=None)
def test_random_programs_and_orders(drawn, passes):
    graph, attributes, inputs = drawn
    module = owner_of(graph, attributes).eval()
    with torch.no_grad():
        expected = copy.deepcopy(module)(*copy.deepcopy(inputs))
        clew.ShapeProp(module).propagate(*copy.deepcopy(inputs))
        module = clew.Pipeline(passes)(module, tuple(inputs))
        result = module(*copy.deepcopy(inputs))
    torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
