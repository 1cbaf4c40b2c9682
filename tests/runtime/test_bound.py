"""Code that is bound to its modules does what the plain code does, whatever becomes of the modules later."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize
from torch.overrides import TorchFunctionMode

import clew
from clew.frameworks.torch.modules.leaf_expressions import SPELLINGS, digest_of, spelling_of
from tests.control_flow.examination import outline


class Model(nn.Module):
    """A module with a nest, a setting, a buffer, and small modules of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.inner = nn.Sequential(nn.LayerNorm(4), nn.ReLU(), nn.Dropout(0.5))
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.inner(x) + self.shift


def bound_pair() -> tuple[Model, Any, Tensor]:
    """A model, its capture with bound code, and an input."""
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(3, 4)
    captured = clew.trace(model, args=(x,))
    for _ in range(3):
        captured(x)
    assert is_bound(captured)
    return model, captured, x


def is_bound(captured: Any) -> bool:
    """Whether the next call takes the bound code."""
    running = vars(captured)["_running"]
    return running is not None and running[2] is not None and running[2]() is True


def check(captured: Any, x: Tensor) -> None:
    """A call gives what the plain code gives, however often it is made."""
    for _ in range(3):
        torch.testing.assert_close(captured(x), captured.forward(x), rtol=0, atol=0)


def test_small_modules_are_not_called():
    _, captured, x = bound_pair()
    called: list[str] = []
    before = nn.Module._call_impl

    def counting(self: Any, *args: Any, **kwargs: Any) -> Any:
        called.append(type(self).__name__)
        return before(self, *args, **kwargs)

    assert "self.layers" in captured.code  # what people read is as it was
    running = vars(captured)["_running"]
    nn.Module._call_impl = counting
    try:
        running[1](captured, x)
    finally:
        nn.Module._call_impl = before
    assert called == []


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward", "full_backward_pre"])
def test_hooks_added_later_run(kind: str):
    model, captured, x = bound_pair()
    seen: list[int] = []
    layer = captured.get_submodule("layers.1")
    handle = getattr(layer, f"register_{kind}_hook")(lambda *_: seen.append(1))
    captured(x.clone().requires_grad_()).sum().backward()
    assert seen == [1]
    handle.remove()
    torch.testing.assert_close(captured(x), model(x), rtol=0, atol=0)
    assert seen == [1]


def test_hooks_put_into_the_dict_by_hand_run():
    model, captured, x = bound_pair()
    layer = captured.get_submodule("layers.0")
    layer._forward_hooks = type(layer._forward_hooks)()
    layer._forward_hooks[7] = lambda module, args, result: result + 1
    check(captured, x)
    assert captured.get_submodule("layers.0") is model.layers[0]


def test_hooks_of_the_captured_module_itself_run():
    _, captured, x = bound_pair()
    plain = captured(x)
    handle = captured.register_forward_hook(lambda module, args, result: result + 1)
    torch.testing.assert_close(captured(x), plain + 1)
    handle.remove()
    torch.testing.assert_close(captured(x), plain)


def test_hooks_of_all_modules_run():
    x = torch.randn(3, 4)
    captured = clew.trace(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), (x,))
    seen: list[str] = []
    handle = nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(type(module).__name__))
    try:
        captured(x)
    finally:
        handle.remove()
    assert {"Linear", "ReLU"} <= set(seen)


def test_hooks_of_all_modules_are_refused_where_the_graph_does_not_call_some():
    _, captured, x = bound_pair()
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        with pytest.raises(clew.GuardError, match="the hooks of all modules are unchanged"):
            captured(x)
    finally:
        handle.remove()
    captured(x)


def set_weight(model: Model) -> None:
    model.layers[0].weight = nn.Parameter(torch.ones(4, 4))


def set_data(model: Model) -> None:
    model.layers[0].weight.data = torch.ones(4, 4)


def drop_bias(model: Model) -> None:
    model.layers[1].bias = None


def load(model: Model) -> None:
    model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()})


def load_assigning(model: Model) -> None:
    model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()}, assign=True)


def own_forward(model: Model) -> None:
    model.layers[0].forward = lambda x: x * 7


def own_forward_in_exchange(model: Model) -> None:
    del model.layers[0].in_features
    model.layers[0].forward = lambda x: x * 7


