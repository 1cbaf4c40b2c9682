"""Deep copies, shallow copies and pickles of graph modules and graph functions."""

import copy
import io
import operator
import pickle
import random
from typing import Any

import numpy
import pytest
import torch

import clew

from .models import Block, Custom, Special, Tied, double_output, small_graph


def saved_and_loaded(module):
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "old-pickle": lambda module: pickle.loads(pickle.dumps(module, protocol=2)),
    "save": saved_and_loaded,
}
X = torch.randn(4, 3)


@pytest.fixture(params=COPIES.values(), ids=COPIES)
def duplicate(request):
    return request.param


@pytest.mark.parametrize("kind", [Block, Tied])
def test_a_copy_computes_the_same_and_is_its_own(duplicate, kind):
    traced = clew.symbolic_trace(kind()).eval()
    expected = traced(X)
    twin = duplicate(traced)
    assert torch.equal(twin(X), expected)
    assert type(twin).__name__ == kind.__name__ and not twin.training
    assert twin.state_dict().keys() == traced.state_dict().keys()
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    assert torch.equal(traced(X), expected)
    twin.graph.output_node().args = (3,)
    assert twin(X) == 3
    assert torch.equal(traced(X), expected)


def test_ties_and_buffers_are_kept(duplicate):
    twin = duplicate(clew.symbolic_trace(Tied()))
    assert twin.first.weight is twin.second.weight
    block = duplicate(clew.symbolic_trace(Block()))
    assert "hidden" not in block.state_dict() and "shift" in block.state_dict()
    assert dict(block.named_buffers()).keys() >= {"hidden", "shift"}


def test_hooks_and_other_attributes_are_kept(duplicate):
    traced = clew.symbolic_trace(Block()).eval()
    plain = traced(X)
    traced.register_forward_hook(double_output)
    traced.note = {"a": [1]}
    traced.meta["b"] = 2
    twin = duplicate(traced)
    assert torch.equal(twin(X), plain * 2)
    assert twin.note == {"a": [1]} and twin.meta == {"b": 2}


def test_a_subclass_stays_one(duplicate):
    module = Special({}, small_graph(), "Mine")
    twin = duplicate(module)
    assert isinstance(twin, Special) and twin.greet() == "I am Mine"
    assert type(twin) is not type(module)
    assert isinstance(duplicate(twin), Special)


def test_graph_modules_in_graph_modules(duplicate):
    inner = clew.symbolic_trace(Block()).eval()
    graph = clew.Graph()
    graph.output(graph.call_module("inner", (graph.placeholder("x"),)))
    outer = clew.GraphModule({"inner": inner}, graph)
    twin = duplicate(outer)
    twin.inner.graph.output_node().args = (7,)
    assert twin(X) == 7
    assert torch.equal(outer(X), inner(X))


def test_a_module_that_refers_to_itself(duplicate):
    module = clew.GraphModule({}, small_graph())
    module.meta["me"] = module
    twin = duplicate(module)
    assert twin.meta["me"] is twin
    assert twin(torch.tensor(3.0)) == 8


def test_nests_are_kept(duplicate):
    traced = clew.symbolic_trace(lambda x, y=2: [x["a"] * y], concrete_args={"x": {"a": clew.PH}})
    twin = duplicate(traced)
    assert twin({"a": 3}) == [6] and twin({"a": 3}, 5) == [15]


def test_before_and_after_the_first_call(duplicate):
    module = clew.GraphModule({}, small_graph())
    twin = duplicate(module)
    again = duplicate(twin)
    assert module(torch.tensor(3.0)) == twin(torch.tensor(3.0)) == again(torch.tensor(3.0)) == 8
    assert module.code == twin.code == again.code


def test_code_depends_on_the_graph_alone(duplicate):
    module = clew.GraphModule({}, small_graph())
    graph = module.graph
    with graph.inserting_before(graph.output_node()):
        gone = [graph.create_node("call_function", abs, (1,), {}, name) for name in ("torch", "operator")]
        graph.call_function(operator.truth, (1,))
    for node in gone:
        graph.erase_node(node)
    assert duplicate(module).code == module.code
    assert "import operator\n" in module.code


def test_a_shallow_copy_shares_everything():
    traced = clew.symbolic_trace(Block()).eval()
    twin = copy.copy(traced)
    assert twin.graph is traced.graph
    assert twin.linear is traced.linear and twin.weight is traced.weight
    assert torch.equal(twin(X), traced(X))
    traced.graph.output_node().args = (3,)
    assert twin(X) == traced(X) == 3


def test_the_root_may_have_been_wrapped_already():
    graph = clew.Graph()
    graph.output(graph.call_module("leaf", (graph.placeholder("x"),)))
    module = clew.GraphModule({"leaf": Custom(3)}, graph)
    assert clew.GraphModule(module, copy.deepcopy(graph))(2) == 6
    assert clew.GraphModule(module, graph).leaf is module.leaf


