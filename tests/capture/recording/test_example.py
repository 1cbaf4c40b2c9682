"""Capture from an example: what the graph is, what it assumes, and what it leaves as it was."""

from __future__ import annotations

import copy
import inspect
import operator
import pickle
import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import clew
from clew.errors import CaptureError, GuardError


class Block(nn.Module):
    """Linear layers under names, a parameter of its own, and arithmetic on sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(8, 4))
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor, factor: float = 1.0) -> dict[str, Any]:
        batch, length, _ = x.shape
        hidden = self.second(self.first(x)) * self.scale
        return {"out": hidden.reshape(batch * length, -1) * factor, "length": length}


def targets(graph: clew.Graph, op: str) -> list[Any]:
    return [node.target for node in graph.nodes if node.op == op]


def guard_texts(captured: Any) -> list[str]:
    return [guard.expression for guard in captured.guards]


# ---- the graph -----------------------------------------------------------------------------------------------------


def test_modules_stay_calls_with_their_paths() -> None:
    captured = clew.trace(Block(), args=(torch.randn(2, 3, 4),))
    assert isinstance(captured, clew.GraphModule)
    assert targets(captured.graph, "call_module") == ["first", "second.0", "second.1"]
    captured.graph.lint()


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 4), (5, 7, 4), (1, 9, 4)])
def test_one_graph_holds_at_other_shapes(shape: tuple[int, ...]) -> None:
    model = Block()
    captured = clew.trace(model, args=(torch.randn(2, 3, 4),))
    x = torch.randn(shape)
    wanted, got = model(x), captured(x)
    assert torch.equal(wanted["out"], got["out"])
    assert got["length"] == shape[1] and type(got["length"]) is int


def test_a_function_gives_a_graph_function_with_its_signature() -> None:
    def program(x: torch.Tensor, *, power: int = 2) -> torch.Tensor:
        return x**power

    captured = clew.trace(program, args=(torch.ones(2),), kwargs={"power": 3})
    assert isinstance(captured, clew.GraphFunction)
    assert torch.equal(captured(torch.full((2,), 2.0), power=5), torch.full((2,), 32.0))
    assert str(inspect.signature(captured)) == "(x, *, power=2)"


@pytest.mark.parametrize(
    ("leaves", "expected"),
    [
        (None, ["first", "second.0", "second.1"]),
        ("none", []),
        (nn.Linear, ["first", "second.1"]),
        ((nn.ReLU, nn.Sequential), ["second"]),
        ("second*", ["second"]),
        (lambda module, path: path == "first", ["first"]),
    ],
)
def test_leaf_policy(leaves: Any, expected: list[str]) -> None:
    model, x = Block(), torch.randn(2, 3, 4)
    captured = clew.trace(model, args=(x,), leaves=leaves)
    assert targets(captured.graph, "call_module") == expected
    assert torch.equal(captured(x)["out"], model(x)["out"])


def test_nodes_know_their_line_and_module() -> None:
    captured = clew.trace(Block(), args=(torch.randn(2, 3, 4),))
    node = next(node for node in captured.graph.nodes if node.op == "call_module")
    assert node.source is not None and "self.second(self.first(x))" in node.source.text
    assert node.source.filename == __file__


def test_gradients_and_statistics_follow() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    twin = copy.deepcopy(model)
    captured = clew.trace(twin, args=(torch.randn(6, 4),))
    x = torch.randn(6, 4)
    torch.manual_seed(1)
    model(x).square().sum().backward()
    torch.manual_seed(1)
    captured(x).square().sum().backward()
    for (name, wanted), (_, got) in zip(model.named_parameters(), twin.named_parameters(), strict=True):
        assert torch.equal(wanted.grad, got.grad), name
    assert torch.equal(model[1].running_mean, twin[1].running_mean)


def test_text_copy_and_pickle_of_a_capture() -> None:
    model, x = Block(), torch.randn(2, 3, 4)
    captured = clew.trace(model, args=(x,))
    text, objects = clew.text_and_objects(captured.graph)
    assert clew.same_graph(clew.parse(text, objects=objects), captured.graph)
    for twin in (copy.deepcopy(captured), pickle.loads(pickle.dumps(captured))):
        assert torch.equal(twin(x)["out"], model(x)["out"])
        with pytest.raises(GuardError):
            twin(x[0])


@torch.jit.script
def scripted(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


def test_compiled_functions_and_custom_gradients_stay_one_call() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 10

    captured = clew.trace(lambda x: Doubled.apply(scripted(x, x.shape[0])), args=(torch.ones(2),))
    assert Doubled.apply in targets(captured.graph, "call_function")
    x = torch.ones(3, requires_grad=True)
    captured(x).sum().backward()
    assert torch.equal(captured(x), torch.full((3,), 6.0)) and torch.equal(x.grad, torch.full((3,), 30.0))


def through_numpy(x: torch.Tensor) -> torch.Tensor:
    """A function that the capture cannot see through."""
    return torch.from_numpy(x.numpy() * 2)


clew.wrap("through_numpy")


def test_a_wrapped_function_is_one_call() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return through_numpy(x) + 1

    captured = clew.trace(program, args=(torch.ones(2),))
    assert targets(captured.graph, "call_function").count(through_numpy) == 1
    assert torch.equal(captured(torch.full((3,), 4.0)), torch.full((3,), 9.0))


# ---- guards --------------------------------------------------------------------------------------------------------


def test_a_branch_on_a_size_can_be_a_guard_that_names_its_line() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 4:
            return x[:, :4]
        return x

    assert torch.equal(clew.trace(program, args=(torch.ones(2, 3),))(torch.ones(2, 9)), torch.ones(2, 4))
    captured = clew.trace(program, args=(torch.ones(2, 3),), control_flow="guard")
    assert "x.shape[1] <= 4" in guard_texts(captured)
    assert torch.equal(captured(torch.ones(5, 2)), torch.ones(5, 2))
    with pytest.raises(GuardError, match=r"x\.shape\[1\] > 4") as caught:
        captured(torch.ones(2, 9))
    assert "if x.shape[1] > 4:" in str(caught.value) and __file__ in str(caught.value)


def test_facts_are_guarded_only_where_they_were_asked_for() -> None:
    plain = clew.trace(lambda x: x + 1, args=(torch.ones(2),))
    assert plain(torch.ones(3, dtype=torch.float64)).dtype is torch.float64
    asking = clew.trace(lambda x: x + (1 if x.dtype is torch.float32 else 2), args=(torch.ones(2),))
    with pytest.raises(GuardError, match="dtype"):
        asking(torch.ones(2, dtype=torch.float64))


def test_the_length_of_a_tensor_stays_general() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.sum(0) / len(x)

    captured = clew.trace(program, args=(torch.ones(2, 3),))
    assert torch.equal(captured(torch.ones(5, 3)), torch.ones(3))


def test_training_mode_is_data() -> None:
    model = Block().eval()
    captured = clew.trace(model, args=(torch.randn(2, 3, 4),))
    x = torch.randn(2, 3, 4)
    for mode in (True, False):
        torch.manual_seed(0)
        wanted = model.train(mode)(x)
        torch.manual_seed(0)
        assert torch.equal(captured.train(mode)(x)["out"], wanted["out"])


def test_numbers_are_traced_unless_static() -> None:
    def program(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * n

    general = clew.trace(program, args=(torch.ones(2), 3))
    assert torch.equal(general(torch.ones(2), 5), torch.full((2,), 5.0))
    fixed = clew.trace(program, args=(torch.ones(2), 3), static=["n"])
    with pytest.raises(GuardError):
        fixed(torch.ones(2), 5)


def test_printing_leaves_no_nodes_and_no_guards(capsys: pytest.CaptureFixture[str]) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        print("mean", x.mean(), f"{x.shape[0]} rows")
        return x * 2

    captured = clew.trace(program, args=(torch.ones(2),))
    assert torch.equal(captured(torch.zeros(7)), torch.zeros(7))
    assert "rows" in capsys.readouterr().out


# ---- nothing is left behind ----------------------------------------------------------------------------------------


def test_capture_undoes_what_the_program_does() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x + torch.rand(2)

    x = torch.zeros(2)
    state = torch.get_rng_state()
    captured = clew.trace(program, args=(x,))
    assert torch.equal(x, torch.zeros(2)) and torch.equal(torch.get_rng_state(), state)
    captured(x)
    assert torch.equal(x, torch.ones(2))


def test_a_failing_guard_undoes_what_the_call_did() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2 if x.sum() > 0 else x

    captured = clew.trace(program, args=(torch.ones(2),), control_flow="guard")
    x = torch.full((2,), -5.0)
    with pytest.raises(GuardError):
        captured(x)
    assert torch.equal(x, torch.full((2,), -5.0))


def test_the_program_s_own_error_is_unchanged_and_everything_is_put_back() -> None:
    before = (nn.Module.__call__, torch.is_grad_enabled, torch.manual_seed, vars(torch.autograd.Function)["apply"])

    def program(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        clew.trace(program, args=(torch.ones(2),))
    after = (nn.Module.__call__, torch.is_grad_enabled, torch.manual_seed, vars(torch.autograd.Function)["apply"])
    assert before == after


def test_an_error_of_a_layer_that_is_caught_is_followed() -> None:
    class Careful(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                return self.layer(x)
            except RuntimeError:
                return x

    captured = clew.trace(Careful(), args=(torch.ones(2, 3),))
    x = torch.ones(2, 5)
    assert captured(x) is x
    with pytest.raises(GuardError, match="RuntimeError"):
        captured(torch.ones(2, 4))
    fitting = clew.trace(Careful(), args=(torch.ones(2, 4),))
    assert fitting(torch.ones(3, 4)).shape == (3, 4)
    assert fitting(x) is x  # the handler is a path of the graph


def test_capture_inside_capture_is_refused() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return clew.trace(torch.nn.functional.relu, args=(x,))(x)

    with pytest.raises(CaptureError, match="inside another"):
        clew.trace(program, args=(torch.ones(2),))


def test_captures_in_several_threads() -> None:
    results: list[bool] = []

    def work(seed: int) -> None:
        torch.manual_seed(seed)
        model, x = Block(), torch.randn(2, 3, 4)
        captured = clew.trace(model, args=(x,))
        y = torch.randn(4, 5, 4)
        results.append(torch.equal(captured(y)["out"], model(y)["out"]))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 6


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda x: torch.tensor(x.numpy().ctypes.data), "numpy"),
        (lambda x: torch.func.functionalize(torch.sin)(x), "functionalize"),
        (lambda x: torch.compile(torch.sin)(x), "compile"),
    ],
)
def test_what_cannot_be_followed_is_refused(program: Any, words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        clew.trace(program, args=(torch.ones(2),))


def test_wrong_arguments_are_python_s_own_error() -> None:
    with pytest.raises(TypeError):
        clew.trace(lambda x: x, args=(torch.ones(1), torch.ones(1)))
    with pytest.raises(CaptureError, match="names no modules"):
        clew.trace(Block(), args=(torch.randn(2, 3, 4),), leaves=3)


# ---- lazy ----------------------------------------------------------------------------------------------------------


def test_lazy_captures_again_when_no_guard_holds() -> None:
    @clew.trace
    def program(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.ndim > 1 else x - 1

    assert torch.equal(program(torch.ones(1)), torch.zeros(1))
    assert torch.equal(program(torch.ones(5, 1)), torch.full((5, 1), 2.0))
    assert torch.equal(program(torch.ones(2)), torch.zeros(2))
    assert len(program.captures) == 2
    assert program.__name__ == "program"


def test_lazy_has_a_limit() -> None:
    program = clew.trace(lambda x: x * operator.index(x.shape[0]), limit=2)
    program(torch.ones(1))
    program(torch.ones(2))
    with pytest.warns(RuntimeWarning, match="captures"):
        assert torch.equal(program(torch.ones(3)), torch.full((3,), 3.0))


def test_lazy_follows_the_mode_of_a_module() -> None:
    class Doubling(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if self.training else x

    module = Doubling()
    program = clew.trace(module)
    assert torch.equal(program(torch.ones(2)), torch.full((2,), 2.0))
    module.eval()
    assert torch.equal(program(torch.ones(2)), torch.ones(2))


def test_the_first_call_draws_the_same_random_numbers() -> None:
    program = clew.trace(lambda x: x + torch.rand(2))
    for _ in range(2):
        torch.manual_seed(3)
        got = program(torch.zeros(2))
        torch.manual_seed(3)
        assert torch.equal(got, torch.rand(2))


# ---- without computing ---------------------------------------------------------------------------------------------


def test_a_model_on_the_meta_device_is_captured_without_computing() -> None:
    with torch.device("meta"):
        model, x = Block(), torch.randn(2, 3, 4)
    captured = clew.trace(model, args=(x,))
    assert targets(captured.graph, "call_module") == ["first", "second.0", "second.1"]
    real = Block()
    captured.to_empty(device="cpu").load_state_dict(real.state_dict(), strict=False)
    y = torch.randn(3, 5, 4)
    assert torch.equal(captured(y)["out"], real(y)["out"])


def test_a_model_of_fake_tensors_is_captured() -> None:
    with FakeTensorMode():
        captured = clew.trace(Block(), args=(torch.randn(2, 3, 4),))
    assert targets(captured.graph, "call_module") == ["first", "second.0", "second.1"]


class MovesItself(nn.Module):
    """Sees to it that a layer has the dtype of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.layer = self.layer.to(x.dtype)
        return self.layer(x)


def test_a_module_that_is_there_already_need_not_be_moved() -> None:
    module = MovesItself()
    captured = clew.trace(module, args=(torch.ones(3, 2),))
    assert torch.equal(module(torch.ones(1, 2)), captured(torch.ones(1, 2)))
    with pytest.raises(GuardError):
        captured(torch.ones(3, 2, dtype=torch.float64))


def test_moving_a_module_is_refused() -> None:
    module = MovesItself()
    with pytest.raises(CaptureError, match="moving a module"):
        clew.trace(module, args=(torch.ones(3, 2, dtype=torch.float64),))
    assert module.layer.weight.dtype is torch.float32
