"""Quantization: observers are put in, calls calibrate, layers get weights of 8 bits; the original keeps its own."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew
from clew.passes.quantize import Int8Convolution, Int8Linear, RangeObserver


class Net(nn.Module):
    """Layers as modules and as calls, one of them called twice, one inside of a branch."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, stride=2)
        self.shared, self.head = nn.Linear(8, 8), nn.Linear(8, 4)
        self.weight, self.bias = nn.Parameter(torch.randn(8, 8) / 3), nn.Parameter(torch.randn(8))

    def forward(self, x):
        x = torch.relu(self.conv(x)).mean((2, 3))
        x = x + self.shared(torch.tanh(self.shared(x)))
        x = torch.addmm(self.bias, x, self.weight)
        if x.sum() > 1000:
            return self.head(x / 1000)
        return self.head(x)


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net().eval(), torch.randn(16, 3, 8, 8)


def near(actual, expected, share=0.05):
    return bool((actual - expected).norm() <= share * expected.norm())


def test_observers_are_put_in_and_calibrate(net):
    model, x = net
    captured = clew.insert_observers(clew.trace(model, (x,)))
    with torch.no_grad():
        assert torch.equal(captured(x), model(x))
    seen = captured.observer_conv
    assert isinstance(seen, RangeObserver) and (seen.minimum, seen.maximum) == (x.min(), x.max())
    text = clew.to_text(captured.graph)
    assert clew.to_text(clew.insert_observers(captured).graph) == text  # a second time there is nothing to do
    assert "%observer_conv: f32[16, 3, 8, 8] = module observer_conv(%x)" in text
    assert "module conv(%observer_conv)" in text and len(list(captured.graph.find(op=RangeObserver))) == 6


@pytest.mark.parametrize("way", ["weights", "dynamic", "observed"])
def test_layers_have_weights_of_8_bits(net, way):
    model, x = net
    captured = clew.trace(model, (x,))
    with torch.no_grad():
        expected = model(x)
        if way == "observed":
            clew.insert_observers(captured)(x)
        clew.quantize(captured, dynamic=way == "dynamic")
        captured.graph.lint()
        result = captured(x)
        assert near(result, expected) and not torch.equal(result, expected)
        assert near(captured(x[:3] * 0.9), model(x[:3] * 0.9))
        for twin in (copy.deepcopy(captured), pickle.loads(pickle.dumps(captured))):
            assert torch.equal(twin(x), result)
        assert near(copy.deepcopy(captured).double()(x.double()).float(), result, 1e-4)
    kinds = {type(part) for part in captured.modules()}
    assert {Int8Linear, Int8Convolution} <= kinds and RangeObserver not in kinds and nn.Linear not in kinds
    assert captured.head.weight.dtype == captured.int8_weight.weight.dtype == torch.int8
    assert model.head.weight.dtype is torch.float32 and torch.equal(model(x), expected)
    assert "weight" not in captured.state_dict() and "int8_weight.weight" in captured.state_dict()


def test_after_batch_norms_were_folded():
    model = nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU()).eval()
    x = torch.randn(4, 3, 9)
    captured = clew.quantize(clew.fold_batch_norm(clew.trace(model, (x,))))
    with torch.no_grad():
        assert near(captured(x), model(x))
    with pytest.raises(clew.GuardError, match="training"):
        captured.train()(x)


def test_it_is_saved_and_loaded(tmp_path):
    model, x = nn.Sequential(nn.Conv1d(3, 4, 3), nn.Flatten(), nn.Linear(28, 2)).eval(), torch.randn(4, 3, 9)
    captured = clew.insert_observers(clew.trace(model, (x,)))
    for name in ("observed", "quantized"):
        with torch.no_grad():
            expected = captured(x)
            clew.save(captured, tmp_path / name)
            assert torch.equal(clew.load(tmp_path / name)(x), expected)
            clew.quantize(captured)


def test_the_text_afterwards():
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 3)

        def forward(self, x):
            return self.layer(x).relu()

    captured = clew.quantize(clew.trace(Small(), (torch.ones(1, 2),)))
    assert captured.code.strip().splitlines()[-2:] == ["def forward(self, x):", "    return self.layer(x).relu()"]
    assert "in steps" not in repr(captured.layer) and "inputs as they are" in repr(captured.layer)


def test_scales_are_those_of_rows_and_zero_is_exact():
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[127.0, 1, -3, 0], [0.127, 0.001, -0.05, 0.1]]))
    quantized = Int8Linear(layer.weight, layer.bias, (0.0, 5.1), False)
    assert torch.equal(quantized.weight, torch.tensor([[127, 1, -3, 0], [127, 1, -50, 100]], dtype=torch.int8))
    torch.testing.assert_close(quantized(torch.zeros(1, 4)), layer.bias[None])
    torch.testing.assert_close(quantized(torch.full((1, 4), 0.02)), layer(torch.full((1, 4), 0.02)))
    assert torch.equal(quantized(torch.full((1, 4), 9.0)), quantized(torch.full((1, 4), 5.1)))  # outside of the range


