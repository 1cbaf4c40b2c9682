"""ShapeProp: types of all values, found by running on an example."""

import torch
from torch import nn

import clew

X = torch.rand(2, 3)


class Splits(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x):
        first, second = self.linear(x).chunk(2, 1)
        return {"both": [first, second.to(torch.float64)], "size": x.shape[0]}


def propagated():
    traced = clew.symbolic_trace(Splits())
    result = clew.ShapeProp(traced).propagate(X)
    return traced, result


def test_result_is_the_modules_own():
    traced, result = propagated()
    torch.testing.assert_close(result, traced(X))


def test_every_node_has_its_type():
    traced, _ = propagated()
    types = {node.name: str(node.value_type) for node in traced.graph.nodes}
    assert types["x"] == "f32[2, 3]" and types["linear"] == "f32[2, 4]"
    assert types["to"] == "f64[2, 2]" and types["getitem_2"] == "int"


def test_tensor_meta_of_nests():
    traced, _ = propagated()
    chunk = next(node for node in traced.graph.nodes if node.name == "chunk")
    assert [tuple(part.shape) for part in chunk.meta["tensor_meta"]] == [(2, 2), (2, 2)]
    output = traced.graph.output_node()
    assert output.meta["tensor_meta"]["both"][1].dtype is torch.float64
    assert output.meta["tensor_meta"]["size"] == 2


def test_plain_values_have_no_tensor_meta():
    traced, _ = propagated()
    size = next(node for node in traced.graph.nodes if node.name == "getitem_2")
    assert "tensor_meta" not in size.meta and size.meta["type"] is int


def test_the_graph_is_left_as_it_was():
    traced, _ = propagated()
    fresh = clew.symbolic_trace(Splits()).graph
    for node in (one for graph in (traced.graph, fresh) for one in graph.nodes):
        object.__setattr__(node, "value_type", None)  # which is what the pass adds
    assert [node.format_node() for node in traced.graph.nodes] == [node.format_node() for node in fresh.nodes]
