"""Captures as modules of torch.fx: nested graphs, state, guards; copies, and the passes that torch.fx has for them."""

import copy
import pickle

import pytest
import torch
import torch.fx
from torch import nn
from torch.fx.experimental.optimization import fuse
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.split_module import split_module

import clew


class Residual(nn.Module):
    """Convolutions, a norm, a mode, a sum."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.head = nn.Linear(3, 4)

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        return self.head((x + y).mean((2, 3)))


class Switching(nn.Module):
    """Parts that only branches use, one of them plain state."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.shift = nn.Parameter(torch.ones(3))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if x.sum() > 0:
            x = self.first(x) + self.shift
        else:
            x = self.second(x) * self.calls
        return x * 2 if self.training else x


def looping(x, times):
    for _ in range(times):
        if x.sum() > 0:
            x = x - 1
        else:
            x = x + 2
    while x.sum() > -4:
        x = x - 1
    return {"x": x, "none": None}


def feed():
    return torch.linspace(-1, 2, 6).reshape(2, 3)


def images():
    return torch.linspace(-1, 1, 2 * 3 * 4 * 4).reshape(2, 3, 4, 4)


COPIES = {
    "itself": lambda module: module,
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "plain": lambda module: torch.fx.GraphModule(module, module.graph),
}
COPIED = pytest.mark.parametrize("how", COPIES)


@COPIED
def test_loops_and_branches_run(how):
    module = COPIES[how](clew.to_fx(clew.trace(looping, (feed(), 2), dynamic=True)))
    module.graph.lint()
    for x, times in ((feed(), 2), (-feed(), 4), (feed(), 0)):
        torch.testing.assert_close(module(x, times), looping(x, times))


@pytest.mark.parametrize("how", ["itself", "deepcopy", "pickle"])
def test_branches_share_the_state_of_their_module(how):
    model = Switching()
    module = COPIES[how](clew.to_fx(clew.trace(copy.deepcopy(model), (feed(),))))
    for sign in (1, -1, 1, -1):
        torch.testing.assert_close(module(sign * feed()), model(sign * feed()))
    assert module.calls == model.calls == 4
    for one in (module, model):
        one.eval()
        with torch.no_grad():
            one.shift.add_(1)
            one.second.weight.mul_(2)
    for sign in (1, -1):
        torch.testing.assert_close(module(sign * feed()), model(sign * feed()))


@pytest.mark.parametrize("make", [lambda: (looping, (feed(), 2)), lambda: (Switching(), (feed(),))])
def test_nested_graphs_come_back(make):
    program, args = make()
    captured = clew.trace(program, args, dynamic=True)
    again = clew.from_fx(clew.to_fx(captured))
    assert clew.same_graph(again.graph, captured.graph)
    assert [str(one) for one in again.guards] == [str(one) for one in captured.guards]
    torch.testing.assert_close(again(*args), captured(*args))


def test_an_edit_of_a_body_comes_back():
    module = clew.to_fx(clew.trace(looping, (feed(), 2), dynamic=True))
    for part in module.modules():
        for node in part.graph.nodes:
            if node.op == "call_function" and node.args[1:] == (2,):
                node.args = (node.args[0], 5)
        part.recompile()
    changed = module(-feed(), 1)
    torch.testing.assert_close(clew.from_fx(module)(-feed(), 1), changed)
    assert not torch.equal(changed["x"], looping(-feed(), 1)["x"])


def test_script_functions_are_called():
    scripted = torch.jit.script(torch.nn.functional.hardtanh)
    captured = clew.trace(lambda x: scripted(x * 2) + 1, (feed(),))
    module = clew.to_fx(captured)
    torch.testing.assert_close(module(feed()), captured(feed()))
    assert clew.same_graph(clew.from_fx(module).graph, captured.graph)


@pytest.mark.parametrize("how", ["itself", "deepcopy", "pickle"])
def test_guards_are_checked(how):
    module = COPIES[how](clew.to_fx(clew.trace(Residual().eval(), (images(),))))
    module(images())
    with pytest.raises(clew.GuardError, match="type"):
        module(nn.Parameter(images()))


def test_guards_come_back_after_a_pass_of_torch():
    module = clew.to_fx(clew.trace(Residual().eval(), (images(),)))
    plain = torch.fx.GraphModule(module, module.graph)
    plain(nn.Parameter(images()))
    with pytest.raises(clew.GuardError, match="type"):
        clew.from_fx(plain)(nn.Parameter(images()))


def test_a_module_is_traced_and_compiled_with_its_guards():
    model = Residual().eval()
    module = clew.to_fx(clew.trace(model, (images(),)))
    expected = model(images())
    torch.testing.assert_close(torch.fx.symbolic_trace(nn.Sequential(module))(images()), expected)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(module, backend="eager")(images()), expected)


def test_passes_of_torch():
    model = Residual().eval()
    module = clew.to_fx(clew.trace(model, (images(),)))
    expected = model(images())
    torch.testing.assert_close(torch.fx.Interpreter(module).run(images()), expected)
    torch.testing.assert_close(torch.fx.Transformer(module).transform()(images()), expected)
    ShapeProp(module).propagate(images())
    assert all("tensor_meta" in node.meta for node in module.graph.nodes)
    halves = {node: place > 3 for place, node in enumerate(module.graph.nodes)}
    torch.testing.assert_close(split_module(module, module, lambda node: int(halves[node]))(images()), expected)
    fused = fuse(module)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in fused.modules())
    torch.testing.assert_close(fused(images()), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_quantizers_of_torch():
    from torch.ao.quantization import get_default_qconfig_mapping
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    model = Residual().eval()
    module = clew.to_fx(clew.trace(model, (images(),)))
    prepared = prepare_fx(module, get_default_qconfig_mapping("x86"), (images(),))
    torch.testing.assert_close(prepared(images()), model(images()), atol=1e-5, rtol=1e-5)
    quantized = convert_fx(prepared)
    torch.testing.assert_close(quantized(images()), model(images()), atol=0.1, rtol=0.1)


def test_the_interpreter_of_torch_checks_no_guards():
    def program(x):
        return x * 2 if x.shape[0] > 3 else x - 1

    module = clew.to_fx(clew.trace(program, (torch.ones(5),), control_flow="guard"))
    with pytest.raises(clew.GuardError, match=r"x.shape\[0\] > 3"):
        module(torch.ones(2))
    assert torch.equal(torch.fx.Interpreter(module).run(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(clew.GuardError, match=r"x.shape\[0\] > 3"):
        clew.Interpreter(clew.from_fx(module)).run(torch.ones(2))