def test_patterns_choose_layers(net):
    model, x = net
    captured = clew.quantize(clew.trace(model, (x,)), "shared", "head", skip=["hea*"])
    assert type(captured.shared) is Int8Linear and type(captured.head) is nn.Linear and captured.weight is model.weight


def test_ranges_of_an_observer_that_runs_the_graph(net):
    model, x = net
    captured = clew.trace(model, (x,))
    observer = clew.Observer(captured)
    with torch.no_grad():
        observer.run(x)
        ranges = {**observer.inputs, "head": observer.inputs["head"].quantile(0.999)}
        clew.quantize(captured, ranges=ranges)
        assert captured.conv.step is not None and captured.int8_weight.step is None
        assert near(captured(x), model(x)) and captured.head.zero == 0


def test_what_is_not_plain_stays():
    class Reading(nn.Module):
        def __init__(self):
            super().__init__()
            self.read = nn.Linear(4, 4)
            self.odd = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))

        def forward(self, x):
            return self.odd(self.read(x) * self.read.weight.sum())

    model, x = Reading().eval(), torch.randn(2, 4)
    captured = clew.trace(model, (x,))
    text = clew.to_text(captured.graph)
    clew.quantize(clew.insert_observers(captured))
    assert clew.to_text(captured.graph) == text and torch.equal(captured(x), model(x))


def test_mistakes_are_told(net):
    model, x = net
    with pytest.raises(clew.GraphError, match="have seen nothing yet"):
        clew.quantize(clew.insert_observers(clew.trace(model, (x,))))
    with pytest.raises(clew.GraphError, match="capture the module itself"):
        clew.quantize(clew.trace(lambda x: F.linear(x, model.head.weight), (torch.randn(2, 8),)))


def test_paths_that_choose_nothing_are_told(net):
    model, x = net
    captured = clew.trace(model, (x,))
    for given in [{"skip": ["haed"]}, {"skip": ["head", "nothing.**"]}]:
        with pytest.raises(clew.GraphError, match="is the path of no layer"):
            clew.insert_observers(captured, **given)
        with pytest.raises(clew.GraphError, match="nearest of the graph's modules: .*head"):
            clew.quantize(captured, **given)
    with pytest.raises(clew.GraphError, match="is the path of no layer"):
        clew.quantize(captured, "haed")
    nest = clew.trace(nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.ReLU()), (torch.ones(1, 2),))
    with pytest.raises(clew.GraphError, match=r"0\.\*\* means all layers inside"):
        clew.quantize(nest, skip=["0"])
    clew.quantize(nest, skip=["1", "0.**"])
    assert type(nest.get_submodule("0.0")) is nn.Linear


def test_a_quantized_program_is_verified_within_a_tolerance(net):
    model, x = net
    captured = clew.quantize(clew.trace(model, (x,)))
    assert clew.verify(captured, model, ((x,), {}), atol=0.1, gradients=False)
    assert not clew.verify(captured, model, ((x,), {}), gradients=False)


def test_plain_python_of_a_quantized_program(net, tmp_path):
    model, x = net
    captured = clew.quantize(clew.trace(model, (x,)))
    with pytest.raises(clew.errors.CodegenError, match="capture the program once more"):
        captured.to_python(tmp_path / "whole")
    clew.trace(captured, (x,)).to_python(tmp_path / "entered")
    source = "import sys, torch; sys.modules['clew'] = None; import model; x, y = torch.load('given.pt')\n"
    source += "torch.testing.assert_close(model.load()(x), y)"
    torch.save((x, captured(x).detach()), tmp_path / "entered" / "given.pt")
    command = [sys.executable, "-c", source]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(command, cwd=tmp_path / "entered", env=environment, check=True)


def test_a_transformer_with_tied_weights():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=60, n_positions=16, bos_token_id=0)
    model = transformers.GPT2LMHeadModel(config).eval()
    tokens = torch.randint(0, 60, (2, 8))
    captured = clew.trace(model, kwargs={"input_ids": tokens, "use_cache": False})
    with torch.no_grad():
        clew.insert_observers(captured)(input_ids=tokens, use_cache=False)
        clew.quantize(captured)
        result, expected = (one(input_ids=tokens, use_cache=False).logits for one in (captured, model))
    assert near(result, expected) and captured.transformer.wte.weight is model.transformer.wte.weight
    assert len([part for part in captured.modules() if type(part) is Int8Linear]) == 2 * 4 + 1
