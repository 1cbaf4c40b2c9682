"""Nested forms: they run, they flatten back to an equal graph, equal modules share a graph, the shown code is right."""

from __future__ import annotations

import copy
import pickle
import types
from operator import add, mul
from typing import Any

import pytest
import torch
from torch import nn

import clew
from clew.tools.nested import Piece, _classes, _names, nested
from tests.tools.nested_models import MODELS, Block, Branching, CalledTwice, Collecting, Layers, TwoWays, Writing


def example(name: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    kind, count = MODELS[name]
    return kind(), tuple(torch.randn(3, 4) for _ in range(count))


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [found for part in parts for found in tensors(part)]


def results(model: Any, args: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    torch.manual_seed(1)
    given = copy.deepcopy(args)
    return [*tensors(model(*given)), *given]


def assert_equal(found: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", MODELS)
def test_it_runs_like_the_original_again_and_again(name: str) -> None:
    model, args = example(name)
    form = clew.nested(clew.trace(copy.deepcopy(model), args))
    for graph in (form.graph, *(piece.graph for piece in form.pieces.values())):
        graph.lint()
    for _ in range(5):
        assert_equal(results(form, args), results(model, args))
        assert_equal(list(form.state_dict().values()), list(model.state_dict().values()))


@pytest.mark.parametrize("name", MODELS)
def test_it_flattens_back_to_an_equal_graph_with_the_same_state(name: str) -> None:
    model, args = example(name)
    captured = clew.trace(copy.deepcopy(model), args)
    back = clew.flat(clew.nested(captured))
    assert clew.difference(back.graph, captured.graph) is None
    assert list(back.state_dict()) == list(captured.state_dict()) == list(model.state_dict())
    assert [path for path, _ in back.named_modules()] == [path for path, _ in captured.named_modules()]
    assert_equal(results(back, args), results(model, args))


@pytest.mark.parametrize("name", MODELS)
def test_the_shown_code_does_what_the_form_does(name: str) -> None:
    model, args = example(name)
    form = clew.nested(clew.trace(copy.deepcopy(model), args))
    put_in_shown_code(form)
    assert_equal(results(form, args), results(model, args))


def put_in_shown_code(form: Any) -> None:
    """Let all modules of a nested form run the functions of the text."""
    names: dict[str, Any] = {}
    exec(form.code, names)
    groups = _classes(form)
    root = type(form).__name__
    *inner, last = _names([*groups, types.SimpleNamespace(kind=root)])  # type: ignore[list-item]
    for group, name in zip(groups, inner, strict=True):
        for module in group.modules.values():
            for method, function in vars(names[name]).items():
                if method.startswith("forward"):
                    vars(module)[method] = types.MethodType(function, module)
    vars(form)["forward"] = types.MethodType(names[last].forward, form)


@pytest.mark.parametrize("name", MODELS)
def test_it_can_be_copied_and_saved(name: str) -> None:
    model, args = example(name)
    if name == "hooked":
        pytest.skip("a hook that is a lambda cannot be pickled")
    form = clew.nested(clew.trace(copy.deepcopy(model), args))
    count = len({id(piece.graph) for piece in form.pieces.values()})
    for twin in (copy.deepcopy(form), pickle.loads(pickle.dumps(form))):
        assert len({id(piece.graph) for piece in twin.pieces.values()}) == count
        assert clew.same_graph(clew.flat(twin).graph, clew.flat(form).graph)
        assert twin.code == form.code
        assert_equal(results(twin, args), results(copy.deepcopy(model), args))


def test_equal_layers_share_one_graph_and_the_code_does_not_grow_with_them() -> None:
    x = torch.randn(3, 4)
    forms = [clew.nested(clew.trace(Layers(depth), (x,))) for depth in (2, 6)]
    assert len({id(piece.graph) for piece in forms[1].pieces.values()}) == 2
    assert forms[0].code.count("\n") == forms[1].code.count("\n")
    assert "class Block:  # stages[0:2].blocks[0:6] (x12)\n" in forms[1].code
    assert "        for block in self.stages[0].blocks:\n            x = block(x)\n" in forms[1].code


def test_values_that_layers_give_are_collected_in_a_list() -> None:
    code = clew.nested(clew.trace(Collecting(4), (torch.randn(3, 4), torch.randn(4)))).code
    assert "for layer in self.layers:\n            x, mul = layer(x, bias)\n" in code.replace("mul_1", "mul")
    assert "'kept': muls}" in code


def test_a_module_that_is_called_twice_is_called_twice() -> None:
    form = clew.nested(clew.trace(CalledTwice(), (torch.randn(3, 4),)))
    calls = [node.target for node in form.graph.nodes if node.op == "call_module"]
    assert calls == ["block", "block"]
    assert list(form.pieces) == ["block"]


def test_two_ways_through_a_module_are_two_methods() -> None:
    form = clew.nested(clew.trace(TwoWays(), (torch.randn(3, 4),)))
    calls = [node.target for node in form.graph.nodes if node.op == "call_module"]
    assert calls == ["block", "block.forward_2", "block", "block.forward_2"]
    assert "    def forward_2(self, " in form.code
    assert [node.target for node in form.pieces["block.forward_2"].graph.nodes if node.op == "call_method"] == ["relu"]


def test_bodies_keep_the_calls_in_them() -> None:
    form = clew.nested(clew.trace(Branching(), (torch.randn(3, 4),)))
    assert "self.linear(x)" in form.code.split("class Inner")[1]
    assert "self.block.linear(" in form.code.split("class Branching")[1]


def test_an_edit_changes_all_that_share_the_graph_unless_it_was_split() -> None:
    torch.manual_seed(0)
    model, x = Layers(2), torch.randn(3, 4)
    form = clew.nested(clew.trace(model, (x,)))
    form(x), form(x), form(x)
    (node,) = (node for node in form.pieces["stages.0.blocks.0"].graph.nodes if node.target is add)
    node.target = torch.sub
    expected = x
    for stage in model.stages:
        for block in stage["blocks"]:
            expected = block.linear(expected) * block.scale - expected
        expected = stage["last"](expected, True)
    torch.testing.assert_close(form(x), expected)
    torch.testing.assert_close(clew.flat(form)(x), expected)

    form = clew.nested(clew.trace(model, (x,)))
    piece = form.split("stages.1.last")
    assert piece.graph is not form.pieces["stages.0.last"].graph
    (node,) = (node for node in piece.graph.nodes if node.target == "relu")
    node.target = "sigmoid"
    assert [path for path, one in form.pieces.items() if any(node.target == "sigmoid" for node in one.graph.nodes)] == [
        "stages.1.last"
    ]
    assert "Block_3:  # stages[1].last\n" in form.code
    expected = x
    for place, stage in enumerate(model.stages):
        for block in stage["blocks"]:
            expected = block(expected)
        last = stage["last"].linear(expected) * stage["last"].scale
        expected = last.sigmoid() if place else last.relu()
    torch.testing.assert_close(form(x), expected)
    torch.testing.assert_close(clew.flat(form)(x), expected)
    assert clew.flat(form).code.count("sigmoid") == 1


def test_nodes_that_are_added_to_a_piece_are_in_the_flat_graph_for_each_call() -> None:
    x = torch.randn(3, 4)
    form = clew.nested(clew.trace(CalledTwice(), (x,)))
    before = len(clew.flat(form).graph.nodes)
    graph = form.pieces["block"].graph
    output = graph.output_node()
    with graph.inserting_before(output):
        output.args = (graph.call_function(mul, (output.args[0], 2)),)
    back = clew.flat(form)
    back.graph.lint()
    assert len(back.graph.nodes) == before + 2
    torch.testing.assert_close(back(x), form(x))


def test_it_is_a_module_that_shares_its_parameters_and_trains() -> None:
    torch.manual_seed(0)
    model, x = Layers(2), torch.randn(3, 4)
    captured = clew.trace(model, (x,))
    form = clew.nested(captured)
    assert {id(one) for one in form.parameters()} == {id(one) for one in captured.parameters()}
    form(x).sum().backward()
    grads = [one.grad.clone() for one in form.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    assert_equal(grads, [one.grad for one in model.parameters()])
    assert form.to(torch.float64) is form
    assert all(one.dtype == torch.float64 for one in form.state_dict().values())


def test_hooks_on_a_piece_see_its_calls() -> None:
    x = torch.randn(3, 4)
    form = clew.nested(clew.trace(Layers(2), (x,)))
    seen: list[tuple[int, ...]] = []
    form.stages[1].blocks[0].register_forward_hook(lambda module, args, output: seen.append(tuple(output.shape)))
    form(x)
    assert seen == [(3, 4)]


def test_guards_hold_in_the_nested_form_and_a_refused_call_leaves_no_mark() -> None:
    model, x = Writing(), torch.randn(3, 4)
    form = clew.nested(clew.trace(model, (x,)))
    form(x), form(x)
    before = copy.deepcopy(form.state_dict())
    with pytest.raises(clew.GuardError):
        form([x])
    assert_equal(list(form.state_dict().values()), list(before.values()))


def test_symbolic_traces_have_nested_forms_too() -> None:
    model, x = Layers(2), torch.randn(3, 4)
    traced = clew.symbolic_trace(model)
    form = clew.nested(traced)
    assert {id(form.pieces[path].graph) for path in form.pieces if "blocks" in path} == {
        id(form.pieces["stages.0.blocks.0"].graph)
    }
    torch.testing.assert_close(form(x), model(x))
    assert clew.same_graph(clew.flat(form).graph, traced.graph)
    assert type(clew.flat(form)).__mro__[1] is clew.GraphModule


def test_a_nested_form_is_its_own_nested_form_and_others_are_refused() -> None:
    form = clew.nested(clew.trace(Block(), (torch.randn(3, 4),)))
    assert nested(form) is form
    assert not form.pieces
    block = Block()
    function = clew.trace(lambda x: block(x), (torch.randn(3, 4),))
    with pytest.raises(clew.GraphError, match="has no nested form"):
        clew.nested(function)
    with pytest.raises(clew.GraphError, match="is no nested form"):
        clew.flat(function)
    with pytest.raises(clew.GraphError, match="no piece 'layers.7'"):
        form.split("layers.7")


def test_names_that_a_piece_needs_for_itself_stay_with_the_module_around() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.graph = nn.Linear(4, 4)
            self.inner = Block()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(self.graph(x))

    model, x = nn.Sequential(Odd(), Block()), torch.randn(3, 4)
    form = clew.nested(clew.trace(model, (x,)))
    assert list(form.pieces) == ["0.inner", "1"]
    torch.testing.assert_close(form(x), model(x))
    assert not isinstance(form[0], Piece)


def test_a_piece_may_be_called_output() -> None:
    class Halves(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.relu() * 2, x.tanh() * 3

    class Ending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.output = Halves()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first, second = self.output(x)
            return first + second

    x = torch.randn(3)
    form = nested(clew.trace(Ending(), (x,)))
    clew.verify(form.graph)
    assert torch.equal(form(x), Ending()(x)) and clew.flat(form).graph.output_node().name == "output"
