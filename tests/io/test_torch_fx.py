"""Graphs of torch.fx taken in and given back: nothing that both know is lost."""

from __future__ import annotations

import copy
import math
import operator

import pytest
import torch
import torch.fx
from torch import nn

import clew
from clew.codegen.python import PyTreeCodeGen
from clew.errors import InteropError
from clew.io.torch_fx import META_KEY

from .models import MLP, MODELS, SEQUENCE, Attention, Writer


def rows(graph):
    """All that a graph says, in a form that compares across both tools."""
    return [(n.op, n.name, n.target, str(n.args), str(n.kwargs), n.type, list(map(str, n.users))) for n in graph.nodes]


def traced_by_torch(name):
    make, inputs = MODELS[name]
    model = make().eval()
    with torch.no_grad():
        model(*inputs)
    return torch.fx.symbolic_trace(model), inputs


def traced_by_clew(name):
    make, inputs = MODELS[name]
    model = make().eval()
    with torch.no_grad():
        model(*inputs)
    return clew.symbolic_trace(model), inputs


@pytest.mark.parametrize("name", MODELS)
def test_from_torch_and_back(name):
    theirs, inputs = traced_by_torch(name)
    for node in theirs.graph.nodes:
        node.meta["note"] = {"of": node.name}
    ours = clew.from_fx(theirs)
    ours.graph.lint()
    assert rows(ours.graph) == rows(theirs.graph)
    assert type(ours).__name__ == type(theirs).__name__
    torch.testing.assert_close(ours(*inputs), theirs(*inputs), rtol=0, atol=0)
    again = clew.to_fx(ours)
    again.graph.lint()
    assert rows(again.graph) == rows(theirs.graph)
    assert [node.meta for node in again.graph.nodes] == [node.meta for node in theirs.graph.nodes]
    assert again.code == theirs.code
    assert list(again.state_dict()) == list(theirs.state_dict()) == list(ours.state_dict())
    torch.testing.assert_close(again(*inputs), theirs(*inputs), rtol=0, atol=0)


@pytest.mark.parametrize("name", MODELS)
def test_to_torch_and_back(name):
    ours, inputs = traced_by_clew(name)
    theirs = clew.to_fx(ours)
    theirs.graph.lint()
    torch.testing.assert_close(theirs(*inputs), ours(*inputs), rtol=0, atol=0)
    again = clew.from_fx(theirs)
    again.graph.lint()
    assert clew.difference(ours.graph, again.graph) is None
    assert [node.source for node in again.graph.nodes] == [node.source for node in ours.graph.nodes]
    assert [node.meta for node in again.graph.nodes] == [node.meta for node in ours.graph.nodes]
    assert again.graph._tracer_cls is ours.graph._tracer_cls
    assert again.code == ours.code


def test_parameters_are_shared():
    theirs = torch.fx.symbolic_trace(MLP())
    ours = clew.from_fx(theirs)
    again = clew.to_fx(ours)
    for module in (ours, again):
        assert module.scale is theirs.scale and module.shift is theirs.shift
        assert module.get_submodule("layers.0") is theirs.get_submodule("layers.0")


def test_buffers_stay_what_they_were():
    theirs = torch.fx.symbolic_trace(MLP())
    theirs._non_persistent_buffers_set.add("fleeting")
    theirs.constant = torch.ones(4)
    with theirs.graph.inserting_before(theirs.graph.output_node()):
        theirs.graph.create_node("get_attr", "constant")
    ours = clew.from_fx(theirs)
    assert "fleeting" in dict(ours.named_buffers()) and "fleeting" not in ours.state_dict()
    assert "constant" in vars(ours) and ours.constant is theirs.constant
    assert list(dict(ours.named_buffers())) == list(dict(theirs.named_buffers()))


def test_what_the_graph_does_not_use_is_kept():
    theirs = torch.fx.symbolic_trace(MLP())
    theirs.spare = nn.Linear(1, 1)
    theirs.layers.spare = nn.Linear(1, 1)
    theirs.meta["note"] = 1
    theirs.title = "kept"
    ours = clew.from_fx(theirs.eval())
    assert ours.spare is theirs.spare and ours.layers.spare is theirs.layers.spare
    assert ours.meta == {"note": 1} and ours.title == "kept" and not ours.training
    ours.delete_submodule("layers.spare")
    assert hasattr(theirs.layers, "spare")


def test_hooks_are_kept():
    theirs = torch.fx.symbolic_trace(MLP())
    theirs.register_forward_hook(lambda module, args, output: output * 0)
    assert clew.from_fx(theirs)(SEQUENCE[0]).abs().sum() == 0


