"""Borders of torch.fx's passes over Clew's classes: guards are carried along, graphs of torch.fx go to torch's own."""

import copy
import operator

import pytest
import torch
import torch.fx
from clew.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from clew.fx.passes.operator_support import OperatorSupport
from clew.fx.passes.split_module import split_module
from clew.fx.passes.split_utils import split_by_tags
from clew.fx.passes.tools_common import legalize_graph
from torch import nn
from torch.fx.passes.split_module import split_module as their_split_module

import clew
import clew.fx as fx
from clew.errors import GraphError, InteropError, TraceWarning
from clew.ir.guards import attribute_paths


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y):
        x = x * len(x.shape)
        if self.training:
            x = x + 1
        return self.linear(x) + y


FITTING, OTHERS = (torch.rand(2, 4), torch.rand(2, 4)), (torch.rand(3, 2, 4), torch.rand(3, 2, 4))


@pytest.fixture
def captured():
    return clew.trace(Branching().eval(), FITTING)


def assert_guarded(made, captured):
    torch.testing.assert_close(made(*FITTING), captured(*FITTING))
    with pytest.raises(clew.GuardError, match="x.ndim == 2"):
        made(*OTHERS)


def copied(module):
    graph, twins = fx.Graph(), {}
    for node in module.graph.nodes:
        twins[node] = graph.node_copy(node, twins.__getitem__)
    return fx.GraphModule(module, graph)


def copied_with_inputs_by_hand(module):
    graph, twins = fx.Graph(), {}
    for node in module.graph.nodes:
        by_hand = node.op == "placeholder"
        twins[node] = graph.placeholder(node.name) if by_hand else graph.node_copy(node, twins.__getitem__)
    return fx.GraphModule(module, graph)


def graph_copied(module):
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    return fx.GraphModule(module, graph)


def split(module):
    return split_module(module, module, lambda node: int(node.name == "add"))


def split_by_two_tags(module):
    for node in module.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            node.tag = "last" if node.name == "add" else "first"
    return split_by_tags(module, ["first", "last"])


MAKERS = [copied, copied_with_inputs_by_hand, graph_copied, split, split_by_two_tags]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_new_graphs_have_the_guards_of_the_old(captured, make):
    made = make(captured)
    assert made is not captured
    assert_guarded(made, captured)


def test_a_module_sorted_anew_keeps_its_guards(captured):
    expected = captured(*FITTING)
    legalize_graph(captured)
    torch.testing.assert_close(captured(*FITTING), expected)
    with pytest.raises(clew.GuardError):
        captured(*OTHERS)


def test_each_guard_is_carried_once(captured):
    assert sorted(map(str, copied(captured).graph.guards)) == sorted(map(str, captured.graph.guards))


def test_a_piece_of_a_program_assumes_only_what_concerns_its_inputs(captured):
    graph = fx.Graph()
    doubled = next(node for node in captured.graph.nodes if node.target is operator.mul)
    x = graph.placeholder("x")
    graph.output(graph.node_copy(doubled, {doubled.args[0]: x}.__getitem__))
    assert [str(one) for one in graph.guards] == ["type(x) is Tensor", "x.ndim == 2"]


def test_interpreter_of_torch_fx_checks_guards_and_runs_branches(captured):
    with fx.install():
        assert_guarded(lambda *args: torch.fx.Interpreter(captured).run(*args), captured)


def test_boxed_run_of_torch_fx_checks_guards(captured):
    with fx.install():
        assert_guarded(lambda *args: torch.fx.Interpreter(captured).boxed_run(list(args)), captured)


def test_split_by_torch_fx_while_installed_checks_guards(captured):
    with fx.install():
        from torch.fx.passes.split_module import split_module as installed

        made = installed(captured, captured, lambda node: int(node.name == "add"))
    assert_guarded(made, captured)


def test_transformer_of_torch_fx_makes_a_module_that_checks_guards():
    captured = clew.trace(nn.Linear(4, 4), (torch.rand(2, 4),))
    with fx.install():
        made = torch.fx.Transformer(captured).transform()
    x = torch.rand(2, 4)
    torch.testing.assert_close(made(x), captured(x))
    with pytest.raises(clew.GuardError):
        made(x.numpy())


