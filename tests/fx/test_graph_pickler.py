"""torch.fx's pickler of graphs: modules with what torch's compiler notes on their nodes."""

import pytest
import torch
from torch._subclasses import FakeTensorMode

import clew
import clew.fx as fx
from clew.fx._graph_pickler import GraphPickler, Options

from .helpers import LinearOnly, names

EVERY_FUNCTION = Options(ops_filter=None)


def through_the_pickler(module, mode=None):
    return GraphPickler.loads(GraphPickler.dumps(module, EVERY_FUNCTION), mode or FakeTensorMode())


def test_a_module_comes_back_with_its_class_and_its_notes():
    traced, mode = fx.symbolic_trace(LinearOnly()), FakeTensorMode()
    traced.meta["kept"] = 1
    first = next(iter(traced.graph.nodes))
    with FakeTensorMode():
        first.meta["val"] = torch.empty(2, 3)
    again = through_the_pickler(traced, mode)
    assert isinstance(again, fx.GraphModule) and type(again).__name__ == "LinearOnly"
    assert names(again.graph) == names(traced.graph) and again.meta == {"kept": 1}
    value = next(iter(again.graph.nodes)).meta["val"]
    assert value.fake_mode is mode and value.shape == (2, 3)
    assert all(map(torch.equal, again.parameters(), traced.parameters()))


def test_a_captured_module_refuses_what_it_refused():
    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    captured = clew.trace(layer, args=(torch.ones(2, 3),))
    again = through_the_pickler(captured)
    x = torch.rand(4, 3)
    assert torch.equal(again(x), layer(x))
    with pytest.raises(clew.GuardError):
        again("text")