def setting(model: Model) -> None:
    model.inner[0].eps = 0.5


def part_training(model: Model) -> None:
    model.inner[0].training = True  # a LayerNorm does the same in both modes


def other_class(model: Model) -> None:
    class Doubled(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * 2

    model.layers[0].__class__ = Doubled


def parametrized(model: Model) -> None:
    parametrizations.weight_norm(model.layers[0])


def parametrized_double(model: Model) -> None:
    class Double(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    parametrize.register_parametrization(model.layers[1], "weight", Double())


def old_weight_norm(model: Model) -> None:
    nn.utils.weight_norm(model.layers[0])


def plain_tensor(model: Model) -> None:
    del model.layers[0].weight
    model.layers[0].weight = torch.ones(4, 4)


def shadowed(model: Model) -> None:
    model.layers[0].__dict__["weight"] = torch.ones(4, 4)


def state_of_another(model: Model) -> None:
    other = nn.Linear(4, 4)
    other.register_forward_hook(lambda module, args, result: result + 1)
    model.layers[0].__dict__.update(other.__dict__)


CHANGES = [
    set_weight, set_data, drop_bias, load, load_assigning, own_forward, own_forward_in_exchange, setting, part_training,
    other_class, parametrized, parametrized_double, old_weight_norm, plain_tensor, shadowed, state_of_another,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_becomes_of_shared_parts_counts(change: Callable[[Any], None]):
    model, captured, x = bound_pair()
    change(model)
    check(captured, x)


@pytest.mark.parametrize("change", [lambda m: m.double(), lambda m: m.half().float()], ids=["double", "half"])
def test_moved_modules_count(change: Callable[[Any], Any]):
    _, captured, x = bound_pair()
    change(captured)
    check(captured, x.to(captured.get_submodule("layers.0").weight.dtype))


def test_a_part_in_the_place_of_another_counts():
    _, captured, x = bound_pair()
    captured.get_submodule("layers").add_module("1", nn.Linear(4, 4))
    check(captured, x)
    assert is_bound(captured)


def test_dropout_that_is_set_to_training_drops():
    _, captured, x = bound_pair()
    captured.get_submodule("inner.2").train()
    torch.manual_seed(3)
    first = captured(x)
    torch.manual_seed(3)
    torch.testing.assert_close(captured.forward(x), first)
    assert not torch.equal(first, captured(x))


@pytest.mark.parametrize("name", ["relu", "layer_norm", "dropout"])
def test_functions_of_torch_that_are_replaced_count(name: str, monkeypatch: pytest.MonkeyPatch):
    model, captured, x = bound_pair()
    monkeypatch.setattr(F, name, lambda x, *args, **kwargs: x * 2)
    check(captured, x)


def test_a_forward_that_is_replaced_counts(monkeypatch: pytest.MonkeyPatch):
    model, captured, x = bound_pair()
    monkeypatch.setattr(nn.Linear, "forward", lambda self, x: x * 3)
    check(captured, x)


def test_modes_see_the_same_functions():
    class Seeing(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(function)
            return function(*args, **(kwargs or {}))

    _, captured, x = bound_pair()
    seen: list[Any] = []
    with Seeing():
        captured.forward(x)
    expected, seen = seen, []
    with Seeing():
        captured(x)
    assert [function for function in seen if function in expected] == expected
    assert is_bound(captured)


def test_captured_again_it_gives_the_same_graph():
    _, captured, x = bound_pair()
    again = clew.trace(captured, args=(x,))
    assert outline(again.graph) == outline(captured.graph)


def test_errors_show_the_lines_that_people_read():
    _, captured, x = bound_pair()
    with pytest.raises(RuntimeError) as caught:
        captured(torch.randn(3, 5))
    text = "".join(traceback.format_exception(caught.value))
    assert 'getattr(self.layers, "0")(x)' in text
    assert any("which comes from" in note for note in caught.value.__notes__)


def test_an_edit_of_the_graph_counts():
    _, captured, x = bound_pair()
    before = captured(x)
    output = captured.graph.find_nodes(op="output")[0]
    with captured.graph.inserting_before(output):
        output.args = (captured.graph.call_function(torch.neg, (output.args[0],)),)
    for _ in range(3):
        torch.testing.assert_close(captured(x), -before)


def test_copies_are_bound_to_their_own_parts():
    model, captured, x = bound_pair()
    expected = captured(x)
    for twin in (copy.deepcopy(captured), pickle.loads(pickle.dumps(captured))):
        for _ in range(3):
            torch.testing.assert_close(twin(x), expected)
        twin.get_submodule("layers.0").weight.data.zero_()
        assert not torch.equal(twin(x), expected)
        torch.testing.assert_close(captured(x), expected)


def test_compilers_and_tracers_of_torch_take_it():
    model, captured, x = bound_pair()
    torch.testing.assert_close(torch.jit.trace(captured, (x,), check_trace=False)(x), model(x))
    assert is_bound(captured)
    torch.testing.assert_close(torch.compile(captured, backend="eager", fullgraph=True)(x), model(x))
    for _ in range(2):
        captured(x)  # the compiler has left a mark on it
    assert is_bound(captured)


def test_gradients_are_the_same():
    model, captured, x = bound_pair()
    captured(x).sum().backward()
    grads = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad()
    model(x).sum().backward()
    for mine, parameter in zip(grads, model.parameters(), strict=True):
        torch.testing.assert_close(mine, parameter.grad, rtol=0, atol=0)


def test_lazy_graphs_are_bound_to_the_original():
    torch.manual_seed(0)
    model, x = Model().eval(), torch.randn(3, 4)
    lazy = clew.trace(model)
    for _ in range(4):
        torch.testing.assert_close(lazy(x), model(x), rtol=0, atol=0)
    assert lazy.captures[0]._running[2]() is True
    set_weight(model)
    torch.testing.assert_close(lazy(x), model(x), rtol=0, atol=0)
    assert len(lazy.captures) == 1


def test_a_class_with_a_look_up_of_its_own_is_asked():
    class Odd(Model):
        def __getattr__(self, name: str) -> Any:
            asked.append(name)
            return super().__getattr__(name)

    asked: list[str] = []
    model, x = Odd().eval(), torch.randn(3, 4)
    lazy = clew.trace(model)
    for _ in range(3):
        lazy(x)
    asked.clear()
    lazy(x)
    assert "shift" in asked


def test_graphs_with_calls_that_nobody_knows_stay_plain():
    def unknown(x: Tensor) -> Tensor:
        return x + 1

    torch.manual_seed(0)
    x = torch.randn(3, 4)
    graph = clew.Graph()
    value = graph.call_module("layers.0", (graph.placeholder("x"),))
    graph.output(graph.call_module("layers.1", (graph.call_function(unknown, (value,)),)))
    module = clew.GraphModule(Model(), graph)
    for _ in range(3):
        module(x)
    assert not is_bound(module)


EXAMPLES: dict[type, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    nn.Linear: (lambda: nn.Linear(4, 3, bias=False), lambda: torch.randn(2, 4)),
    nn.Conv1d: (lambda: nn.Conv1d(3, 4, 3, padding=1, padding_mode="circular"), lambda: torch.randn(2, 3, 8)),
    nn.Conv2d: (lambda: nn.Conv2d(4, 4, 3, 2, 1, groups=2), lambda: torch.randn(2, 4, 8, 8)),
    nn.BatchNorm1d: (lambda: nn.BatchNorm1d(3, momentum=None), lambda: torch.randn(4, 3)),
    nn.BatchNorm2d: (lambda: nn.BatchNorm2d(3), lambda: torch.randn(4, 3, 2, 2)),
    nn.LayerNorm: (lambda: nn.LayerNorm(4, elementwise_affine=False), lambda: torch.randn(2, 4)),
    nn.Embedding: (lambda: nn.Embedding(9, 3, padding_idx=2), lambda: torch.tensor([[1, 2], [3, 8]])),
    nn.Dropout: (lambda: nn.Dropout(0.3), lambda: torch.randn(4)),
    nn.ReLU: (lambda: nn.ReLU(inplace=True), lambda: torch.randn(4)),
    nn.SiLU: (nn.SiLU, lambda: torch.randn(4)),
    nn.GELU: (lambda: nn.GELU("tanh"), lambda: torch.randn(4)),
    nn.Tanh: (nn.Tanh, lambda: torch.randn(4)),
    nn.Sigmoid: (nn.Sigmoid, lambda: torch.randn(4)),
    nn.MaxPool2d: (lambda: nn.MaxPool2d(3, 2, 1), lambda: torch.randn(1, 2, 8, 8)),
    nn.AvgPool2d: (lambda: nn.AvgPool2d(2), lambda: torch.randn(1, 2, 8, 8)),
    nn.AdaptiveAvgPool2d: (lambda: nn.AdaptiveAvgPool2d((1, None)), lambda: torch.randn(1, 2, 8, 8)),
    nn.Flatten: (nn.Flatten, lambda: torch.randn(2, 3, 4)),
    nn.Identity: (nn.Identity, lambda: torch.randn(4)),
}


class Around(nn.Module):
    """One module, on a value that is not an argument."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x.clone())


@pytest.mark.parametrize("training", [False, True], ids=["evaluating", "training"])
@pytest.mark.parametrize("kind", SPELLINGS, ids=lambda kind: kind.__name__)
def test_each_spelling_is_the_module(kind: type, training: bool):
    make, feed = EXAMPLES[kind]
    torch.manual_seed(0)
    model, x = Around(make()).train(training), feed()
    twin = copy.deepcopy(model)
    captured = clew.trace(model, args=(x,))
    for turn in range(4):
        torch.manual_seed(turn)
        expected = twin(x)
        torch.manual_seed(turn)
        torch.testing.assert_close(captured(x), expected, rtol=0, atol=0)
    assert is_bound(captured)
    for mine, theirs in zip(captured.state_dict().values(), twin.state_dict().values(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


@pytest.mark.parametrize("kind", SPELLINGS, ids=lambda kind: kind.__name__)
def test_spellings_are_written_after_the_forward_of_this_torch(kind: type):
    assert spelling_of(kind) is SPELLINGS[kind], (
        f"torch {torch.__version__} has another forward of {kind.__name__} than the one that its expression in "
        f"leaf_calls.py was written after. Captures call the module itself until the expression is compared with "
        f"the new forward, corrected, and its digest is set to {digest_of(kind)!r}."
    )


def test_attributes_are_read_once_and_missing_ones_are_noticed():
    model, captured, x = bound_pair()
    del model.layers[1].bias
    model.layers[1].register_buffer("bias", torch.full((4,), 3.0))
    check(captured, x)
    torch.testing.assert_close(captured(x), model(x), rtol=0, atol=0)


def test_an_attribute_that_hides_a_parameter_is_noticed():
    model, captured, x = bound_pair()
    vars(model.layers[0])["weight"] = torch.ones(4, 4)
    check(captured, x)
    torch.testing.assert_close(captured(x), model(x), rtol=0, atol=0)


def test_a_parameter_that_hides_a_buffer_is_noticed():
    model, captured, x = bound_pair()
    captured._parameters["shift"] = model._parameters["shift"] = nn.Parameter(torch.ones(4))
    check(captured, x)


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("kind", ["backward", "full_backward"])
def test_backward_hooks_without_gradients_do_what_they_do(kind: str, is_training: bool):
    class PassingOn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Identity(), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y = self.first(x)
            return y, self.second(y)

    model = PassingOn()
    given = torch.randn(2, 4, requires_grad=True)
    captured = clew.trace(model, args=(given * 2,))
    seen: list[str] = []
    for _ in range(3):
        captured(given * 2)
    for name in ("first", "second"):
        hook = getattr(captured.get_submodule(name), f"register_{kind}_hook")
        hook(lambda module, *_: seen.append(type(module).__name__))
    results = []
    for program in (captured, model):
        with torch.set_grad_enabled(is_training):
            passed_on, _ = program(given * 2) if is_training else program(_with_history(given))
        passed_on.sum().backward()
        results.append(tuple(seen))
        seen.clear()
    assert results[0] == results[1]


def _with_history(given: Tensor) -> Tensor:
    with torch.enable_grad():
        return given * 2


def test_code_with_a_part_without_gradients_is_bound():
    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                y = self.first(x)
            return self.second(x) + y

    model, x = Partly(), torch.randn(2, 4)
    captured = clew.trace(model, args=(x,))
    for _ in range(3):
        captured(x)
    assert is_bound(captured)
    captured(x).sum().backward()
    assert model.first.weight.grad is None and model.second.weight.grad is not None
    with pytest.raises(RuntimeError):
        captured(torch.randn(2, 5))
    assert torch.is_grad_enabled()
    check(captured, x)