def test_transformer_of_torch_fx_refuses_nested_graphs(captured):
    with fx.install(), pytest.raises(InteropError, match="nested graphs"):
        torch.fx.Transformer(captured).transform()


def test_nested_graphs_are_not_copied_into_a_graph_of_torch_fx(captured):
    nodes, graph = list(captured.graph.nodes), torch.fx.Graph()
    twins = dict.fromkeys(nodes, graph.placeholder("x"))
    with fx.install(), pytest.raises(InteropError, match="nested graphs"):
        [graph.node_copy(node, twins.__getitem__) for node in nodes]


class Straight(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y):
        return self.linear(x * len(x.shape)) + y


def their_copy(graph):
    made = torch.fx.Graph()
    made.output(made.graph_copy(graph, {}))
    return made


def made_by_hand(graph):
    made, twins = torch.fx.Graph(), {}
    for node in graph.nodes:
        args = torch.fx.map_arg(node.args, twins.__getitem__)
        twins[node] = made.create_node(node.op, node.target, args, dict(node.kwargs), node.name)
    return made


def renamed_by_hand(graph):
    made, twins = torch.fx.Graph(), {}
    for node in graph.nodes:
        if node.op == "placeholder":
            twins[node] = made.placeholder(f"given_{node.name}")
        elif node.op == "output":
            made.output(torch.fx.map_arg(node.args[0], twins.__getitem__))
        else:
            twins[node] = made.node_copy(node, twins.__getitem__)
    return made


def made_without_walks(graph):
    made, twins = torch.fx.Graph(), {}
    for node in graph.nodes:
        args = tuple(twins.get(arg, arg) for arg in node.args)
        twins[node] = made.create_node(node.op, node.target, args, {}, node.name)
    return made


def copied_twice(graph):
    return copy.deepcopy(their_copy(graph))


BUILDERS = [their_copy, made_by_hand, renamed_by_hand, made_without_walks, copied_twice]


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_modules_of_torch_fx_built_of_a_captured_program_check_its_guards(build):
    captured = clew.trace(Straight(), FITTING)
    with fx.install():
        made = torch.fx.GraphModule(captured, build(captured.graph))
        assert torch.fx.GraphModule in type(made).__mro__
    for one in (made, copy.deepcopy(made), clew.from_fx(made)):
        torch.testing.assert_close(one(*FITTING), captured(*FITTING))
        with pytest.raises(clew.GuardError, match="x.ndim == 2"):
            one(*OTHERS)


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_a_module_with_another_root_checks_the_guards_too(build):
    captured = clew.trace(Straight(), FITTING)
    with fx.install():
        made = torch.fx.GraphModule({"linear": captured.linear}, build(captured.graph))
    with pytest.raises(clew.GuardError, match="ndim == 2"):
        made(*OTHERS)


def test_what_nobody_can_tell_the_source_of_is_told():
    captured = clew.trace(Straight(), FITTING)
    graph = torch.fx.Graph()
    with fx.install():
        names = [node.name for node in captured.graph.nodes]
        graph.output(graph.call_function(torch.relu, (graph.placeholder(f"not_{names[0]}"),)))
        with pytest.warns(TraceWarning, match="cannot be told"):
            torch.fx.GraphModule({}, graph)


def test_what_is_traced_by_torch_fx_while_installed_has_no_guards_of_others(recwarn):
    captured = clew.trace(Straight(), FITTING)
    with fx.install():
        list(captured.graph.nodes)
        made = copy.deepcopy(torch.fx.symbolic_trace(lambda x, y: x * 2 + y))
    assert made(*OTHERS).shape == (3, 2, 4)
    assert not [one for one in recwarn if issubclass(one.category, TraceWarning)]


