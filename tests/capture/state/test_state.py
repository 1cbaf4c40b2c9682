"""State that a program changes: the graph changes it too, on state of its own, and the capture leaves no trace."""

from __future__ import annotations

import copy
from collections import OrderedDict, deque
from typing import Any

import pytest
import torch
from torch import nn

import clew

COUNTER = 0
LOG: list[Any] = []
TABLE: dict[str, Any] = {"scale": 1.0}


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.layer(x) * self.calls


class Inside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Counting()
        self.gain = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.gain = self.gain * 0.5
        return self.block(x) * self.gain


class Moving(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("previous", None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean = self.mean * 0.9 + x.mean(0) * 0.1
        y = x - self.mean if self.previous is None else x - self.previous
        self.previous = x.detach().mean(0)
        return y


class Sizes(nn.Module):
    """Sets what it reads before it reads it: nothing of an earlier call matters."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.length = x.shape[0]
        self.seen = x
        return x.sum() * self.length


class Cache:
    def __init__(self) -> None:
        self.keys: list[torch.Tensor] = []
        self.length = 0

    def update(self, key: torch.Tensor) -> torch.Tensor:
        if not self.keys:
            self.keys.append(key)
        else:
            self.keys[0] = torch.cat([self.keys[0], key])
        self.length += key.shape[0]
        return self.keys[0]


def same_calls(original: Any, captured: Any, calls: list[torch.Tensor]) -> None:
    for x in calls:
        torch.testing.assert_close(captured(x), original(x))


@pytest.mark.parametrize("kind", [Counting, Inside, Sizes])
def test_changed_numbers_are_inputs_of_the_graph(kind: type[nn.Module]) -> None:
    model = kind()
    twin, before = copy.deepcopy(model), dict(vars(model))
    captured = clew.trace(model, (torch.ones(3, 2),))
    assert vars(model) == before
    same_calls(twin, captured, [torch.ones(3, 2), torch.rand(3, 2), torch.rand(5, 2), torch.rand(1, 2)])


def test_the_captured_module_has_state_of_its_own() -> None:
    model = Inside()
    captured = clew.trace(model, (torch.ones(3, 2),))
    captured(torch.ones(3, 2))
    captured(torch.ones(3, 2))
    assert (captured.gain, captured.block.calls) == (0.5, 2)
    assert (model.gain, model.block.calls) == (2.0, 0)
    again = copy.deepcopy(captured)
    again(torch.ones(3, 2))
    assert (again.block.calls, captured.block.calls) == (3, 2)


def test_a_lazy_graph_changes_the_original() -> None:
    model = Inside()
    twin, lazy = copy.deepcopy(model), clew.trace(model)
    for size in (3, 1, 4):
        x = torch.rand(size, 2)
        torch.testing.assert_close(lazy(x), twin(x))
        assert (model.gain, model.block.calls) == (twin.gain, twin.block.calls)
        assert type(model.gain) is float and type(model.block.calls) is int
    assert len(lazy.captures) == 1


def test_buffers_that_are_set_anew() -> None:
    model = Moving()
    twin, lazy = copy.deepcopy(model), clew.trace(model)
    captured = clew.trace(copy.deepcopy(model), (torch.ones(3, 2),))
    x = torch.rand(3, 2)
    original = copy.deepcopy(model)
    for _ in range(3):
        assert torch.equal(captured(x), original(x))
    assert captured.mean is not model.mean and not torch.equal(captured.mean, model.mean)
    same_calls(twin, lazy, [torch.rand(3, 2), torch.rand(4, 2), torch.rand(2, 2)])
    assert len(lazy.captures) == 1
    assert torch.equal(model.mean, twin.mean)


def test_what_is_set_before_it_is_read_needs_no_guard() -> None:
    captured = clew.trace(Sizes(), (torch.ones(3, 2),))
    assert not any("length" in str(guard) or "seen" in str(guard) for guard in captured.guards)
    x = torch.rand(5, 2)
    captured(x)
    assert captured.length == 5 and captured.seen is x


def test_weights_and_settings_of_the_original_count_for_a_lazy_graph() -> None:
    model = Counting()
    twin, lazy = copy.deepcopy(model), clew.trace(model)
    lazy(torch.ones(1, 2)), twin(torch.ones(1, 2))
    for one in (model, twin):
        one.layer.weight = nn.Parameter(torch.ones(2, 2))
        one.calls = 10
    torch.testing.assert_close(lazy(torch.ones(1, 2)), twin(torch.ones(1, 2)))


def test_an_attribute_that_is_only_read_is_pinned() -> None:
    class Scaled(nn.Module):
        scale = 2.0

        def __init__(self) -> None:
            super().__init__()
            self.shift = 1.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale + self.shift

    model = Scaled()
    lazy = clew.trace(model)
    lazy(torch.ones(1))
    model.shift = 5.0
    assert lazy(torch.ones(1)).item() == 7.0
    assert len(lazy.captures) == 2


def test_an_object_that_holds_tensors_is_changed_in_place() -> None:
    def f(x: torch.Tensor, cache: Cache) -> tuple[torch.Tensor, Cache]:
        return cache.update(x * 2).sum() * cache.length, cache

    example = Cache()
    example.update(torch.ones(2))
    captured = clew.trace(f, (torch.ones(1), example))
    assert example.length == 2 and len(example.keys[0]) == 2 and type(example.length) is int
    ours, theirs = copy.deepcopy(example), copy.deepcopy(example)
    for size in (1, 3, 2):
        x = torch.rand(size)
        got, wanted = captured(x, ours), f(x, theirs)
        assert torch.equal(got[0], wanted[0]) and got[1] is ours
        assert torch.equal(ours.keys[0], theirs.keys[0]) and ours.length == theirs.length
    with pytest.raises(clew.GuardError, match="len"):
        captured(torch.ones(1), Cache())


@pytest.mark.parametrize("change", ["append", "insert", "clear", "sort", "replace"])
def test_lists_among_the_arguments(change: str) -> None:
    def f(x: torch.Tensor, items: list[Any]) -> torch.Tensor:
        if change == "append":
            items.append(x.shape[0])
        elif change == "insert":
            items.insert(0, x + 1)
        elif change == "clear":
            items.clear()
        elif change == "sort":
            items.reverse()
        else:
            items[1] = x
        return x * 2

    given: list[Any] = [3, 4]
    captured = clew.trace(f, (torch.ones(2), given))
    assert given == [3, 4]
    ours, theirs = [5, 6], [5, 6]
    x = torch.rand(3)
    captured(x, ours), f(x, theirs)
    assert len(ours) == len(theirs)
    assert all(one is other or torch.equal(torch.as_tensor(one), torch.as_tensor(other))
               for one, other in zip(ours, theirs, strict=True))  # fmt: skip


def test_dicts_deques_and_sets_among_the_arguments() -> None:
    def f(x: torch.Tensor, table: Any, last: Any, seen: set[str]) -> torch.Tensor:
        table["y"] = x * 2
        del table["a"]
        last.append(x.shape[0])
        seen.add("f")
        return x

    def given() -> tuple[Any, ...]:
        return OrderedDict(a=1, b=2), deque([1, 2], maxlen=2), {"g"}

    captured = clew.trace(f, (torch.ones(2), *given()))
    ours, theirs = given(), given()
    x = torch.rand(4)
    captured(x, *ours), f(x, *theirs)
    assert list(ours[0]) == list(theirs[0]) and torch.equal(ours[0]["y"], theirs[0]["y"])
    assert ours[1:] == theirs[1:]


def test_objects_that_are_changed_must_be_as_different_as_in_the_example() -> None:
    def f(x: torch.Tensor, a: Cache, b: Cache) -> torch.Tensor:
        a.update(x)
        return x * b.length

    captured = clew.trace(f, (torch.ones(2), Cache(), Cache()))
    cache = Cache()
    with pytest.raises(clew.GuardError, match="different objects"):
        captured(torch.ones(2), cache, cache)
    assert cache.length == 0 and cache.keys == []


def test_globals_closures_and_classes() -> None:
    calls = 0

    class Owner:
        made = 0

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            Owner.made += 1
            return x * Owner.made

    def f(x: torch.Tensor) -> torch.Tensor:
        global COUNTER
        nonlocal calls
        COUNTER += 1
        calls += 2
        TABLE["scale"] = TABLE["scale"] * 2
        return x * COUNTER + calls * TABLE["scale"]

    captured = clew.trace(f, (torch.ones(1),))
    assert (COUNTER, calls, TABLE) == (0, 0, {"scale": 1.0})
    assert [captured(torch.ones(size))[0].item() for size in (1, 2)] == [1 + 2 * 2, 2 + 4 * 4]
    assert (calls, TABLE) == (4, {"scale": 4.0})
    counted = clew.trace(Owner(), (torch.ones(1),))
    assert Owner.made == 0
    assert [counted(torch.ones(1)).item() for _ in range(3)] == [1.0, 2.0, 3.0]
    assert Owner.made == 3


def test_one_object_in_two_places_of_the_result_is_one() -> None:
    def f(x: torch.Tensor) -> dict[str, Any]:
        made = Cache()
        made.update(x)
        pair = [x, x * 2]
        return {"cache": made, "again": made, "pair": pair, "pairs": [pair, pair]}

    got = clew.trace(f, (torch.ones(2),))(torch.ones(3))
    assert got["cache"] is got["again"] and type(got["cache"]) is Cache
    assert got["pair"] is got["pairs"][0] is got["pairs"][1]


def test_a_program_that_fails_leaves_its_state_as_it_was() -> None:
    class Failing(Counting):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            raise ValueError("no")

    model, given = Failing(), [1, torch.ones(1)]
    with pytest.raises(ValueError, match="no"):
        clew.trace(model, (given,))
    assert model.calls == 0 and given[0] == 1 and type(given[0]) is int


def test_state_inside_a_call_that_nobody_looks_into_is_refused_or_right() -> None:
    kept: dict[str, Any] = {}
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    model[0].register_forward_hook(lambda module, args, output: kept.update(hidden=output.detach()))
    captured = clew.trace(model, (torch.ones(1, 2),))
    assert kept == {}
    x = torch.rand(1, 2)
    captured(x)
    assert torch.equal(kept["hidden"], model[0](x))


class Keeping(nn.Module):
    """Keeps a history, and may ask how long it is."""

    def __init__(self, looks: bool) -> None:
        super().__init__()
        self.looks = looks
        self.losses: list[Any] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.losses.append(x.mean())
        self.losses += [x.shape[0]]
        return x * len(self.losses) if self.looks else x * 2


@pytest.mark.parametrize("looks", [False, True])
def test_a_history_that_is_appended_to_and_counted_is_not_guarded(looks: bool) -> None:
    model = Keeping(looks)
    twin, lazy, captured = copy.deepcopy(model), clew.trace(model), clew.trace(copy.deepcopy(model), (torch.ones(2),))
    for size in (2, 3, 4):
        x = torch.rand(size)
        wanted = twin(x)
        assert torch.equal(lazy(x), wanted)
        assert torch.equal(captured(x), wanted)
        assert model.losses[1::2] == twin.losses[1::2] and type(model.losses) is list
        assert all(map(torch.equal, model.losses[::2], twin.losses[::2]))
    assert len(lazy.captures) == 1
    assert captured.losses[1::2] == [2, 3, 4]


def test_a_history_that_somebody_else_holds_is_looked_at() -> None:
    model = Keeping(False)
    shared = model.losses
    lazy = clew.trace(model)
    lazy(torch.ones(2)), lazy(torch.ones(2))
    assert len(shared) == 4 and model.losses is shared


def test_a_list_of_the_state_is_joined_at_any_length() -> None:
    kept: list[Any] = []

    def program(x: Any) -> Any:
        kept.append(x.mean())
        return torch.stack(kept).sum() + len(kept)

    x = torch.ones(2)
    captured = clew.trace(program, (x,))
    assert kept == []
    assert [captured(x * n).item() for n in (1, 2, 3)] == [2.0, 5.0, 9.0]
    kept.append(torch.ones((), dtype=torch.float64))
    with pytest.raises(clew.GuardError, match="kept"):
        captured(x)


def test_a_list_that_is_held_twice_is_guarded() -> None:
    kept: list[Any] = []
    holder = {"kept": kept}

    def program(x: Any) -> Any:
        kept.append(1)
        return x * len(holder["kept"])

    x = torch.ones(2)
    captured = clew.trace(program, (x,))
    with pytest.raises(clew.GuardError, match="kept"):
        captured(x)
    assert kept == []