def test_a_subclass_called_like_the_generated_classes():
    class GraphModuleImpl(clew.GraphModule):
        def extra(self):
            return 5

    module = GraphModuleImpl({}, small_graph())
    assert copy.deepcopy(module).extra() == 5
    assert module(torch.tensor(3.0)) == 8


class Root:
    """A root that is no module."""

    def __init__(self):
        self.scale = [3]


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_graph_functions(how):
    graph = clew.Graph()
    graph.output(graph.call_function(operator.mul, (graph.placeholder("x"), graph.get_attr("scale"))))
    function = clew.GraphFunction(Root(), graph, "repeat")
    assert function(2) == [3, 3]
    twin = COPIES[how](function)
    twin.root.scale.append(4)
    assert twin(1) == [3, 4] and function(1) == [3]
    assert twin.__name__ == "repeat" and twin.code == function.code


AROUND = torch.zeros(2)


def writes_around(x: torch.Tensor) -> torch.Tensor:
    AROUND.add_(1)
    return x + AROUND


class WritesAround(torch.nn.Module):
    """Writes to a buffer of its own, and to a tensor that is none of its parts."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("own", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.own.add_(1)
        return writes_around(x) + self.own


@pytest.mark.parametrize("program", [writes_around, WritesAround()])
def test_a_copy_writes_to_the_tensors_around_the_program_itself(program: Any) -> None:
    captured = clew.trace(program, args=(torch.ones(2),))
    AROUND.zero_()
    twin = copy.deepcopy(captured)
    twin(torch.ones(2))
    captured(torch.ones(2))
    assert AROUND.tolist() == [2.0, 2.0]
    if isinstance(program, WritesAround):
        assert twin.own.tolist() == captured.own.tolist() == [1.0, 1.0]


class Holding(torch.nn.Module):
    """Keeps something besides parameters, which its graph uses: an optimizer, a generator, an array."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(3, 3)


class Learning(Holding):
    def __init__(self) -> None:
        super().__init__()
        self.optimizer = torch.optim.SGD(self.layer.parameters(), lr=0.1, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)

    def forward(self, x: torch.Tensor) -> Any:
        self.optimizer.zero_grad()
        loss = self.layer(x).pow(2).mean()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.item()


class Drawing(Holding):
    def __init__(self) -> None:
        super().__init__()
        self.of_torch, self.of_python = torch.Generator().manual_seed(3), random.Random(3)
        self.of_numpy = numpy.random.default_rng(3)

    def forward(self, x: torch.Tensor) -> Any:
        noise = torch.rand(3, generator=self.of_torch)
        return self.layer(x) + noise * self.of_python.random() * self.of_numpy.random()


class Counting(Holding):
    def __init__(self) -> None:
        super().__init__()
        self.array = numpy.zeros(3, dtype="float32")

    def forward(self, x: torch.Tensor) -> Any:
        self.array += 1
        return self.layer(x) + torch.from_numpy(self.array)


class InAList(Holding):
    def __init__(self) -> None:
        super().__init__()
        self.layers = [torch.nn.Linear(3, 3)]

    def forward(self, x: torch.Tensor) -> Any:
        return self.layers[0](self.layer(x))


@pytest.mark.parametrize("kind", [Learning, Drawing, Counting, InAList])
@pytest.mark.parametrize("calls", [0, 1])
def test_a_deep_copy_has_what_the_module_holds_for_itself(kind: Any, calls: int) -> None:
    inputs = [torch.full((2, 3), float(place)) for place in range(4)]
    results = []
    for module in (kind(), clew.trace(kind(), args=(torch.ones(2, 3),))):
        given = [module(x) for x in inputs[:calls]]
        twin = copy.deepcopy(module)
        given += [twin(inputs[1]), module(inputs[2]), twin(inputs[3]), module(inputs[1])]
        results.append([torch.as_tensor(one) for one in given])
    assert all(torch.allclose(*pair) for pair in zip(*results, strict=True))


def test_a_copy_of_a_layer_in_a_list_is_its_own() -> None:
    original = InAList()
    captured = clew.trace(original, args=(torch.ones(2, 3),))
    twin, expected = copy.deepcopy(captured), original(torch.ones(2, 3))
    with torch.no_grad():
        original.layers[0].weight.zero_()
    assert torch.equal(twin(torch.ones(2, 3)), expected)
    assert torch.equal(captured(torch.ones(2, 3)), original(torch.ones(2, 3)))


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> Any:
        return self.inner(x)


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        return x * self.calls


def test_a_shallow_copy_shares_the_state_of_parts() -> None:
    for module in (Outer(), clew.trace(Outer(), args=(torch.ones(2),))):
        twin = copy.copy(module)
        module(torch.ones(2))
        assert twin(torch.ones(2)).tolist() == [2.0, 2.0]