class Striding(nn.Module):
    """A program that assumes something of a size that a layer's stride decides."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 2, stride=2)

    def forward(self, x):
        y = self.conv(x)
        return (x * 2, y) if y.shape[-1] > 2 else (x, y)


def test_a_piece_of_a_program_has_the_attributes_that_guards_are_on():
    x = torch.rand(1, 1, 8)
    captured = clew.trace(Striding(), (x,), control_flow="guard")
    assert "conv.stride" in attribute_paths(captured.graph.guards.entry)
    expected = captured(x)
    for node in captured.graph.nodes:
        node.tag = "first" if node.op == "call_module" else "second"
    torch.testing.assert_close(split_by_tags(captured, ["first", "second"])(x), expected)


def fused(traced, *names):
    fuse = fx.passes.utils.fuser_utils.fuse_by_partitions
    return fuse(traced, [dict.fromkeys(node for node in traced.graph.nodes if node.name in names)])


class Writing(nn.Module):
    def forward(self, x):
        y = x + 1
        z = y * 3
        y.add_(5)
        return y * 2 + z


def test_a_part_that_is_cut_out_runs_where_writes_allow_it():
    x = torch.rand(3)
    made = fused(clew.trace(Writing(), (x,)), "mul", "add")
    torch.testing.assert_close(made(x), Writing()(x))
    assert any(node.op == "call_module" for node in made.graph.nodes)


def test_a_part_on_both_sides_of_a_write_is_refused():
    with pytest.raises(GraphError, match="around a write in place"):
        fused(clew.trace(Writing(), (torch.rand(3),)), "z", "mul", "add")


class ReadingWhatWasWritten(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        y = x * 2
        y.add_(5)
        z = self.linear(y)
        return z * 3


class LayersAndProducts(OperatorSupport):
    def is_node_supported(self, submodules, node):
        return node.op == "call_module" or node.target is operator.mul


def test_partitions_stay_on_their_side_of_a_write():
    model, x = ReadingWhatWasWritten(), torch.rand(2, 3)
    captured = clew.trace(model, (x,))
    partitioner = CapabilityBasedPartitioner(captured, LayersAndProducts(), allows_single_node_partition=True)
    parts = partitioner.propose_partitions()
    assert sorted(len(part.nodes) for part in parts) == [1, 2]
    torch.testing.assert_close(partitioner.fuse_partitions(parts)(x), model(x))


def test_what_has_no_value_is_no_input():
    def filled(x):
        y = x * 2
        y[0] = 5
        return y + 1

    traced = fx.symbolic_trace(filled)
    CapabilityBasedPartitioner(traced, LayersAndProducts())
    add = next(node for node in traced.graph.nodes if node.target is operator.add)
    assert [node.name for node in add.all_input_nodes] == ["mul"]


def test_modules_of_packages_are_there_without_an_import():
    assert fx.passes.infra.partitioner.CapabilityBasedPartitioner.__module__ == "clew.fx.passes.infra.partitioner"
    with pytest.raises(AttributeError, match="has no attribute 'missing'"):
        _ = fx.passes.infra.missing


# ---- graphs of torch.fx itself ---------------------------------------------------------------------------------------


@pytest.fixture
def of_torch():
    return torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))


def test_a_graph_of_torch_fx_goes_to_torchs_own_pass(of_torch):
    made = split_module(of_torch, of_torch, lambda node: int(node.name == "_1"))
    theirs = their_split_module(of_torch, of_torch, lambda node: int(node.name == "_1"))
    assert isinstance(made, torch.fx.GraphModule)
    assert made.code == theirs.code


def test_shapes_are_noted_in_a_graph_of_torch_fx(of_torch):
    fx.ShapeProp(of_torch).propagate(torch.rand(2, 4))
    assert {tuple(node.meta["tensor_meta"].shape) for node in of_torch.graph.nodes} == {(2, 4)}


def test_graphs_of_torch_fx_are_interpreted_and_transformed(of_torch):
    x = torch.rand(2, 4)
    torch.testing.assert_close(fx.Interpreter(of_torch).run(x), of_torch(x))
    made = fx.Transformer(of_torch).transform()
    assert isinstance(made, fx.GraphModule)
    torch.testing.assert_close(made(x), of_torch(x))
