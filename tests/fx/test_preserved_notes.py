"""``torch.fx.traceback``: what a program asks to be noted with nodes is noted, as torch.fx does."""

import torch

import clew.fx as fx


class Layer(torch.nn.Module):
    def forward(self, x):
        with fx.traceback.annotate({"part": "inner"}):
            x = torch.relu(x)
        return x + 1


def custom(graph):
    return {node.name: node.meta.get("custom") for node in graph.nodes}


def test_annotations_are_noted_where_they_are_to_be_kept():
    with fx.traceback.preserve_node_meta():
        kept = fx.symbolic_trace(Layer())
    assert custom(kept.graph) == {"x": None, "relu": {"part": "inner"}, "add": None, "output": None}
    assert custom(fx.symbolic_trace(Layer()).graph)["relu"] is None


def test_an_interpreter_hands_notes_on_to_what_is_recorded():
    traced = fx.symbolic_trace(Layer())
    for node in traced.graph.nodes:
        node.stack_trace = f"line of {node.name}"
    with fx.traceback.preserve_node_meta():
        made = fx.experimental.proxy_tensor.make_fx(fx.Interpreter(traced).run)(torch.ones(2))
    relu, add = (node for node in made.graph.nodes if node.op == "call_function")
    assert (relu.stack_trace, add.stack_trace) == ("line of relu", "line of add")
    assert [source.name for source in add.meta["from_node"]] == ["add"]


def test_a_transformer_notes_where_its_nodes_come_from():
    traced = fx.symbolic_trace(Layer())
    traced.graph.find_nodes(op="call_function", target=torch.relu)[0].meta["custom"] = {"mine": 1}
    with fx.traceback.preserve_node_meta():
        made = fx.Transformer(traced).transform()
    (relu,) = made.graph.find_nodes(op="call_function", target=torch.relu)
    assert relu.meta["custom"] == {"mine": 1}
    assert relu.meta["from_node"][0].pass_name == "Interpreter_Transformer"
