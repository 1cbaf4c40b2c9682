"""Parts of captured programs compute what the whole has at the same place, with its parameters and no more."""

from __future__ import annotations

import pickle

import pytest
import torch
from torch import nn

import clew
from clew.errors import GraphError
from examples.models.resnet import resnet18
from tests.tools.surgery_models import MODELS, hooked, tensors_of


@pytest.mark.parametrize("name", MODELS)
def test_every_module_of_real_models(name):
    model, kwargs = MODELS[name]()
    captured = clew.trace(model, kwargs=kwargs)
    wanted = hooked(model, kwargs)
    with torch.no_grad():
        together = clew.extract(captured, {key: key for key in wanted})(**kwargs)
        for key, value in wanted.items():
            torch.testing.assert_close(tensors_of(together[key]), tensors_of(value))
        for key in list(wanted)[::4]:
            part = clew.extract(captured, key)
            torch.testing.assert_close(tensors_of(part(**kwargs)), tensors_of(wanted[key]))
            assert len(part.graph.nodes) <= len(captured.graph.nodes)


@pytest.fixture(scope="module")
def resnet():
    torch.manual_seed(0)
    model, x = resnet18(4, 10).eval(), torch.randn(2, 3, 32, 32)
    return model, x, clew.trace(model, (x,))


def test_only_what_is_needed_stays(resnet):
    model, x, captured = resnet
    part = clew.extract(captured, "layer1")
    assert {key.partition(".")[0] for key in part.state_dict()} == {"conv1", "bn1", "layer1"}
    assert all(value is model.state_dict(keep_vars=True)[key] for key, value in part.state_dict(keep_vars=True).items())
    assert isinstance(part, nn.Module) and not hasattr(part, "layer2")
    assert torch.equal(pickle.loads(pickle.dumps(part))(x), part(x))


def test_a_part_with_inputs_of_its_own(resnet):
    model, x, captured = resnet
    head = clew.extract(captured, ["layer4", "fc"], inputs=["layer2"])
    assert [node.name for node in head.graph.find_nodes(op="placeholder")] == ["layer2"]
    with captured.record("layer2", "layer4") as values:
        result = captured(x)
    layer4, logits = head(values["layer2"])
    torch.testing.assert_close(logits, result)
    torch.testing.assert_close(layer4, values["layer4"])
    assert [str(one) for one in head.assumed] == ["type(x) is Tensor"]
    assert {one.kind for one in head.guards} <= {"code"}


def test_guards_stay_with_a_part_that_has_the_inputs(resnet):
    _, x, captured = resnet
    part = clew.extract(captured, "layer1")
    assert [str(one) for one in part.guards] == [str(one) for one in captured.guards] and part.assumed == ()
    with pytest.raises(clew.GuardError):
        part(x.numpy())


class Writing(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        y = self.linear(x)
        view = y[:, 0]
        view.zero_()
        with torch.no_grad():
            scale = y.abs().mean()
        return self.norm(y) * scale


def test_writes_and_blocks_that_matter_stay():
    model, x = Writing(), torch.randn(3, 4)
    captured = clew.trace(model, (x,))
    before, norm = clew.extract(captured, ["linear", "norm"])(x)
    torch.testing.assert_close(before, model.linear(x))
    torch.testing.assert_close(norm, model.norm(model.linear(x) * torch.tensor([0.0, 1, 1, 1])))
    alone = clew.extract(captured, "linear")
    assert "zero_" not in alone.code
    assert "no_grad" not in clew.extract(captured, "norm").code
    scale = clew.extract(captured, "scale")
    assert "with torch.no_grad():" in scale.code and not scale(x).requires_grad and torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("outputs", "inputs", "text"),
    [
        ("layer9", None, r"no node of the module 'layer9'[\s\S]*nearest[^\n]*layer"),
        ("fc", ["nothing"], "no node of the module 'nothing'"),
        ("layer1", ["layer2"], r"the part also needs 'x'[\s\S]*resnet.py[\s\S]*inputs=\[..., 'x'\]"),
        (5, None, "names nothing"),
        ([], None, "names nothing"),
        (("layer1", 2), None, "no call 2 of the module 'layer1'"),
    ],
)
def test_mistakes_are_told(resnet, outputs, inputs, text):
    with pytest.raises(GraphError, match=text):
        clew.extract(resnet[2], outputs, inputs=inputs)


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:
            x = self.linear(x)
        return self.last(x)


def test_a_module_inside_of_a_branch_is_refused():
    model, x = Branching(), torch.ones(2, 4)
    captured = clew.trace(model, (x,))
    with pytest.raises(GraphError, match=r"'linear' is called inside of a branch[\s\S]*control_flow=\"guard\""):
        clew.extract(captured, "linear")
    torch.testing.assert_close(clew.extract(captured, "last")(-x), model.last(-x))


def test_functions_and_symbolic_traces():
    layer, x = nn.Linear(4, 4), torch.randn(2, 4)

    def program(x):
        hidden = layer(x).relu()
        return hidden.sum()

    function = clew.extract(clew.trace(program, (x,)), "hidden")
    torch.testing.assert_close(function(x), layer(x).relu())
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    part = clew.extract(clew.symbolic_trace(model), "2", inputs=["1"])
    torch.testing.assert_close(part(x), model[2](x))
    assert list(part.state_dict()) == ["2.weight", "2.bias"]


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

    def forward(self, x):
        return self.block(self.drop(self.block(x)))


def test_calls_of_a_shared_module_by_number():
    model, x = Twice().eval(), torch.randn(2, 4)
    both = clew.extract(clew.trace(model, (x,)), ["block", ("block", 2)])
    first, second = both(x)
    torch.testing.assert_close(first, model.block(x))
    torch.testing.assert_close(second, model.block(first))


def test_features_in_both_modes():
    torch.manual_seed(0)
    model, x = resnet18(4, 10).eval(), torch.randn(2, 3, 32, 32)
    extractor = clew.feature_extractor(model, ["layer*", "avgpool"], args=(x,))
    assert list(extractor(x)) == ["layer1", "layer2", "layer3", "layer4", "avgpool"]
    for mode in (True, False):
        extractor.train(mode)
        model.train(mode)
        seen = {}
        keep = {name: lambda module, args, output, name=name: seen.update({name: output}) for name in extractor(x)}
        hooks = [getattr(model, name).register_forward_hook(hook) for name, hook in keep.items()]
        state = {key: value.clone() for key, value in model.state_dict().items()}
        model(x)
        model.load_state_dict(state)
        for name, value in extractor(x).items():
            torch.testing.assert_close(value, seen[name])
        for hook in hooks:
            hook.remove()


def test_features_are_trained_through():
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), torch.randn(2, 4)
    clew.feature_extractor(model, {"hidden": "1"}, args=(x,))(x)["hidden"].sum().backward()
    assert model[0].weight.grad is not None and model[2].weight.grad is None
