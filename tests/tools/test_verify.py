"""verify: finds every kind of difference, names the node, respects guards, and leaves everything as it was."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import clew
from clew.errors import ClewError, GraphError, NoExample, TraceWarning, VerificationError
from clew.ir.format import format_target
from clew.tools.verify import verify

from . import programs
from .programs import Net, node_named


def random(*shape: int, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3)).requires_grad_(grad)


def pair() -> tuple[torch.Tensor, torch.Tensor]:
    return random(2, 3) + 1, random(2, 3) + 2


def statuses(found: Any) -> dict[str, str]:
    return {case.name: case.status for case in found.cases}


# ---- right captures ----------------------------------------------------------------------------------------------


def test_a_right_function_is_equal_on_all_it_makes() -> None:
    found = verify(clew.trace(programs.arithmetic, args=pair()), programs.arithmetic, (pair(), {}))
    names = ("example", "noise", "batch of 1", "batch of 3", "batch of 4")
    assert statuses(found) == dict.fromkeys(names, "equal")
    assert found.ok and bool(found)
    found.raise_if_wrong()


@pytest.mark.parametrize("training", [True, False])
def test_a_right_module_is_equal(training: bool) -> None:
    model = Net().train(training)
    call = ((random(3, 4, grad=True),), {})
    found = verify(clew.trace(model, *call), model, call)
    assert found.ok, str(found)
    batch_of_one = next(case for case in found.cases if case.name == "batch of 1")
    assert batch_of_one.detail == ("both raise ValueError" if training else "")


def test_several_calls_and_named_arguments() -> None:
    x, y = pair()
    found = verify(clew.trace(programs.arithmetic, args=(x, y)), programs.arithmetic, [((x, y), {}), ((x,), {"y": y})])
    assert [case.name for case in found.cases][:3] == ["example 1", "example 2", "noise"]
    assert found.ok


def test_a_bare_graph_is_taken() -> None:
    captured = clew.trace(programs.scaled, args=(random(2, 3),))
    assert verify(captured.graph, programs.scaled, ((random(2, 3),), {})).ok


def test_a_symbolic_trace_can_be_verified() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    assert verify(clew.symbolic_trace(model), model, ((random(2, 4),), {})).ok


def test_nan_equals_nan() -> None:
    def root(x: torch.Tensor) -> torch.Tensor:
        return x.sqrt()

    x = torch.tensor([-1.0, 4.0])
    assert verify(clew.trace(root, args=(x,)), root, ((x,), {})).ok


# ---- wrong captures, and the node that is named ------------------------------------------------------------------


def wrong_case(captured: Any, fn: Any, *args: Any, name: str = "example", **options: Any) -> Any:
    found = verify(captured, fn, (args, {}), **options)
    assert not found.ok
    return next(case for case in found.cases if case.name == name)


@pytest.mark.parametrize(("name", "target"), [("first", operator.truediv), ("second", operator.sub), ("relu", "tanh")])
def test_another_call_is_named(name: str, target: Any) -> None:
    x, y = pair()
    captured = clew.trace(programs.arithmetic, args=(x, y))
    node = node_named(captured, name)
    original, node.target = node.target, target
    case = wrong_case(captured, programs.arithmetic, x, y)
    assert case.status == "WRONG" and case.node == name
    assert f"calls {format_target(target)}, the original {format_target(original)}" in case.detail
    assert "programs.py" in case.line


def test_another_argument_is_named() -> None:
    x, y = pair()
    captured = clew.trace(programs.arithmetic, args=(x, y))
    node_named(captured, "first").args = (node_named(captured, "x"), 3)
    case = wrong_case(captured, programs.arithmetic, x, y)
    assert case.node == "first"
    assert case.detail.startswith("result[0, ")


def test_a_missing_call_is_told() -> None:
    x, y = pair()
    captured = clew.trace(programs.arithmetic, args=(-x, -y))
    relu = node_named(captured, "relu")
    relu.replace_all_uses_with(node_named(captured, "second"))
    captured.graph.erase_node(relu)
    case = wrong_case(captured, programs.arithmetic, -x, -y)
    assert "the captured graph calls nothing, the original relu" in case.detail


def test_a_right_rewrite_is_not_blamed_for_a_wrong_one() -> None:
    x, y = pair()
    captured = clew.trace(programs.arithmetic, args=(x, y))
    first = node_named(captured, "first")
    first.target, first.args = torch.add, (node_named(captured, "x"),) * 2
    assert verify(captured, programs.arithmetic, ((x, y), {})).ok
    node_named(captured, "relu").target = "tanh"
    assert wrong_case(captured, programs.arithmetic, x, y).node == "relu"


def test_a_value_that_went_through_a_write_is_traced_to_its_call() -> None:
    def assigning(x: torch.Tensor) -> torch.Tensor:
        made = torch.empty(x.shape)
        made[:] = x
        made[:, 0] = x[:, 0].mul(3)
        return made

    x = random(2, 3)
    captured = clew.trace(assigning, args=(x,))
    assert verify(captured, assigning, ((x,), {})).ok
    node_named(captured, "mul").target = "add"
    assert wrong_case(captured, assigning, x).node == "mul"


def test_a_call_that_fails_is_named() -> None:
    x, y = pair()
    captured = clew.trace(programs.arithmetic, args=(x, y))
    node_named(captured, "second").target = operator.index
    case = wrong_case(captured, programs.arithmetic, x, y)
    assert case.node == "second"
    assert "the captured program raises TypeError" in case.detail and "the original returns" in case.detail


def test_a_wrong_dtype_is_found() -> None:
    captured = clew.trace(programs.scaled, args=(random(2, 3),))
    mul = node_named(captured, "mul")
    with captured.graph.inserting_after(mul):
        double = captured.graph.call_method("double", (mul,))
    captured.graph.output_node().args = (double,)
    case = wrong_case(captured, programs.scaled, random(2, 3))
    assert "result has dtype torch.float64, not torch.float32" in case.detail
    assert case.node == "double"


def test_a_wrong_structure_is_found() -> None:
    captured = clew.trace(programs.scaled, args=(random(2, 3),))
    captured.graph.output_node().args = ((node_named(captured, "mul"),),)
    case = wrong_case(captured, programs.scaled, random(2, 3))
    assert "result is of type tuple, not Tensor" in case.detail
    assert case.node == "output"


class Two(NamedTuple):
    a: Any
    b: Any


@dataclass
class Held:
    a: Any


def test_structure_of_results_and_arguments() -> None:
    def nest(held: Held, two: Two) -> Any:
        return Two(held.a + 1, [two.b, {"k": two.a.shape[0]}])

    call = ((Held(random(2, 3)), Two(random(2, 3), random(2, 1))), {})
    captured = clew.trace(nest, *call)
    assert verify(captured, nest, call).ok
    node_named(captured, "add").args = (node_named(captured, "add").args[0], 2)
    found = verify(captured, nest, call)
    assert found.cases[0].detail.startswith("result.a[0, 0] is") and found.cases[0].node == "add"


# ---- effects -----------------------------------------------------------------------------------------------------


def test_a_wrong_write_to_an_argument_is_found() -> None:
    x, y = pair()
    captured = clew.trace(programs.writing, args=(x, y))
    assert verify(captured, programs.writing, ((x, y), {})).ok
    node_named(captured, "add_").target = "add"
    case = wrong_case(captured, programs.writing, x, y)
    assert case.detail.startswith("argument 0 afterwards[0, 0] is") and case.node == "add_"


def test_a_wrong_write_to_a_buffer_is_found() -> None:
    model = Net()
    captured = clew.trace(model, args=(random(3, 4),))
    node_named(captured, "add_").target = "sub_"
    case = wrong_case(captured, model, random(3, 4))
    assert case.detail.startswith("count afterwards is -1.0, not 1.0") and case.node == "add_"
    assert float(model.count) == 0


def test_other_random_numbers_are_found() -> None:
    captured = clew.trace(programs.drawing, args=(random(2, 3),))
    assert verify(captured, programs.drawing, ((random(2, 3),), {})).ok
    node_named(captured, "rand").target = torch.randn
    case = wrong_case(captured, programs.drawing, random(2, 3))
    assert case.detail.startswith("result[0, 0] is") and case.node == "rand"


def test_a_stream_used_otherwise_is_found() -> None:
    captured = clew.trace(programs.scaled, args=(random(2, 3),))
    with captured.graph.inserting_before(captured.graph.output_node()):
        drawn = captured.graph.call_function(torch.rand, (1,))
    case = wrong_case(captured, programs.scaled, random(2, 3))
    assert case.detail.startswith("the random state of torch") and case.node == drawn.name


def test_a_generator_of_the_program_is_put_back() -> None:
    before = programs.GENERATOR.get_state()
    captured = clew.trace(programs.drawing_from_own, args=(random(2, 3),))
    assert verify(captured, programs.drawing_from_own, ((random(2, 3),), {})).ok
    assert torch.equal(programs.GENERATOR.get_state(), before)


def test_a_copy_in_the_place_of_a_view_is_found() -> None:
    def view(x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)

    captured = clew.trace(view, args=(random(2, 3),))
    assert verify(captured, view, ((random(2, 3),), {})).ok
    made = node_named(captured, "view")
    with captured.graph.inserting_after(made):
        captured.graph.output_node().args = (captured.graph.call_method("clone", (made,)),)
    case = wrong_case(captured, view, random(2, 3))
    assert "it does not hold that result shares memory with argument 0" in case.detail and case.node == "clone"


def test_a_change_that_only_the_original_makes_is_found() -> None:
    class Counter(torch.nn.Module):
        calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x

    model = Counter()
    model.calls = 0
    with pytest.warns(TraceWarning):
        traced = clew.symbolic_trace(model)
    case = wrong_case(traced, model, random(2))
    assert "the changed attributes" in case.detail
    assert model.calls == 0


# ---- gradients ---------------------------------------------------------------------------------------------------


def detached(model: Any, x: torch.Tensor) -> Any:
    captured = clew.trace(model, args=(x,))
    layer = node_named(captured, "hidden")
    with captured.graph.inserting_before(layer):
        cut = captured.graph.call_method("detach", (layer.args[0],))
    layer.args = (cut,)
    return captured


def test_wrong_gradients_of_arguments_are_found() -> None:
    x = random(3, 4, grad=True)
    model = Net()
    case = wrong_case(detached(model, x), model, x)
    assert case.detail.startswith("the gradient of argument 0") and case.node == "detach"
    assert verify(detached(model, x), model, ((x,), {}), gradients=False).ok
    assert x.grad is None


def test_wrong_gradients_of_parameters_are_found() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
    captured = clew.trace(model, args=(random(2, 4),))
    last = list(captured.graph.nodes)[-2]
    with captured.graph.inserting_before(last):
        last.args = (captured.graph.call_method("detach", last.args),)
    case = wrong_case(captured, model, random(2, 4))
    assert case.detail.startswith("the gradient of 0.") and case.node == "detach"
    assert all(parameter.grad is None for parameter in model.parameters())


# ---- guards and errors -------------------------------------------------------------------------------------------


def test_a_guard_is_reported_and_no_failure() -> None:
    captured = clew.trace(programs.branching, args=(random(2, 3),), control_flow="guard")
    found = verify(captured, programs.branching, ((random(2, 3),), {}))
    assert statuses(found)["batch of 4"] == "guarded" and found.ok
    case = found.cases[-1]
    assert case.detail == "the graph assumed x.shape[0] <= 3, which does not hold"
    assert "if x.shape[0] > 3:" in case.line
    assert "4 equal, 1 guarded" in str(found)


def test_a_guard_that_was_removed_is_missed() -> None:
    captured = clew.trace(programs.branching, args=(random(2, 3),), control_flow="guard")
    captured.guards.drop()
    found = verify(captured, programs.branching, ((random(2, 3),), {}))
    assert statuses(found)["batch of 4"] == "WRONG" and statuses(found)["example"] == "equal"
    assert found.cases[-1].node == "sub"


def test_a_guard_that_fails_after_a_write_is_wrong() -> None:
    def late(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2 if x.mul(0).add(1).sum() < 7 else x

    captured = clew.trace(late, args=(random(2, 3),), control_flow="guard")
    assert verify(captured, late, ((random(2, 3),), {})).ok
    bare = clew.GraphFunction(captured.root, captured.graph)
    case = wrong_case(bare, late, random(2, 3), name="batch of 4")
    assert case.detail.startswith("a guard failed after something was changed: argument 0 afterwards")


def test_an_error_only_of_the_original_is_wrong() -> None:
    def picky(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 3:
            raise KeyError("too many")
        return x - 1

    captured = clew.trace(picky, args=(random(2, 3),), control_flow="guard")
    captured.guards.drop()
    case = wrong_case(captured, picky, random(2, 3), name="batch of 4")
    assert case.detail == "the captured program returns, the original raises KeyError: 'too many'"


# ---- around ------------------------------------------------------------------------------------------------------


def test_everything_is_as_it_was() -> None:
    model, x = Net(), random(3, 4, grad=True)
    captured = clew.trace(model, args=(x,))
    node_named(captured, "add_").target = "sub_"
    held = (x * 1).sum() + model.layer.weight.sum()
    model.layer.weight.grad = torch.ones(4, 4)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    stream, data = torch.get_rng_state(), x.detach().clone()
    verify(captured, model, ((x,), {}))
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), stream) and torch.equal(x, data) and x.grad is None
    assert torch.equal(model.layer.weight.grad, torch.ones(4, 4))
    held.backward()


def test_integers_stay_in_range_and_masks_stay_masks() -> None:
    def embed(tokens: torch.Tensor, mask: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        assert int(mask.max()) <= 1
        return table[tokens] * mask[..., None]

    tokens, mask = torch.tensor([[0, 4], [2, 1]]), torch.tensor([[1, 0], [1, 1]])
    call = ((tokens, mask, random(5, 3)), {})
    found = verify(clew.trace(embed, *call), embed, call)
    assert found.ok and all("raise" not in case.detail for case in found.cases)


def test_tolerance() -> None:
    x, y = pair()
    captured = clew.trace(programs.arithmetic, args=(x, y))
    node_named(captured, "first").args = (node_named(captured, "x"), 2.00001)
    assert not verify(captured, programs.arithmetic, ((x, y), {}))
    assert verify(captured, programs.arithmetic, ((x, y), {}), rtol=1e-3, atol=1e-3)


def test_report_as_text_and_data() -> None:
    x, y = pair()
    captured = clew.trace(programs.arithmetic, args=(x, y))
    node_named(captured, "second").target = operator.sub
    found = verify(captured, programs.arithmetic, ((x, y), {}))
    text, data = str(found), found.to_dict()
    assert text.startswith("arithmetic: ") and "first at node second, " in text
    assert data["ok"] is False and data["cases"][0]["node"] == "second"
    with pytest.raises(VerificationError, match="is not the original\n(.|\n)*where: node second, "):
        found.raise_if_wrong()


def test_without_an_original_only_the_rules_are_checked() -> None:
    captured = clew.trace(programs.scaled, args=(random(2, 3),))
    assert verify(captured.graph).ok
    broken = clew.Graph()
    node = broken.placeholder("x")
    broken.output(node)
    broken.output_node().append(node)
    with pytest.raises(GraphError):
        verify(broken)


class Counted(torch.nn.Module):
    """Scales, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.full((3,), 2.0))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x * self.scale


