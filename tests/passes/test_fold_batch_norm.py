"""Batch norm folding: one layer for two, equal in evaluation mode, refused in training."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew
from tests.passes.programs import lines, same_as, targets

PAIRS = {
    "conv1d": (nn.Conv1d(4, 6, 3, groups=2), nn.BatchNorm1d(6), (2, 4, 9)),
    "conv2d": (nn.Conv2d(4, 6, 3, bias=False, stride=2), nn.BatchNorm2d(6), (2, 4, 9, 9)),
    "conv3d": (nn.Conv3d(2, 3, 2), nn.BatchNorm3d(3, affine=False), (2, 2, 4, 4, 4)),
    "transposed1d": (nn.ConvTranspose1d(4, 6, 3, groups=2), nn.BatchNorm1d(6), (2, 4, 9)),
    "transposed2d": (nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False), nn.BatchNorm2d(6), (2, 4, 5, 5)),
    "transposed3d": (nn.ConvTranspose3d(2, 3, 2), nn.BatchNorm3d(3), (2, 2, 4, 4, 4)),
    "linear": (nn.Linear(4, 6, bias=False), nn.BatchNorm1d(6), (5, 4)),
}


def trained(model, x):
    """The model with statistics and weights that are not those of a new one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.rand_like(parameter))
        for _ in range(3):
            model.train()(torch.randn_like(x) * 2 + 1)
    return model.eval()


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_pairs(name, symbolic):
    layer, norm, shape = copy.deepcopy(PAIRS[name])
    x = torch.randn(shape)
    model = trained(nn.Sequential(layer, norm, nn.ReLU()), x)
    before = copy.deepcopy(model.state_dict())
    captured = clew.symbolic_trace(model) if symbolic else clew.trace(model, (x,))
    assert clew.fold_batch_norm(captured) is captured
    captured.graph.lint()
    assert [node.target for node in captured.graph.nodes if node.op == "call_module"] == ["0", "2"]
    same_as(captured, model, (x,), tolerance=1e-5)
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    torch.testing.assert_close(captured.double()(x.double()).float(), model(x), rtol=1e-5, atol=1e-5)


def test_golden():
    layer, norm, shape = copy.deepcopy(PAIRS["linear"])
    x = torch.randn(shape)
    captured = clew.fold_batch_norm(clew.trace(trained(nn.Sequential(layer, norm), x), (x,)))
    assert lines(captured) == [
        "%getattr_1 = function builtins.getattr(%input_1, 'ndim')",
        "%guard = function clew.guard(%getattr_1, 2)",
        "%_1: f32[5, 6] = module '0'(%input_1)",
        "return %_1",
    ]
    assert list(captured.state_dict()) == ["0.weight", "0.bias"]


def test_training_is_refused():
    layer, norm, shape = copy.deepcopy(PAIRS["conv2d"])
    x = torch.randn(shape)
    captured = clew.fold_batch_norm(clew.trace(trained(nn.Sequential(layer, norm), x), (x,)))
    captured.train()
    with pytest.raises(clew.GuardError, match=r"not self\[0\]\.training"):
        captured(x)
    captured.eval()
    captured(x)


@pytest.mark.parametrize("name", ["linear", "conv1d"])
def test_another_rank_is_refused(name):
    """A batch norm takes another axis for the channels there, without an error if the sizes are alike."""
    layer, x, other = {
        "linear": (nn.Linear(4, 4), torch.randn(3, 4), torch.randn(3, 4, 4)),
        "conv1d": (nn.Conv1d(4, 4, 1), torch.randn(3, 4, 4), torch.randn(4, 4)),
    }[name]
    model = nn.Sequential(layer, nn.BatchNorm1d(4))
    captured = clew.fold_batch_norm(clew.symbolic_trace(trained(model, x)))
    torch.testing.assert_close(captured(x), model(x), rtol=1e-5, atol=1e-5)
    model(other)
    with pytest.raises(clew.GuardError):
        captured(other)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

    def twice(self, x):
        return self.norm(self.conv(self.norm(self.conv(x))))

    def used_elsewhere(self, x):
        y = self.conv(x)
        return self.norm(y) + y

    def weight_read(self, x):
        return self.norm(self.conv(x)) + self.conv.weight.sum()