def test_graphs_alone():
    theirs = torch.fx.symbolic_trace(Attention()).graph
    ours = clew.from_fx(theirs)
    assert type(ours) is clew.Graph and ours.owning_module is None
    assert rows(ours) == rows(theirs)
    assert rows(clew.to_fx(ours)) == rows(theirs)


def test_literals_and_nests():
    graph = torch.fx.Graph()
    x = graph.placeholder("x", type_expr=int, default_value=3)
    nest = [x, (x, {"key": [1, math.inf, torch.float32]}), slice(x, None, 2), torch.device("cpu"), range(3), None, ...]
    node = graph.call_function(print, (nest,), {"sep": x})
    graph.output((node, [x]), type_expr=tuple)
    ours = clew.from_fx(graph)
    assert rows(ours) == rows(graph)
    inner = ours.find_nodes(op="call_function")[0].args[0]
    assert inner[1][1]["key"][2] is torch.float32 and inner[2].start is next(iter(ours.nodes))
    assert rows(clew.to_fx(ours)) == rows(graph)
    assert ours.output_node().type is tuple


def test_names_that_torch_would_not_choose():
    graph = torch.fx.Graph()
    x = graph.placeholder("input")
    x.name = "input"
    y = graph.call_function(torch.relu, (x,))
    y.name = "sum"
    graph.output(y)
    module = torch.fx.GraphModule(nn.Module(), graph)
    ours = clew.from_fx(module)
    assert [node.name for node in ours.graph.nodes] == ["input", "sum", "output"]
    assert torch.equal(ours(SEQUENCE), SEQUENCE.relu())
    assert ours.graph.call_function(torch.relu, (next(iter(ours.graph.nodes)),), name="sum").name == "sum_1"
    assert [node.name for node in clew.to_fx(ours).graph.nodes][:2] == ["input", "sum"]


@pytest.mark.parametrize("name", ["float", "torch", "len", "self", "lambda", "not a name", "getattr"])
def test_names_that_code_cannot_bear_come_back(name):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.mul, (x, math.inf))
    y.name = name
    size = graph.call_function(len, (y,))
    graph.output((y, size))
    ours = clew.from_fx(graph)
    assert ours.find_nodes(op="call_function")[0].name != name
    value, length = clew.GraphModule(nn.Module(), ours)(torch.ones(2))
    assert torch.equal(value, torch.full((2,), math.inf)) and length == 2
    assert [node.name for node in clew.to_fx(ours).nodes] == ["x", name, "len_1", "output"]


def test_sources_and_stack_traces():
    theirs = torch.fx.symbolic_trace(Attention())
    trace = '  File "model.py", line 3, in outer\n    inner(x)\n  File "layers.py", line 7, in inner\n    return x\n'
    node = theirs.graph.find_nodes(op="call_module")[0]
    node.meta["stack_trace"] = trace
    ours = clew.from_fx(theirs).graph.find_nodes(op="call_module")[0]
    assert ours.source == clew.SourceLine("layers.py", 7, "inner")
    assert ours.stack_trace == trace
    back = clew.to_fx(ours.graph).find_nodes(op="call_module")[0]
    assert back.stack_trace == trace and META_KEY not in back.meta


def test_source_lines_are_seen_by_torch():
    ours = clew.symbolic_trace(Attention())
    theirs = clew.to_fx(ours)
    node = theirs.graph.find_nodes(op="call_module")[0]
    assert "models.py" in node.stack_trace and "self.project(x)" in node.stack_trace


def test_types_travel():
    ours = clew.symbolic_trace(Attention())
    node = ours.graph.find_nodes(op="call_module")[0]
    node.value_type = clew.parse_type("f32[2, n, 12]")
    theirs = clew.to_fx(ours)
    assert clew.difference(clew.from_fx(theirs).graph, ours.graph) is None


def test_types_are_read_from_example_values():
    theirs = torch.fx.symbolic_trace(Attention())
    node = theirs.graph.find_nodes(op="call_module")[0]
    node.meta["val"] = torch.zeros(2, 3, device="meta")
    ours = clew.from_fx(theirs)
    assert str(ours.graph.find_nodes(op="call_module")[0].value_type) == "f32[2, 3]@meta"
    assert META_KEY not in clew.to_fx(ours).graph.find_nodes(op="call_module")[0].meta


def nested(x, pair, options):
    return {"sum": x + pair[0] * options["scale"], "rest": [pair[1]]}


