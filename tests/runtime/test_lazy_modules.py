"""A lazy graph of a ``torch.nn.Module`` is one itself, and stands for the original in all that is done with it."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

import clew
from clew.runtime.lazy import LazyGraph

X = torch.rand(5, 4)


class Net(nn.Module):
    """Asks for its mode, draws and writes in training."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(4)
        self.width = 4

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        x = self.norm(self.drop(self.first(x)))
        return x * scale if self.training else x

    def named(self) -> str:
        """A method of its own."""
        return f"net of {self.width}"


class Outer(nn.Module):
    """Has a module, or its lazy graph, as a part."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner
        self.last = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.inner(x))


@pytest.fixture
def model() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def drawn(call: Any, *args: Any) -> Tensor:
    """A result whose random numbers are always the same."""
    torch.manual_seed(3)
    return call(*args)


def test_it_is_a_module_and_its_methods_return_it(model: Net):
    lazy = clew.trace(model)
    assert isinstance(lazy, nn.Module) and isinstance(lazy, LazyGraph)
    for act in (lazy.train, lazy.eval, lazy.half, lazy.float, lazy.requires_grad_, lazy.cpu):
        assert act() is lazy
    assert lazy.to(torch.float64) is lazy and model.first.weight.dtype is torch.float64
    assert lazy.apply(lambda part: None) is lazy
    assert lazy.train().training and model.norm.training
    lazy.training = False
    assert not model.training


def test_its_state_is_the_original_s(model: Net):
    lazy = clew.trace(model)
    lazy(X)
    assert [*lazy.state_dict()] == [*model.state_dict()]
    pairs = zip(lazy.named_parameters(), model.named_parameters(), strict=True)
    assert all(one == other and mine is theirs for (one, mine), (other, theirs) in pairs)
    assert [*dict(lazy.named_modules())] == [*dict(model.named_modules())]
    lazy.load_state_dict({name: torch.ones_like(value) for name, value in model.state_dict().items()})
    assert torch.equal(model.first.weight, torch.ones(4, 4)) and torch.equal(lazy(X), model(X))
    lazy(X).sum().backward()
    assert model.first.weight.grad is not None
    lazy.zero_grad()
    assert model.first.weight.grad is None


def test_its_attributes_are_the_original_s(model: Net):
    lazy = clew.trace(model)
    lazy.width, lazy.drop = 5, nn.Identity()
    assert lazy.named() == "net of 5" and lazy.first is model.first and type(model.drop) is nn.Identity
    del lazy.width
    assert not hasattr(model, "width") and "captures" not in vars(model)
    assert inspect.signature(lazy.forward) == inspect.signature(model.forward)
    assert {"first", "named", "captures"} <= {*dir(lazy)}


def test_containers_stay_containers():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    lazy = clew.trace(model)
    assert len(lazy) == 2 and lazy[0] is model[0] and [*lazy] == [*model]
    lazy[1] = nn.GELU()
    assert type(model[1]) is nn.GELU and torch.equal(lazy(X), model(X))
    assert clew.trace(nn.Identity())  # which has no length


def test_modes_and_dtypes_need_no_further_capture(model: Net):
    twin, lazy = copy.deepcopy(model), clew.trace(model)
    for mode in (False, True, False, True):
        lazy.train(mode), twin.train(mode)
        assert torch.equal(drawn(lazy, X), drawn(twin, X))
    lazy.double(), twin.double()
    assert torch.equal(drawn(lazy, X.double()), drawn(twin, X.double()))
    assert torch.equal(model.norm.running_mean, twin.norm.running_mean)
    assert len(lazy.captures) == 1


def test_hooks_are_noticed(model: Net):
    lazy = clew.trace(model)
    before = lazy(X)
    handle = lazy.register_forward_hook(lambda module, args, result: result * 2)
    assert torch.equal(lazy(X), before * 2)
    handle.remove()
    assert torch.equal(lazy(X), before) and len(lazy.captures) == 2


def move_a_part(model: nn.Module) -> None:
    model[1].insert(0, model[0].pop(1))


def swap_names(model: nn.Module) -> None:
    parts = model[0]._modules
    parts["0"], parts["1"] = parts["1"], parts["0"]


def other_class(model: nn.Module) -> None:
    class Twice(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            return super().forward(input) * 2

    model[1][0].__class__ = Twice


def other_forward(model: nn.Module) -> None:
    model[1][0].forward = lambda x: x * 3


@pytest.mark.parametrize("change", [move_a_part, swap_names, other_class, other_forward])
def test_changes_of_parts_are_noticed(change: Any):
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 4)))
    lazy = clew.trace(model)
    lazy(X), lazy(X), lazy(X)
    change(model)
    for _ in range(3):
        assert torch.equal(lazy(X), model(X))


def test_it_may_be_a_part_of_another_module(model: Net):
    plain, outer = Outer(model), Outer(clew.trace(model))
    outer.last = plain.last
    assert [*outer.state_dict()] == [*plain.state_dict()]
    assert [name for name, _ in outer.named_parameters()] == [name for name, _ in plain.named_parameters()]
    outer.load_state_dict(plain.state_dict())
    assert outer.double().train().inner is outer.inner and model.norm.training
    outer.float().eval()
    assert torch.equal(outer(X), plain(X)) and len(outer.inner.captures) == 1
    captured = clew.trace(outer, (X,))
    assert torch.equal(captured(X), plain(X)) and "self.inner.first" in captured.code
    outer.again = model
    assert len([*outer.parameters()]) == len([*plain.parameters()])


def test_it_is_pickled_with_its_captures(model: Net):
    lazy = clew.trace(model)
    lazy(X)
    again = pickle.loads(pickle.dumps(lazy))
    assert isinstance(again, nn.Module) and len(again.captures) == 1 and again.fn is not model
    for mode in (False, True):
        assert torch.equal(drawn(again.train(mode), X), drawn(model.train(mode), X))
    assert len(again.captures) == 1
    again.first.weight.data.zero_()
    assert not torch.equal(again.eval()(X), model.eval()(X))


def test_captures_that_cannot_be_saved_are_made_again(model: Net, monkeypatch: pytest.MonkeyPatch):
    lazy = clew.trace(model)
    lazy(X)
    monkeypatch.setattr(lazy.captures[0].graph, "meta", lambda: None, raising=False)
    monkeypatch.setattr(type(lazy.captures[0]), "__getstate__", lambda self: {"lock": lambda: None})
    again = pickle.loads(pickle.dumps(lazy))
    assert again.captures == [] and torch.equal(again(X), model(X))


def test_a_deep_copy_is_independent(model: Net):
    lazy = clew.trace(model)
    lazy(X)
    twin = copy.deepcopy(lazy)
    twin.first.weight.data.zero_()
    assert torch.equal(twin(X), twin.fn(X)) and torch.equal(lazy(X), model(X))
    assert not torch.equal(twin(X), lazy(X)) and len(lazy.captures) == 1


TOOLS: dict[str, Any] = {
    "compile": lambda lazy: torch.compile(lazy, backend="eager", fullgraph=True),
    "export": lambda lazy: torch.export.export(lazy, (X,)).module(),
    "strict export": lambda lazy: torch.export.export(lazy, (X,), strict=True).module(),
    "jit.trace": lambda lazy: torch.jit.trace(lazy, (X,)),
    "make_fx": lambda lazy: make_fx(lazy)(X),
    "torch.fx": torch.fx.symbolic_trace,
    "clew.symbolic_trace": clew.symbolic_trace,
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("is_called_before", [False, True])
def test_tools_find_the_original(model: Net, tool: str, is_called_before: bool):
    lazy = clew.trace(model)
    if is_called_before:
        lazy(X)
    torch.testing.assert_close(TOOLS[tool](lazy)(X), model(X))
    assert torch.equal(lazy(X), model(X)) and len(lazy.captures) == 1
    torch._dynamo.reset()


def test_other_weights_may_be_put_in_its_place(model: Net):
    lazy = clew.trace(model)
    lazy(X)
    weights = {name: torch.full_like(value, 0.5) for name, value in model.named_parameters()}
    wanted = torch.func.functional_call(model, weights, (X,))
    assert torch.equal(torch.func.functional_call(lazy, weights, (X,)), wanted)
