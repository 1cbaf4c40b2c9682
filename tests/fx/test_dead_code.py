"""Dead-code elimination: what goes, what stays, and who may say so."""

import importlib
import operator

import pytest
import torch

from .helpers import LinearOnly, names, of, opcodes, targets


def eliminated(fx, root, **options):
    traced = fx.symbolic_trace(root)
    changed = traced.graph.eliminate_dead_code(**options)
    traced.graph.lint()
    traced.recompile()
    return traced, changed


def test_unused_call_goes(fx):
    def dead(x):
        torch.relu(x)
        return x + 1

    traced, changed = eliminated(fx, dead)
    assert changed is True
    assert names(traced.graph) == ["x", "add", "output"]
    assert traced(1) == 2


def test_chain_of_unused_calls_goes(fx):
    def dead(x):
        torch.neg(torch.relu(torch.sin(x)))
        return x

    assert opcodes(eliminated(fx, dead)[0].graph) == ["placeholder", "output"]


def test_nothing_to_do(fx):
    traced, changed = eliminated(fx, lambda x: x + 1)
    assert changed is False
    assert len(traced.graph.nodes) == 3


def test_second_run_changes_nothing(fx):
    def dead(x):
        torch.relu(x)
        return x

    traced, _ = eliminated(fx, dead)
    assert traced.graph.eliminate_dead_code() is False


def test_unused_inputs_stay(fx):
    traced, changed = eliminated(fx, lambda x, y: x)
    assert changed is False
    assert len(of(traced.graph, "placeholder")) == 2


def test_unused_get_attr_goes(fx):
    class Reads(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            self.weight + 1
            return x

    assert opcodes(eliminated(fx, Reads())[0].graph) == ["placeholder", "output"]


def test_unused_method_goes(fx):
    def dead(x):
        x.relu()
        return x

    assert opcodes(eliminated(fx, dead)[0].graph) == ["placeholder", "output"]


def test_unused_module_goes(fx):
    class Calls(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x):
            self.linear(x)
            return x

    traced, _ = eliminated(fx, Calls())
    assert opcodes(traced.graph) == ["placeholder", "output"]
    assert hasattr(traced, "linear")


def test_impure_module_stays(fx):
    class Effect(torch.nn.ReLU):
        _is_impure = True

    class Calls(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.effect = Effect()

        def forward(self, x):
            self.effect(x)
            return x

    class Leaves(fx.Tracer):
        def is_leaf_module(self, m, name):
            return True

    root = Calls()
    traced = fx.GraphModule(root, Leaves().trace(root))
    assert traced.graph.eliminate_dead_code() is False
    assert "effect" in targets(traced.graph)


def test_torch_assert_stays(fx):
    def checked(x):
        torch._assert(x.sum() > 0, "message")
        return x

    traced, _ = eliminated(fx, checked)
    assert torch._assert in targets(traced.graph)
    with pytest.raises(AssertionError, match="message"):
        traced(torch.tensor(-1.0))


def test_setitem_stays(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(operator.setitem, (x, 0, 9.0))
    graph.output(x)
    traced = fx.GraphModule({}, graph)
    assert traced.graph.eliminate_dead_code() is False
    assert traced(torch.zeros(2)).tolist() == [9.0, 0.0]


@pytest.mark.parametrize("function", [torch.rand, torch.randn])
def test_random_calls_stay(fx, function):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(function, (2,))
    graph.output(x)
    assert graph.eliminate_dead_code() is False


def test_set_grad_enabled_stays(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch._C._set_grad_enabled, (True,))
    graph.output(x)
    assert graph.eliminate_dead_code() is False


def test_in_place_operator_overload_stays(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(torch.ops.aten.add_.Tensor, (x, 1))
    graph.output(x)
    traced = fx.GraphModule({}, graph)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    assert traced(torch.zeros(2)).tolist() == [1.0, 1.0]


def test_callback_keeps(fx):
    def dead(x):
        torch.relu(x)
        return x

    def is_impure(node):
        return node.op in ("placeholder", "output") or node.target is torch.relu

    _, changed = eliminated(fx, dead, is_impure_node=is_impure)
    assert changed is False


def test_callback_removes(fx):
    def checked(x):
        torch._assert(x.sum() > 0, "message")
        return x

    traced, changed = eliminated(fx, checked, is_impure_node=lambda node: node.op in ("placeholder", "output"))
    assert changed is True
    assert opcodes(traced.graph) == ["placeholder", "output"]


def test_callback_may_drop_inputs(fx):
    traced, changed = eliminated(fx, lambda x, y: x, is_impure_node=lambda node: node.op == "output")
    assert changed is True
    assert names(traced.graph) == ["x", "output"]


def test_has_side_effect_registers(fx):
    @fx.has_side_effect
    def announces(x):
        return x

    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(announces, (x,))
    graph.output(x)
    assert graph.eliminate_dead_code() is False
    assert list(graph.nodes)[1].is_impure()


def test_has_side_effect_returns_the_function(fx):
    def announces(x):
        return x

    assert fx.has_side_effect(announces) is announces


def test_graph_must_be_in_order(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.neg, (x,))
    graph.output(node)
    node.append(x)
    with pytest.raises(RuntimeError, match="before it has been defined"):
        graph.eliminate_dead_code()


def test_dead_slices_and_nests_go(fx):
    def dead(x, n):
        y = x[1:n]
        torch.cat([y, y])
        return x

    assert opcodes(eliminated(fx, dead)[0].graph) == ["placeholder", "placeholder", "output"]


def test_users_are_updated(fx):
    def dead(x):
        torch.relu(x)
        return x + 1

    traced, _ = eliminated(fx, dead)
    assert [node.name for node in of(traced.graph, "placeholder")[0].users] == ["add"]


def test_multi_output_call_partly_used_stays(fx):
    traced, changed = eliminated(fx, lambda x: torch.topk(x, 2)[0])
    assert changed is False
    assert torch.topk in targets(traced.graph)


def test_dead_code_of_a_module_keeps_state(fx):
    traced = fx.symbolic_trace(LinearOnly())
    traced.graph.eliminate_dead_code()
    assert traced(torch.ones(1, 3)).shape == (1, 2)


def test_is_impure_of_a_module_call_without_an_owner(fx):
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_module("linear", (x,))
    graph.output(x)
    try:
        assert node.is_impure() in (True, False)
    except AssertionError as error:
        assert "owning_module" in str(error)


def looked_up(x):
    return x


def test_the_set_of_functions_with_effects_is_the_one_that_counts(fx):
    module = importlib.import_module(f"{'clew' if fx.Node.__module__.startswith('clew') else 'torch'}.fx.node")
    fx.has_side_effect(looked_up)
    assert looked_up in module._side_effectful_functions
    graph = fx.Graph()
    graph.output(graph.placeholder("x"))
    call = graph.call_function(looked_up)
    assert call.is_impure()
    module._side_effectful_functions.discard(looked_up)
    module._side_effectful_functions.add(torch.relu)
    try:
        assert graph.call_function(torch.relu, (call,)).is_impure()
    finally:
        module._side_effectful_functions.discard(torch.relu)
