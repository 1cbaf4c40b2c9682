"""Transformer: the new graph computes the same, and keeps what is known of its nodes."""

import pytest
import torch
from torch import nn

import clew

X = torch.rand(3, 3)


def keyword_only(x, *, factor=2):
    return x * factor


def with_default(x, y=None):
    return x if y is None else x + 1


class Regions(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("steps", torch.zeros(3))

    def forward(self, x):
        self.steps.add_(1)
        with torch.no_grad():
            y = self.linear(x)
        return y + self.steps


def test_keyword_only_inputs_stay_so():
    module = clew.Transformer(clew.symbolic_trace(keyword_only)).transform()
    torch.testing.assert_close(module(X, factor=3), X * 3)
    with pytest.raises(TypeError):
        module(X, 3)


def test_effects_and_regions_stay():
    original = Regions()
    module = clew.Transformer(clew.symbolic_trace(original)).transform()
    for count in (1, 2):
        result = module(X)
        assert not result.requires_grad
        torch.testing.assert_close(result, original.linear(X) + count)


def test_a_submodule_added_while_transforming_is_found():
    class Adds(clew.Transformer):
        def call_module(self, target, args, kwargs):
            if not hasattr(self.module, "added"):
                self.module.add_module("added", nn.Identity())
            inner = super().call_module(target, args, kwargs)
            return self.tracer.call_module(self.module.added, self.module.added.forward, (inner,), {})

    module = Adds(clew.symbolic_trace(nn.Sequential(nn.ReLU()))).transform()
    assert [node.target for node in module.graph.find_nodes(op="call_module")] == ["0", "added"]
    torch.testing.assert_close(module(X), torch.relu(X))


def test_sources_types_and_notes_are_taken_over():
    traced = clew.symbolic_trace(Regions())
    clew.ShapeProp(traced).propagate(X)
    for node in traced.graph.nodes:
        node.meta["number"] = node.name
    twin = clew.Transformer(traced).transform()
    for old, new in zip(traced.graph.nodes, twin.graph.nodes, strict=True):
        assert (old.op, old.target, old.source) == (new.op, new.target, new.source)
        assert new.meta["number"] == old.name and new.value_type == old.value_type
