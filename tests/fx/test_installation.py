"""``clew.fx.install``: programs that know torch.fx only, unchanged, on Clew's graphs."""

import sys

import pytest
import torch
import torch.fx
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.split_module import split_module

import clew.fx


def program(x):
    return torch.relu(x) + 1


def test_instances_count_as_torch_fx_while_installed():
    traced = clew.fx.symbolic_trace(program)
    node = next(iter(traced.graph.nodes))
    with clew.fx.install():
        assert isinstance(traced, torch.fx.GraphModule)
        assert isinstance(traced.graph, torch.fx.Graph)
        assert isinstance(node, torch.fx.Node)
        assert isinstance(traced, clew.fx.GraphModule)
        assert isinstance(torch.fx.symbolic_trace(program), torch.fx.GraphModule)
        assert not isinstance(program, torch.fx.Node)
    assert not isinstance(traced, torch.fx.GraphModule)
    assert traced.__class__ is type(traced)


def test_each_module_keeps_a_name_of_its_own():
    first, second = clew.fx.symbolic_trace(program), clew.fx.symbolic_trace(program)
    named = clew.fx.GraphModule(first, first.graph, "Named")
    with clew.fx.install():
        assert named.__class__.__name__ == "Named" and repr(named).startswith("Named(")
        first.__class__.__name__ = "First"
        assert (first.__class__.__name__, second.__class__.__name__) == ("First", "program")
    assert type(first).__name__ == "First"


def test_parts_that_a_pass_fuses_are_told_apart():
    def several(x):
        return torch.relu(torch.neg(torch.relu(x) + 1)) + 1

    fusing = clew.fx.passes.utils.fuser_utils
    x = torch.rand(3)
    with clew.fx.install():
        traced = clew.fx.symbolic_trace(several)
        nodes = {node.name: node for node in traced.graph.nodes}
        parts = [{nodes["relu"]: None, nodes["add"]: None}, {nodes["relu_1"]: None, nodes["add_1"]: None}]
        fused = fusing.fuse_by_partitions(traced, parts)
        assert [name for name, _ in fused.named_children()] == ["fused_0", "fused_1"]
        torch.testing.assert_close(fused(x), several(x))


def test_uninstalled_by_hand_and_nested():
    traced = clew.fx.symbolic_trace(program)
    installed = clew.fx.install()
    with clew.fx.install():
        assert isinstance(traced, torch.fx.GraphModule)
    assert isinstance(traced, torch.fx.GraphModule)
    installed.uninstall()
    installed.uninstall()
    assert not isinstance(traced, torch.fx.GraphModule)


def test_tools_of_torch_fx_on_a_graph_of_clew():
    traced = clew.fx.symbolic_trace(program)
    x = torch.rand(3)
    with clew.fx.install():
        torch.testing.assert_close(torch.fx.Interpreter(traced).run(x), program(x))
        ShapeProp(traced).propagate(x)
        again = torch.fx.GraphModule(traced, traced.graph)
        traced_again = torch.fx.symbolic_trace(traced)
    assert [node.meta["tensor_meta"].shape for node in traced.graph.nodes] == [(3,)] * 4
    assert isinstance(again, clew.fx.GraphModule)
    torch.testing.assert_close(traced_again(x), program(x))


def test_split_by_torch_fx():
    traced = clew.fx.symbolic_trace(program)
    x = torch.rand(3)
    with clew.fx.install():
        split = split_module(traced, traced, lambda node: int(node.name == "add"))
        torch.testing.assert_close(split(x), program(x))


@pytest.fixture
def client(tmp_path, monkeypatch):
    (tmp_path / "a_client.py").write_text(
        "import torch.fx\nfrom torch import fx, nn\nfrom torch.fx.node import Node\n\n\n"
        "def names(function):\n    traced = torch.fx.symbolic_trace(function)\n"
        "    assert isinstance(traced, fx.GraphModule) and all(isinstance(node, Node) for node in traced.graph.nodes)\n"
        "    return type(traced.graph).__module__\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "a_client"
    sys.modules.pop("a_client", None)


def test_package_imported_over_clew(client):
    with clew.fx.install(client):
        ours = __import__(client)
        assert ours.names(program) == "clew.ir.graph"
    assert __import__(client).names(program) == "torch.fx.graph"
    assert ours.names(program) == "clew.ir.graph"
