"""torch.fx's lazy graph modules: all of Clew's are lazy, these tell it in torch.fx's words."""

import copy
import pickle

import pytest
import torch

import clew.fx as fx
from clew.fx._lazy_graph_module import (
    _force_skip_lazy_graph_module,
    _LazyGraphModule,
    _make_graph_module,
    _use_lazy_graph_module,
)
from clew.fx.experimental.proxy_tensor import make_fx


def program(x):
    return x.sin()


@pytest.fixture
def lazy():
    with _use_lazy_graph_module(True):
        yield fx.symbolic_trace(program)


def test_code_is_made_by_a_call_and_wanted_anew_by_recompile(lazy):
    x = torch.rand(3)
    assert isinstance(lazy, _LazyGraphModule) and lazy._needs_recompile()
    torch.testing.assert_close(lazy(x), x.sin())
    assert not lazy._needs_recompile()
    next(iter(lazy.graph.find_nodes(op="call_method", target="sin"))).target = "cos"
    lazy.recompile()
    assert lazy._needs_recompile()
    torch.testing.assert_close(lazy.forward(x), x.cos())
    assert not lazy._needs_recompile()


def test_an_edit_without_recompile_is_followed_too(lazy):
    x = torch.rand(3)
    lazy(x)
    next(iter(lazy.graph.find_nodes(op="call_method", target="sin"))).target = "cos"
    torch.testing.assert_close(lazy(x), x.cos())


def test_readers_make_the_code(lazy):
    assert "sin" in lazy.code and not lazy._needs_recompile()
    lazy.recompile()
    assert "sin" in str(lazy)
    lazy.real_recompile()
    assert not lazy._needs_recompile()


def test_traced_again(lazy):
    again = fx.symbolic_trace(lazy)
    assert again._needs_recompile() and not lazy._needs_recompile()
    recorded = make_fx(lazy)(torch.rand(3))
    assert isinstance(recorded, _LazyGraphModule) and recorded._needs_recompile()


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda lazy: pickle.loads(pickle.dumps(lazy))], ids=["copy", "pickle"])
def test_copies_are_lazy_too(lazy, twin):
    other = twin(lazy)
    assert isinstance(other, _LazyGraphModule)
    torch.testing.assert_close(other(torch.ones(2)), torch.ones(2).sin())


def test_the_class_is_chosen_by_name_by_flag_or_by_conversion(lazy):
    plain = _make_graph_module(lazy, lazy.graph, class_name="Mine", graph_module_cls=fx.GraphModule)
    assert not isinstance(plain, _LazyGraphModule) and type(plain).__name__ == "Mine"
    assert type(_make_graph_module(lazy, lazy.graph)).__name__ == "GraphModule"
    assert _LazyGraphModule.from_graphmodule(lazy) is lazy
    assert isinstance(_LazyGraphModule.from_graphmodule(plain), _LazyGraphModule)
    with _force_skip_lazy_graph_module(), _use_lazy_graph_module(True):
        assert type(fx.symbolic_trace(program)).__mro__[1] is fx.GraphModule
    with _use_lazy_graph_module(False):
        assert not isinstance(fx.symbolic_trace(program), _LazyGraphModule)
