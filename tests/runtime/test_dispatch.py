"""Which of its captures a lazy graph uses, and how it finds it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from clew.errors import GuardError
from tests.speed.counts import calls_in

X = torch.arange(3.0)


def way(x: Tensor, name: str, scale: float = 2.0) -> Tensor:
    """Decides by a plain argument."""
    return x * scale if name == "double" else x + len(name)


def by_length(x: Tensor, name: str, scale: float = 2.0) -> Tensor:
    """Compares with no text, so each of its captures is for one text alone."""
    return x * scale if len(name) == 6 else x + len(name)


def test_each_call_finds_its_capture_whatever_came_before():
    lazy = clew.trace(way)
    names = ["double", "a", "bb", "ccc"]
    for name in [*names, *reversed(names), *names]:
        assert torch.equal(lazy(X, name), way(X, name))
    assert len(lazy.captures) == len(names)


@pytest.mark.parametrize("program", [way, by_length])
def test_captures_that_do_not_fit_raise_nothing_on_the_way(program: Any, monkeypatch: pytest.MonkeyPatch):
    lazy = clew.trace(program)
    names = ["double", "a", "bb", "ccc"]
    for name in names:
        lazy(X, name)
    made: list[str] = []
    monkeypatch.setattr(GuardError, "__init__", lambda self, *args, **kwargs: made.append("error"))
    for name in names:
        assert torch.equal(lazy(X, name), program(X, name))
    assert made == []


def test_the_capture_used_last_is_tried_first():
    lazy = clew.trace(by_length)
    for name in ("double", "a", "bb", "ccc"):
        lazy(X, name)
    lazy(X, "double")
    again = calls_in(lambda: lazy(X, "double"))
    assert calls_in(lambda: lazy(X, "bb")) > again
    assert calls_in(lambda: lazy(X, "bb")) == again


def test_a_guard_with_the_last_word_is_asked():
    def scaled(x: Tensor, scale: Any) -> Tensor:
        return x * 2 if scale == 2.0 else x - 1

    lazy = clew.trace(scaled)
    calls = [2.0, 3.0, float("nan"), float("nan"), 2.0, -0.0, 0.0]
    for scale in calls:
        assert torch.equal(lazy(X, scale), scaled(X, scale))
    before = len(lazy.captures)
    for scale in calls:
        assert torch.equal(lazy(X, scale), scaled(X, scale))
    assert len(lazy.captures) == before


def test_arguments_that_do_not_fit_the_signature_are_refused_as_ever():
    lazy = clew.trace(way)
    for name in ("double", "a"):
        lazy(X, name)
    with pytest.raises(TypeError):
        lazy(X, "double", 2.0, 3.0)


class Nest(nn.Module):
    """A module with parts in parts."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) if not self.inner[1].training else x * 0


@pytest.mark.parametrize("change", ["mode of a part", "another part", "a new part"])
def test_a_change_of_parts_counts(change: str):
    model = Nest().eval()
    lazy = clew.trace(model)
    for _ in range(3):
        torch.testing.assert_close(lazy(X), model(X))
    if change == "mode of a part":
        model.inner[1].train()
    elif change == "another part":
        model.inner[0] = nn.Linear(3, 3).train()
    else:
        model.inner.append(nn.ReLU())
    for _ in range(3):
        torch.testing.assert_close(lazy(X), model(X))


def test_an_edit_of_a_capture_changes_what_it_is_asked():
    lazy = clew.trace(by_length)
    for name in ("double", "a"):
        lazy(X, name)
        lazy(X, name)
    first = lazy.captures[0]
    output = first.graph.find_nodes(op="output")[0]
    with first.graph.inserting_before(output):
        output.args = (first.graph.call_function(torch.neg, (output.args[0],)),)
    assert torch.equal(lazy(X, "double"), -by_length(X, "double"))
    assert torch.equal(lazy(X, "a"), by_length(X, "a"))


class Passing(nn.Module):
    """Parts that a capture calls, and one that is only passed through."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) + 1


def replace_part(model: Passing) -> None:
    model.inner[1] = nn.Tanh()


def replace_table(model: Passing) -> None:
    model.inner._modules = {"0": nn.Identity()}


def put_hook(model: Passing) -> None:
    model.inner.register_forward_hook(lambda module, args, result: result * 2)


def give_forward(model: Passing) -> None:
    model.inner.forward = lambda x: x * 3


def change_class(model: Passing) -> None:
    class Other(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return x - 1

    model.inner.__class__ = Other


def change_state(model: Passing) -> None:
    model.inner.__dict__ = nn.Sequential(nn.Identity()).__dict__


CHANGES = [replace_part, replace_table, put_hook, give_forward, change_class, change_state]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_capture_of_a_lazy_graph_refuses_what_the_lazy_graph_captures_anew(change: Any):
    model = Passing().eval()
    lazy = clew.trace(model)
    for _ in range(4):
        lazy(X)
    (first,) = lazy.captures
    change(model)
    with pytest.raises(GuardError, match="something in it has changed"):
        first(X)
    for _ in range(3):
        assert torch.equal(lazy(X), model(X))
    assert len(lazy.captures) == 2


def test_a_hook_elsewhere_changes_nothing():
    model = Passing().eval()
    lazy = clew.trace(model)
    for _ in range(4):
        lazy(X)
    nn.Linear(2, 2).register_forward_hook(lambda *_: None)
    calls = calls_in(lambda: lazy(X))
    assert calls_in(lambda: lazy(X)) < calls  # the hooks of all parts were looked through once
    assert len(lazy.captures) == 1


def test_a_hook_that_is_taken_away_again_leaves_the_first_capture():
    model = Passing().eval()
    lazy = clew.trace(model)
    for _ in range(3):
        lazy(X)
    handle = model.inner.register_forward_hook(lambda module, args, result: result * 2)
    for _ in range(3):
        assert torch.equal(lazy(X), model(X))
    handle.remove()
    for _ in range(3):
        assert torch.equal(lazy(X), model(X))
    assert len(lazy.captures) == 2


def test_a_capture_of_a_method_is_called_in_one_step():
    model = Passing().eval()
    captured = clew.trace(model.forward, args=(X,))
    for _ in range(3):
        captured(X)
    assert calls_in(lambda: captured(X)) <= 5
    model.inner[0] = nn.Identity()
    with pytest.raises(GuardError, match="something in it has changed"):
        captured(X)