def test_state_that_was_edited_before_is_not_held_against_the_results() -> None:
    model = Counted()
    captured = clew.trace(model, (random(2, 3),))
    captured.scale = torch.nn.Parameter(model.scale.detach() * 0.5)
    (mul,) = captured.graph.find_nodes(op="call_function", target=operator.mul)
    with captured.graph.inserting_after(mul):
        doubled = captured.graph.call_function(operator.mul, (mul, 2.0))
    mul.replace_all_uses_with(doubled, delete_user_cb=lambda user: user is not doubled)
    captured.calls.fill_(7)  # it was called before
    assert verify(captured, model, ((random(2, 3),), {})).ok


def test_an_effect_on_state_that_was_edited_before_still_counts() -> None:
    model = Counted()
    captured = clew.trace(model, (random(2, 3),))
    captured.calls = torch.tensor(7.0)
    captured.graph.erase_node(node_named(captured, "add_"))
    case = verify(captured, model, ((random(2, 3),), {})).cases[0]
    assert case.status == "WRONG" and case.detail.startswith("whether calls is written is False, not True")


@pytest.mark.parametrize("inputs", [(), 3, [1, 2], (random(2), {})])
def test_inputs_that_are_none(inputs: Any) -> None:
    with pytest.raises(NoExample, match="inputs="):
        verify(clew.trace(programs.scaled, args=(random(2, 3),)), programs.scaled, inputs)


