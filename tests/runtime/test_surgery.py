"""Modules of captured programs are replaced and wrapped; training, state dicts, devices and pickles follow."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import nn

import clew
from clew.errors import GraphError
from tests.tools.surgery_models import gpt2


class LoRA(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)

    def forward(self, x):
        return self.last(self.act(self.first(self.act(self.first(x)))))


@pytest.fixture(params=["trace", "symbolic_trace"])
def parts(request):
    torch.manual_seed(0)
    model, x = Net(), torch.randn(3, 4)
    return model, x, clew.trace(model, (x,)) if request.param == "trace" else clew.symbolic_trace(model)


def test_a_wrapped_module_is_trained_and_saved(parts):
    model, x, captured = parts
    before = model(x)
    wrapped = captured.wrap_module("first", LoRA)
    assert isinstance(model.first, nn.Linear) and captured.first is wrapped
    torch.testing.assert_close(captured(x), before)
    assert list(captured.state_dict()) == [
        *("first.base.weight", "first.base.bias", "first.down.weight", "first.up.weight", "last.weight", "last.bias")
    ]
    optimizer = torch.optim.SGD([one for one in captured.parameters() if one.requires_grad], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        captured(x).square().sum().backward()
        optimizer.step()
    assert wrapped.up.weight.abs().sum() > 0 and not torch.allclose(captured(x), before)
    for twin in (copy.deepcopy(captured), pickle.loads(pickle.dumps(captured))):
        torch.testing.assert_close(twin(x), captured(x))
    assert captured.double()(x.double()).dtype == torch.float64
    assert {one.dtype for one in captured.parameters()} == {torch.float64}


def test_both_calls_of_a_shared_module_are_replaced(parts):
    model, x, captured = parts
    new = nn.Linear(4, 4, bias=False)
    captured.replace_module("first", new)
    torch.testing.assert_close(captured(x), model.last(new(new(x).relu()).relu()))
    assert list(captured.state_dict()) == ["first.weight", "last.weight", "last.bias"]
    assert captured.node_of("first", call=2).target == "first"


def test_values_go_through_functions_and_modules(parts):
    model, x, captured = parts
    captured.insert_after("first", torch.abs, call=1)
    name = captured.insert_after("act", nn.Linear(4, 4), call=2)
    hidden = model.first(model.first(x).abs()).relu()
    torch.testing.assert_close(captured(x), model.last(captured.get_submodule(name)(hidden)))
    assert f"{name}.weight" in captured.state_dict()
    captured.insert_after("first", torch.neg, call=1)
    assert captured.node_of("first").target is torch.neg and captured.node_of("first").args[0].target is torch.abs


class Attention(nn.Module):
    def forward(self, query, keys, mask=None):
        weights = (query @ keys.mT).softmax(-1)
        return weights @ keys, weights


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.out = Attention(), nn.Linear(4, 4)

    def forward(self, x):
        y, weights = self.attention(x, keys=self.out(x))
        return x + y, weights.sum()


class Mean(nn.Module):
    def forward(self, query, keys, mask=None):
        return keys.mean(-2, keepdim=True).expand_as(query), query.new_ones(2, 2)


def test_a_module_that_was_entered_is_replaced_with_what_it_was_given():
    model, x = Block(), torch.randn(3, 4)
    captured = clew.trace(model, (x,))
    captured.replace_module("attention", Mean())
    value, weights = captured(x)
    torch.testing.assert_close(value, x + model.out(x).mean(0, keepdim=True))
    assert weights == 4 and "softmax" not in captured.code and "attention" in captured.code


def test_attention_of_gpt2_is_swapped():
    model, kwargs = gpt2()
    captured = clew.trace(model, kwargs=kwargs)

    class Nothing(nn.Module):
        def forward(self, hidden, *args, **kwargs):
            return torch.zeros_like(hidden), None

    captured.replace_module("transformer.h.1.attn", Nothing())
    hook = model.transformer.h[1].attn.register_forward_hook(lambda m, a, output: (output[0] * 0, output[1]))
    torch.testing.assert_close(captured(**kwargs).logits, model(**kwargs).logits)
    hook.remove()
    assert not [key for key in captured.state_dict() if key.startswith("transformer.h.1.attn")]


def test_a_function_keeps_its_original_as_it_is():
    model, x = Net(), torch.randn(3, 4)
    captured = clew.trace(lambda x: model(x) + 1, (x,))
    captured.replace_module("model.first", nn.Identity())
    torch.testing.assert_close(captured(x), model.last(x.relu().relu()) + 1)
    assert isinstance(model.first, nn.Linear)


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (lambda captured: captured.replace_module("frist", nn.Identity()), "nearest[^\n]*first"),
        (lambda captured: captured.replace_module("first", torch.relu), "which is no module"),
        (lambda captured: captured.replace_module("*st", nn.Identity()), "no path of a single module"),
        (lambda captured: captured.insert_after("first", torch.relu, call=5), "no call 5"),
    ],
)
def test_mistakes_are_told_and_change_nothing(parts, edit, text):
    model, x, captured = parts
    code = captured.code
    with pytest.raises(GraphError, match=text):
        edit(captured)
    assert captured.code == code and torch.equal(captured(x), model(x))


def test_a_module_whose_call_is_not_held_is_not_wrapped():
    captured = clew.trace(Block(), (torch.randn(3, 4),))
    with pytest.raises(GraphError, match=r"no single call[\s\S]*leaves=\[None, 'attention'\]"):
        captured.wrap_module("attention", lambda module: module)


class Reading(nn.Module):
    """Asks its layer for more than its value, as T5 and Whisper do."""

    def __init__(self):
        super().__init__()
        self.scale, self.layer = nn.Parameter(torch.tensor(2.0)), nn.Linear(4, 4)

    def forward(self, x):
        if x.shape[0] * self.layer.weight.shape[0] > 100:
            return x
        return self.layer(x.to(self.layer.weight.dtype)) * self.layer.weight.sum() * self.scale


def test_reads_of_a_wrapped_module_follow_it_and_come_back():
    model, x = Reading(), torch.randn(3, 4)
    captured, before = clew.trace(model, (x,)), Reading.forward(model, x)
    original = captured.get_submodule("layer")
    captured.wrap_module("layer", LoRA)
    torch.testing.assert_close(captured(x), before)
    captured.replace_module("layer", original)
    torch.testing.assert_close(captured(x), before)
    assert "self.layer.weight" in captured.code and "base" not in captured.code
    assert not vars(captured).get("assumed")


def test_a_new_module_without_what_is_read_is_refused_and_nothing_changes():
    captured, x = clew.trace(Reading(), (torch.randn(3, 4),)), torch.randn(3, 4)
    code, before = captured.code, captured(x)
    with pytest.raises(GraphError, match=r"has no 'weight'[\s\S]*where: [\s\S]*give the new module an attribute"):
        captured.replace_module("layer", nn.Identity())
    assert captured.code == code and torch.equal(captured(x), before)


class Modes(nn.Module):
    """Its flag is an operand of the branch in which it is called."""

    def __init__(self):
        super().__init__()
        self.block = Noisy()

    def forward(self, x):
        return self.block(x) if x.sum() > 0 else x - 1


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.part = nn.Linear(4, 4), nn.Module()

    def forward(self, x):
        kept = torch.dropout(self.inner(x), 0.5, self.part.training)
        return kept * 2


def test_flags_of_a_replaced_module_go_with_its_calls_inside_of_branches():
    model, x = Modes().eval(), torch.ones(3, 4)
    captured = clew.trace(model, (x,))
    captured.replace_module("block", nn.Tanh())
    assert torch.equal(captured(x), x.tanh()) and torch.equal(captured(-x), -x - 1)
    assert "training" not in captured.code


def test_the_advice_keeps_the_layers():
    """What the error says makes one more module a call, and torch's own stay calls."""
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2)).eval()
    captured = clew.trace(model, (torch.randn(3, 4),), leaves=[None, "0"])
    captured.wrap_module("0", lambda base: nn.Sequential(base, nn.Tanh()))
    x = torch.randn(3, 4)
    torch.testing.assert_close(captured(x), model[1](torch.tanh(model[0](x))))
    assert [node.target for node in captured.graph.find_nodes(op="call_module")] == ["0", "1"]