def test_nested_calling_conventions():
    concrete = {"pair": (torch.fx.PH, torch.fx.PH), "options": {"scale": torch.fx.PH}}
    theirs = torch.fx.symbolic_trace(nested, concrete_args=concrete)
    call = (torch.ones(2), (torch.ones(2), torch.zeros(2)), {"scale": 3.0})
    ours = clew.from_fx(theirs)
    assert type(ours.graph._codegen) is PyTreeCodeGen
    expected = theirs(*call)
    torch.testing.assert_close(ours(*call), expected)
    again = clew.to_fx(ours)
    torch.testing.assert_close(again(*call), expected)
    assert again.graph._codegen.pytree_info == theirs.graph._codegen.pytree_info
    assert again.code == theirs.code


class OtherCodeGen(torch.fx.CodeGen):
    pass


def test_other_calling_conventions_are_refused():
    graph = torch.fx.symbolic_trace(MLP()).graph
    graph.set_codegen(OtherCodeGen())
    with pytest.raises(InteropError, match="OtherCodeGen"):
        clew.from_fx(graph)
    graph = torch.fx.symbolic_trace(MLP()).graph
    graph.on_generate_code(lambda _: lambda lines: lines)
    with pytest.raises(InteropError, match="rewrites generated code"):
        clew.from_fx(graph)


def test_nested_modules_stay_modules():
    inner = torch.fx.symbolic_trace(MLP())
    graph = torch.fx.Graph()
    graph.output(graph.call_module("body", (graph.placeholder("x"),)))
    outer = torch.fx.GraphModule({"body": inner}, graph)
    ours = clew.from_fx(outer)
    assert ours.body is inner
    torch.testing.assert_close(ours(SEQUENCE[0]), outer(SEQUENCE[0]))


def test_nested_graphs_are_refused_by_name():
    graph = clew.Graph()
    body = clew.Graph()
    body.output(body.placeholder("y"))
    graph.output(graph.call_function(operator.call, (body, graph.placeholder("x")), name="branch"))
    with pytest.raises(InteropError, match="node branch takes a nested graph"):
        clew.to_fx(graph)


@pytest.mark.parametrize("convert", [clew.from_fx, clew.to_fx])
def test_other_things_are_refused(convert):
    with pytest.raises(InteropError, match="neither a Graph nor a GraphModule"):
        convert(nn.Linear(1, 1))


def test_effects_survive_the_journey():
    ours = clew.from_fx(torch.fx.symbolic_trace(Writer()))
    before = [node.name for node in ours.graph.nodes]
    ours.graph.eliminate_dead_code()
    assert [node.name for node in ours.graph.nodes] == before


def test_the_original_is_left_alone():
    theirs = torch.fx.symbolic_trace(MLP())
    before, state = rows(theirs.graph), list(theirs.state_dict())
    ours = clew.from_fx(theirs)
    ours.graph.call_function(torch.relu, (next(iter(ours.graph.nodes)),))
    ours.add_submodule("more", nn.Linear(1, 1))
    next(iter(ours.graph.nodes)).meta["new"] = 1
    assert rows(theirs.graph) == before and list(theirs.state_dict()) == state
    assert "new" not in next(iter(theirs.graph.nodes)).meta
    assert copy.deepcopy(ours).graph is not ours.graph


def test_a_capture_with_its_guards_goes_to_torch_and_back():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    captured = clew.trace(model, (torch.ones(2, 4),))
    theirs = clew.to_fx(captured)
    theirs.graph.eliminate_dead_code()
    theirs.recompile()
    assert torch.equal(theirs(torch.full((3, 4), 2.0)), model(torch.full((3, 4), 2.0)))
    with pytest.raises(clew.GuardError, match="type\\(input\\) is Tensor"):
        theirs("text")
    assert clew.same_graph(clew.from_fx(theirs).graph, captured.graph)
    assert theirs.state_dict().keys() == model.state_dict().keys()


def test_a_captured_function_goes_to_torch_as_a_module():
    scale = torch.tensor([1.0, 2.0])

    def program(x, n):
        return (x * scale + n).to(torch.float64)

    captured = clew.trace(program, (torch.ones(3, 2), 2))
    theirs = clew.to_fx(captured)
    assert isinstance(theirs, torch.fx.GraphModule)
    assert torch.equal(theirs(torch.ones(1, 2), 5), program(torch.ones(1, 2), 5))
    with pytest.raises(clew.GuardError):
        theirs(torch.ones(1, 2), "text")
    assert clew.same_graph(clew.from_fx(theirs).graph, captured.graph)