@pytest.mark.parametrize("way", ["twice", "used_elsewhere", "weight_read"])
def test_what_cannot_be_folded_stays(way):
    x = torch.randn(2, 3, 4, 4)
    model = Shared()
    model.forward = getattr(model, way)
    trained(model, x)
    captured = clew.fold_batch_norm(clew.symbolic_trace(model))
    assert "norm" in targets(captured)
    torch.testing.assert_close(captured(x), model(x), rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["hook", "backward hook", "no statistics", "training", "two dtypes"])
def test_modules_that_do_not_fit(kind):
    model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3, track_running_stats=kind != "no statistics"))
    model.train(kind == "training")
    if kind == "hook":
        model[0].register_forward_hook(lambda *_: None)
    if kind == "backward hook":
        model[1].register_full_backward_hook(lambda *_: None)
    if kind == "two dtypes":
        model[0].double()
    assert targets(clew.fold_batch_norm(clew.symbolic_trace(model))) == ["0", "1"]


class Whole(nn.Module):
    """A leaf that is called, and a part of it that is called too."""

    def __init__(self):
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))

    def forward(self, x):
        return self.block(x) + self.block[1](self.block[0](x))


def test_the_original_stays_as_it_is():
    x = torch.rand(2, 3, 4, 4)
    model = trained(Whole(), x)
    graph = clew.Graph()
    value = graph.placeholder("x")
    first = graph.call_module("block", (value,))
    second = graph.call_module("block.1", (graph.call_module("block.0", (value,)),))
    graph.output(graph.call_function(torch.add, (first, second)))
    before = [*model.block]
    captured = clew.fold_batch_norm(clew.GraphModule(model, graph))
    assert [*model.block] == before
    torch.testing.assert_close(captured(x), model(x), rtol=0, atol=0)


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3))

    def forward(self, x):
        if x.sum() > 0:
            x = self.first(x)
        return x


def test_inside_of_branches():
    x = torch.rand(2, 3, 4, 4)
    model = trained(Branch(), x)
    captured = clew.fold_batch_norm(clew.trace(model, (x,)))
    body = captured.graph.find_nodes(op="call_function", target=clew.cond)[0].args[1]
    assert [node.target for node in body.find_nodes(op="call_module")] == ["first.0"]
    same_as(captured, model, (x,), tolerance=1e-5)
    same_as(captured, model, (-x,), tolerance=1e-5)


# ---- functional calls ------------------------------------------------------------------------------------------------

CALLS = {
    "conv": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (2, 3, 6, 6)),
    "without bias": (lambda: nn.Sequential(nn.Conv2d(4, 4, 3, bias=False, groups=2), nn.BatchNorm2d(4)), (2, 4, 6, 6)),
    "plain norm": (lambda: nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4, affine=False)), (2, 3, 6)),
    "linear": (lambda: nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), (5, 3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_functional_calls(name):
    make, shape = CALLS[name]
    model, x = make(), torch.randn(shape)
    for _ in range(3):
        model(torch.randn(shape) * 2 + 1)
    captured = clew.inline_modules(clew.trace(model.eval(), (x,)))
    clew.fold_batch_norm(captured)
    captured.graph.lint()
    assert "batch_norm" not in targets(captured)
    torch.testing.assert_close(captured(x), model(x), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        captured.get_parameter("0.weight").mul_(2)  # which it shares with the original
        captured.get_buffer("1.running_mean").add_(1)
    torch.testing.assert_close(captured(x), model(x), rtol=1e-4, atol=1e-5)
    captured(x).sum().backward()
    assert captured.get_parameter("0.weight").grad is not None


class WrittenBefore(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

    def forward(self, x):
        hidden = F.conv2d(x, self.conv.weight, self.conv.bias)
        self.norm.running_mean.add_(1)
        return F.batch_norm(hidden, self.norm.running_mean, self.norm.running_var, self.norm.weight, self.norm.bias)


def test_statistics_that_the_program_writes_stay():
    model, x = WrittenBefore().eval(), torch.randn(1, 3, 5, 5)
    captured = clew.fold_batch_norm(clew.trace(copy.deepcopy(model), (x,)))
    assert "batch_norm" in targets(captured)
    torch.testing.assert_close(captured(x), model(x))


def test_a_linear_call_of_another_rank_is_refused():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).eval()
    captured = clew.fold_batch_norm(clew.inline_modules(clew.trace(model, (torch.randn(5, 3),))))
    with pytest.raises(clew.GuardError, match="ndim"):
        captured(torch.randn(5, 4, 3))
