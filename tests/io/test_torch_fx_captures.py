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
import clew.fx


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


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.conv = nn.Conv2d(3, 3, 1)

    def forward(self, x):
        self.calls += 1
        return self.conv(x) * self.calls + x


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
    for part in [part for part in module.modules() if isinstance(part, torch.fx.GraphModule)]:
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


def halves(module):
    places = {node: place > 3 for place, node in enumerate(module.graph.nodes)}
    return split_module(module, module, lambda node: int(places[node]))


def prepared(module):
    from torch.ao.quantization import QConfigMapping
    from torch.ao.quantization.quantize_fx import prepare_fx

    return prepare_fx(module, QConfigMapping(), (images(),))


def without_dead_code(module):
    made = torch.fx.GraphModule(module, copy.deepcopy(module.graph))
    made.graph.eliminate_dead_code()
    made.recompile()
    return made


MADE = {
    **COPIES,
    "interpreted": lambda module: torch.fx.Interpreter(module).run,
    "transformed": lambda module: torch.fx.Transformer(module).transform(),
    "traced again": torch.fx.symbolic_trace,
    "traced as a part": lambda module: torch.fx.symbolic_trace(nn.Sequential(nn.Identity(), module)),
    "split": halves,
    "prepared": prepared,
    "prepared and copied": lambda module: copy.deepcopy(prepared(module)),
    "without dead code": without_dead_code,
    "back": clew.from_fx,
    "prepared and back": lambda module: clew.from_fx(prepared(module)),
    "traced by Clew": lambda module: clew.fx.symbolic_trace(module),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", MADE)
def test_guards_are_checked(how):
    captured = clew.trace(Residual().eval(), (images(),))
    made = MADE[how](clew.to_fx(captured))
    torch.testing.assert_close(made(images()), captured(images()))
    with pytest.raises(clew.GuardError, match="type"):
        made(nn.Parameter(images()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("trace", [torch.fx.symbolic_trace, prepared, clew.fx.symbolic_trace])
def test_what_proxies_cannot_run_through_is_traced_again(trace):
    model = Switching()
    captured = clew.trace(copy.deepcopy(model), (feed(),), dynamic=True)
    made = trace(captured if trace is clew.fx.symbolic_trace else clew.to_fx(captured))
    for x in (feed(), -feed(), feed(), -feed()):
        torch.testing.assert_close(made(x), model(x))
    if trace is not prepared:
        back = made if trace is clew.fx.symbolic_trace else clew.from_fx(made)
        assert clew.same_graph(back.graph, captured.graph)
        assert [str(one) for one in back.graph.guards] == [str(one) for one in captured.guards]


@pytest.mark.parametrize("how", ["plain", "transformed", "traced again", "split", "prepared and copied"])
def test_state_is_read_where_it_is_written(how):
    model = Counting()
    made = MADE[how](clew.to_fx(clew.trace(copy.deepcopy(model), (images(),))))
    for _ in range(3):
        torch.testing.assert_close(made(images()), model(images()))


def test_a_trace_with_a_fixed_argument_checks_its_guards_at_once():
    def program(x, scale):
        return x * 2 if scale is None else x * scale * x.shape[0]

    class Scaling(nn.Module):
        def forward(self, x, scale):
            return program(x, scale)

    captured = clew.trace(Scaling(), (feed(), None), control_flow="guard")
    with pytest.raises(clew.GuardError, match="scale is None"):
        clew.fx.symbolic_trace(captured, concrete_args={"scale": 3.0})
    made = clew.fx.symbolic_trace(captured, concrete_args={"scale": None})
    torch.testing.assert_close(made(feed(), None), feed() * 2)


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
    assert [node.name for node in module.graph.nodes if "tensor_meta" not in node.meta] == ["_clew_guards"]
    torch.testing.assert_close(halves(module)(images()), expected)
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


def test_the_interpreter_of_torch_checks_guards():
    def program(x):
        return x * 2 if x.shape[0] > 3 else x - 1

    module = clew.to_fx(clew.trace(program, (torch.ones(5),), control_flow="guard"))
    for run in (module, torch.fx.Interpreter(module).run, clew.Interpreter(clew.from_fx(module)).run):
        with pytest.raises(clew.GuardError, match=r"x.shape\[0\] > 3"):
            run(torch.ones(2))