@pytest.mark.parametrize("make", [np.ones, jnp.ones, tf.ones], ids=["numpy", "jax", "tensorflow"])
def test_inputs_of_other_frameworks_that_are_none(make: Any) -> None:
    def scaled(x: Any) -> Any:
        return x * 2

    captured = clew.trace(scaled, (make(2),))
    with pytest.raises(NoExample, match="the inputs are no calls"):
        verify(captured, scaled, make(2))
    del captured._example
    with pytest.raises(NoExample, match="there is nothing to run the program on"):
        verify(captured, scaled)


def test_the_example_is_used_as_long_as_it_is_there() -> None:
    def scaled(parts: dict[str, Any], power: int) -> torch.Tensor:
        return parts["x"].select(0, 1) * parts["ids"].sum() ** power

    given = ({"x": random(2, 3), "ids": torch.tensor([7, 8])}, 2)
    captured = clew.trace(scaled, given)
    assert statuses(verify(captured, scaled))["example"] == "equal"
    del given
    assert verify(captured, scaled).ok
    with pytest.raises(NoExample, match="the type of 'parts'"):
        verify(captured.graph, scaled)


def test_inputs_are_made_from_types() -> None:
    captured = clew.trace(programs.scaled, args=(random(2, 3),))
    node_named(captured, "x").value_type = clew.parse_type("f32[n, 3]")
    found = verify(captured, programs.scaled)
    assert found.ok and statuses(found)["batch of 1"] == "equal"


def test_what_is_no_graph() -> None:
    with pytest.raises(ClewError, match="lazy.captures"):
        verify(clew.trace(programs.scaled), programs.scaled)
    with pytest.raises(ClewError, match="an int is no graph"):
        verify(3, programs.scaled)


def test_inputs_that_do_not_fit_are_no_proof() -> None:
    captured = clew.trace(programs.scaled, args=(random(2, 3),))
    for call in [((), {}), ((random(2, 3),), {"nothing": 1})]:
        with pytest.raises(NoExample, match="the inputs do not fit"):
            verify(captured, programs.scaled, call)
