"""Every model of the zoo through clew: traced as torch.fx traces it, and never a different answer.

The original module, built anew, is the reference for results; torch.fx's graph is the reference for structure.
"""

import copy
import operator
import pickle
from typing import Any

import pytest
import torch
import torch.fx
from models import zoo
from torch import nn

import clew
from tests.models.zoo_checks import annotations, attributes, gradients, rows, run, same, state, without_in_place

each_model = pytest.mark.parametrize("name", zoo)
# These models write `y += x`, which torch.fx records as `y + x` and clew as what it is.
IN_PLACE = {"resnet18", "resnet34", "resnet50", "real_nvp"}

each_mode = pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])


def traced(name: str, training: bool = True) -> Any:
    return clew.symbolic_trace(zoo[name].build().train(training))


def assert_computes_like_the_original(name: str, module: Any, training: bool = True) -> None:
    """Results for two inputs in a row, and what they did to the buffers (running means, counts)."""
    plain = zoo[name].build().train(training)
    for seed in (1, 2):
        inputs = zoo[name].inputs(seed)
        same(run(plain, inputs, seed), run(module, inputs, seed))
    ours, theirs = state(module), state(plain)
    shared = sorted(ours.keys() & theirs.keys())
    same({key: theirs[key] for key in shared}, {key: ours[key] for key in shared}, "state")


@each_mode
@each_model
def test_same_graph_as_torch_fx(name: str, training: bool) -> None:
    ours = traced(name, training)
    theirs = torch.fx.symbolic_trace(zoo[name].build().train(training))
    ours.graph.lint()
    if name in IN_PLACE:
        assert without_in_place(ours.graph) == without_in_place(theirs.graph)
    else:
        assert rows(ours.graph) == rows(theirs.graph)
        assert annotations(ours.graph) == annotations(theirs.graph)


@pytest.mark.parametrize("name", sorted(IN_PLACE))
def test_in_place_addition_that_nobody_sees_is_an_addition(name: str) -> None:
    ours, theirs = traced(name), torch.fx.symbolic_trace(zoo[name].build())
    added = [[node.target is operator.add for node in module.graph.nodes] for module in (ours, theirs)]
    assert any(added[0]) and all(there for here, there in zip(*added, strict=True) if here)


@each_mode
@each_model
def test_same_results(name: str, training: bool) -> None:
    assert_computes_like_the_original(name, traced(name, training), training)


@each_model
def test_same_results_when_interpreted(name: str) -> None:
    interpreter = clew.Interpreter(traced(name))
    plain = zoo[name].build()
    inputs = zoo[name].inputs()
    same(run(plain, inputs), run(interpreter.run, inputs))


@each_model
def test_same_gradients(name: str) -> None:
    plain, inputs = zoo[name].build(), zoo[name].inputs()
    same(gradients(plain, inputs), gradients(traced(name), inputs), "gradients")


@each_model
def test_state_is_shared_with_the_root(name: str) -> None:
    root = zoo[name].build()
    ours, theirs = clew.symbolic_trace(root), torch.fx.symbolic_trace(zoo[name].build())
    assert isinstance(ours, nn.Module)
    # torch.fx adds constants of the program to the state dict; here it has nothing that the original has not.
    assert set(ours.state_dict()) == {key for key in theirs.state_dict() if "_tensor_constant" not in key}
    assert set(ours.state_dict()) <= set(root.state_dict())
    parameters = dict(root.named_parameters())
    assert all(parameter is parameters[key] for key, parameter in ours.named_parameters())
    assert {key for key, _ in ours.named_parameters()} == set(parameters)


@each_model
def test_capture_leaves_no_trace(name: str) -> None:
    root = zoo[name].build()
    before, names, random_state = state(root), attributes(root), torch.get_rng_state()
    patched = (nn.Module.__call__, nn.Module.__getattr__, torch.cat, torch.randn_like)
    clew.symbolic_trace(root)
    same(before, state(root), "state")
    assert attributes(root) == names
    assert torch.equal(random_state, torch.get_rng_state())
    assert patched == (nn.Module.__call__, nn.Module.__getattr__, torch.cat, torch.randn_like)
    assert root.training


@each_model
def test_to_torch_fx_and_back(name: str) -> None:
    ours = traced(name)
    there = clew.to_fx(ours)
    assert isinstance(there, torch.fx.GraphModule)
    there.graph.lint()
    assert rows(there.graph) == rows(ours.graph)
    back = clew.from_fx(there)
    assert isinstance(back, clew.GraphModule)
    assert rows(back.graph) == rows(ours.graph)
    assert annotations(back.graph) == annotations(ours.graph)
    assert_computes_like_the_original(name, there)


@each_model
def test_from_torch_fx_and_back(name: str) -> None:
    theirs = torch.fx.symbolic_trace(zoo[name].build())
    here = clew.from_fx(theirs)
    here.graph.lint()
    assert rows(here.graph) == rows(theirs.graph)
    back = clew.to_fx(here)
    assert rows(back.graph) == rows(theirs.graph)
    assert annotations(back.graph) == annotations(theirs.graph)
    assert set(back.state_dict()) == set(here.state_dict()) == set(theirs.state_dict())
    assert_computes_like_the_original(name, here)


@each_model
def test_text_round_trip(name: str) -> None:
    module = traced(name)
    text = clew.to_text(module.graph)
    read = clew.parse(text, allow=("models",))
    read.lint()
    assert clew.to_text(read) == text
    assert rows(read) == rows(module.graph)
    assert_computes_like_the_original(name, clew.GraphModule(module, read))


@each_model
def test_deepcopy(name: str) -> None:
    module = traced(name)
    copied = copy.deepcopy(module)
    assert rows(copied.graph) == rows(module.graph)
    assert not {id(value) for value in copied.parameters()} & {id(value) for value in module.parameters()}
    assert_computes_like_the_original(name, copied)


@each_model
def test_pickle(name: str) -> None:
    module = traced(name)
    loaded = pickle.loads(pickle.dumps(module))
    assert rows(loaded.graph) == rows(module.graph)
    assert_computes_like_the_original(name, loaded)


@each_model
def test_generated_code_is_a_fixpoint(name: str) -> None:
    module = traced(name)
    again = clew.symbolic_trace(module)
    assert rows(again.graph) == rows(module.graph)
    assert again.code == module.code


@each_model
def test_dead_code_elimination_keeps_results(name: str) -> None:
    module = traced(name)
    module.graph.eliminate_dead_code()
    assert_computes_like_the_original(name, module)
