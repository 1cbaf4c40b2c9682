"""Passes go into the bodies of branches and loops."""

import operator

import torch

import clew
from clew.ir.arguments import all_nodes, nested_graphs
from clew.passes.dead_code import dead_code
from tests.codegen.test_control_flow import scan


def module_of_scan():
    root = torch.nn.Module()
    root.weight = torch.nn.Parameter(torch.eye(3))
    return clew.GraphModule(root, scan())


def test_shapes_of_values_inside():
    module = module_of_scan()
    clew.ShapeProp(module).propagate(torch.ones(4, 3), torch.zeros(3))
    types = {node.name: str(node.value_type) for body in nested_graphs(module.graph) for node in body.nodes}
    assert types["matmul"] == types["row"] == types["h_1"] == "f32[3]"
    assert types["gt"] == "bool[]"
    module.graph.lint()


def growing():
    """Appends to an array in each round."""
    text = """
        graph(%x) {
          %loop = function clew.for_loop(range(0, 3, 1), graph(%x, %i) {
            %cat = function torch.cat([%x, %x])
            return (%cat,)
          }, (%x,))
          %x_1 = function operator.getitem(%loop, 0)
          return %x_1
        }
    """
    return clew.GraphModule({}, clew.parse(text))


def test_a_size_that_differs_from_round_to_round_has_a_name():
    module = growing()
    for _ in range(2):
        clew.ShapeProp(module).propagate(torch.ones(1, 2))
        (body,) = nested_graphs(module.graph)
        assert [str(node.value_type) for node in body.nodes][0] == "f32[x_0, 2]"
        assert str(body.find_nodes(op="call_function")[0].value_type) == "f32[cat_0, 2]"
    module.graph.lint()
    assert module(torch.ones(1, 2)).shape == (8, 2)
    assert clew.same_graph(clew.parse(clew.to_text(module.graph)), module.graph)


def test_patterns_are_found_inside():
    module = module_of_scan()
    before = module(torch.ones(4, 3), torch.zeros(3))
    matches = clew.replace_pattern(module, lambda h: torch.tanh(h), lambda h: 2 * torch.sigmoid(2 * h) - 1)
    assert len(matches) == 1
    assert "tanh" not in module.code and "torch.sigmoid" in module.code
    assert torch.allclose(module(torch.ones(4, 3), torch.zeros(3)), before)


class Layers(torch.nn.Module):
    """Two layers, one of which is called inside a branch."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(2, 2)
        self.activation = torch.nn.ReLU()


def test_modules_inside_are_matched_and_taken_over():
    text = """
        graph(%x, %flag) {
          %cond = function clew.cond(%flag, graph(%x) {
            %first = module first(%x)
            %activation = module activation(%first)
            return %activation
          }, graph(%x) {
            return %x
          }, (%x,))
          return %cond
        }
    """
    module = clew.GraphModule(Layers(), clew.parse(text))
    x = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))

    class Pattern(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.activation = torch.nn.ReLU()

        def forward(self, x):
            return self.activation(x)

    assert clew.replace_pattern(module, Pattern(), lambda x: x.abs())
    assert torch.equal(module(x, True), module.first(x).abs())
    assert all(body.owning_module is None for body in nested_graphs(module.graph))


class Doubling(clew.Transformer):
    """Writes additions as multiplications, wherever they are."""

    def call_function(self, target, args, kwargs):
        return super().call_function(operator.mul if target is operator.add else target, args, kwargs)


def test_a_transformer_changes_what_is_inside():
    module = module_of_scan()
    changed = Doubling(module).transform()
    assert not any(node.target is operator.add for node in all_nodes(changed.graph))
    assert any(node.target is operator.add for node in all_nodes(module.graph))
    assert "* row" in changed.code
    assert [body.output_node().args for body in nested_graphs(changed.graph)]


def test_dead_code_keeps_effects_inside():
    module = growing()
    (body,) = nested_graphs(module.graph)
    with body.inserting_before(body.output_node()):
        x = body.find_nodes(op="placeholder")[0]
        body.call_function(torch.neg, (x,))
        body.call_method("add_", (x, 1))
    dead_code(module.graph)
    assert [node.target for node in body.nodes][2:4] == [torch.cat, "add_"]


def test_torch_fx_holds_them_as_modules():
    module = module_of_scan()
    theirs = clew.to_fx(module)
    assert any(isinstance(part, torch.fx.GraphModule) for _, part in theirs.named_children())
    assert clew.same_graph(clew.from_fx(theirs).graph, module.graph)
