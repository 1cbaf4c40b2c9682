"""Calls that stay one node and the state they share with the program; errors after a write; context variables."""

from __future__ import annotations

import contextvars
import random
from typing import Any

import pytest
import torch
from torch import nn

import clew
from clew.errors import CaptureError, GuardError, StateError
from clew.frameworks.torch import protection, undo

BARE: contextvars.ContextVar[float] = contextvars.ContextVar("bare")
ONES = torch.ones(2)


class Leaf(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.gain = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            self.calls += 1
        return x * self.gain


class Reads(nn.Module):
    """Reads what its part has counted."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Leaf()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x) * (1 + self.part.calls)


class Sets(Reads):
    """Sets what its part reads."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.part.gain = self.part.gain + 1
        return self.part(x)


def is_leaf(part: nn.Module, path: str) -> bool:
    return isinstance(part, Leaf)


def test_a_leaf_that_changes_what_others_read_fails_a_guard_and_is_undone() -> None:
    model = Reads()
    captured = clew.trace(model, (ONES,), leaves=is_leaf)
    assert torch.equal(captured(ONES), model(ONES))
    with pytest.raises(GuardError, match="Leaf changes none of the objects .* but it changes calls"):
        captured(-ONES)
    assert captured.part.calls == 0


def test_a_leaf_that_reads_what_the_program_has_set_is_refused() -> None:
    with pytest.raises(CaptureError, match="Leaf, one call of the graph, uses state that the program has changed"):
        clew.trace(Sets(), (ONES,), leaves=is_leaf)


def test_state_that_only_the_call_names_is_its_own_affair() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Leaf()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.part(x) + 1

    captured = clew.trace(Model(), (ONES,), leaves=is_leaf)
    assert torch.equal(captured(-ONES), torch.zeros(2))
    assert "require_untouched" not in captured.code and captured.part.calls == 1


def test_a_context_variable_without_a_value_has_none_after_the_capture() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        BARE.set(BARE.get(1.0) + 1)
        return x * BARE.get()

    def both() -> tuple[Any, float]:
        captured = clew.trace(f, (ONES,))
        with pytest.raises(LookupError):
            BARE.get()
        return captured(ONES), BARE.get()

    result, left = contextvars.copy_context().run(both)
    assert torch.equal(result, ONES * 2) and left == 2.0


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.calls = 0

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.total += x
        return x[place]


def test_an_error_after_a_write_undoes_it_and_says_why() -> None:
    captured = clew.trace(Counting(), (ONES, torch.tensor([0])))
    with pytest.raises(GuardError, match="the program raised IndexError") as caught:
        captured(ONES, torch.tensor([5]))
    assert isinstance(caught.value.__cause__, IndexError)
    assert captured.calls == 0 and torch.equal(captured.total, torch.zeros(2))


def test_very_much_is_not_copied_only_for_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written stays then, the state that comes last is not written, and the error says so."""
    monkeypatch.setattr(protection, "_MOST_BYTES", 1)
    captured = clew.trace(Counting(), (ONES, torch.tensor([0])))
    with pytest.raises(StateError, match="the program raised IndexError") as caught:
        captured(ONES, torch.tensor([5]))
    assert isinstance(caught.value.__cause__, IndexError)
    assert captured.calls == 0 and torch.equal(captured.total, ONES)


def test_settings_of_a_module_around_are_guarded() -> None:
    layers = nn.Sequential(nn.Identity(), nn.Dropout(0.5)).eval()
    captured = clew.trace(lambda x: layers(x), (ONES,))
    assert torch.equal(captured(ONES), ONES)
    layers[1].train()
    assert captured(ONES).eq(1).logical_not().any()  # its mode is data
    layers[1].p = 0.0
    with pytest.raises(GuardError, match="parts and settings of layers"):
        captured(ONES)


LARGE = (64, 8, 1024)
WRITES = {
    "item": lambda x, n: x.__setitem__(n % 64, 1.0),
    "slices": lambda x, n: x.__setitem__((slice(None), slice(n % 8, n % 8 + 2), ...), -1.0),
    "traced size": lambda x, n: x.__setitem__((slice(0, x.shape[1] // 4), n % 8), 2.0),
    "mask": lambda x, n: x.__setitem__(x > 1.0, float(n)),
    "view": lambda x, n: x[n % 64, :, n : n + 5].add_(1.0),
    "transposed": lambda x, n: x.transpose(0, 2)[n].mul_(2.0),
    "index_copy_": lambda x, n: x.index_copy_(1, torch.tensor([n % 8]), torch.full((64, 1, 1024), 3.0)),
    "index_add_": lambda x, n: x.index_add_(0, torch.tensor([n % 64, 0]), torch.ones(2, 8, 1024)),
    "index_fill_": lambda x, n: x.index_fill_(2, torch.tensor([n, n, 7]), 5.0),
    "whole": lambda x, n: x.clamp_(max=2.5),
}


@pytest.mark.parametrize("seed", range(12))
def test_a_large_buffer_is_as_before_after_any_writes_to_parts_of_it(seed: int) -> None:
    chosen = random.Random(seed)
    writes = [(chosen.choice(list(WRITES.values())), chosen.randrange(1000)) for _ in range(6)]
    buffer = torch.randn(LARGE, generator=torch.Generator().manual_seed(seed))
    assert buffer.nbytes > undo._SMALL

    def program(x: torch.Tensor) -> torch.Tensor:
        for write, number in writes[:3]:
            write(x, number)
        if x.sum() > 0:  # each side is run, and what it writes taken back
            for write, number in writes[3:]:
                write(x, number)
        return x.sum()

    before, expected = buffer.clone(), buffer.clone()
    result = program(expected)
    captured = clew.trace(program, args=(buffer,))
    assert torch.equal(buffer, before)
    assert torch.equal(captured(buffer), result)
    assert torch.equal(buffer, expected)


@pytest.mark.parametrize("name", ["item", "view", "index_copy_", "index_fill_", "traced size"])
def test_of_a_large_buffer_no_more_is_copied_than_is_written(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    put_back = undo.WriteLog.put_back

    def count(log: undo.WriteLog) -> None:
        copied.extend(copy.nbytes for _, copy in log._steps)
        put_back(log)

    monkeypatch.setattr(undo.WriteLog, "put_back", count)
    buffer = torch.randn(LARGE)

    def program(x: torch.Tensor) -> torch.Tensor:
        WRITES[name](x, 5)
        return x.sum()

    clew.trace(program, args=(buffer,))
    assert copied and sum(copied) <= buffer.nbytes // 2


class Pair(torch.Tensor):
    """A tensor that another one holds the numbers of, as distributed ones are."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [arg.inner if isinstance(arg, Pair) else arg for arg in args]
        found = func(*plain, **(kwargs or {}))
        return cls(found) if isinstance(found, torch.Tensor) else found


def test_tensors_without_memory_of_their_own_are_refused():
    with pytest.raises(clew.CaptureError, match="a Pair, which has no memory of its own"):
        clew.trace(lambda x: x * 2, (Pair(torch.ones(3)),))
    layer = torch.nn.Linear(3, 3)
    layer.weight = torch.nn.Parameter(Pair(torch.ones(3, 3)))
    with pytest.raises(clew.CaptureError, match="give the program the plain tensors"):
        clew.trace(layer, (torch.ones(1, 3),))


def test_a_model_on_two_devices_is_captured():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.here, self.there = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3, device="meta")

        def forward(self, x):
            return self.there(self.here(x).to(self.there.weight.device))

    captured = clew.trace(Two(), (torch.ones(2, 3),))
    assert captured(torch.ones(4, 3)).device.type == "meta"
    captured.there.to_empty(device="cpu")
    assert captured(torch.ones(4, 3)).device.type == "cpu"
