"""NumPy inside a torch program: one graph of both, equal on other inputs; memory of both is never written to."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import clew
from clew.errors import CaptureError, ClewError, GuardError
from clew.ir.nested import all_nodes

A, B, C = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([3.0, -1.0, 0.5]), torch.tensor([-2.0, 5.0, 1.0, 0.0])
FOLLOWED: dict[str, Callable[..., Any]] = {}
REFUSED: dict[str, Callable[..., Any]] = {}


def _in(group: dict[str, Callable[..., Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        group[function.__name__] = function
        return function

    return register


@_in(FOLLOWED)
def round_trip(x):
    return torch.from_numpy(np.sin(x.numpy()) * 2) + x


@_in(FOLLOWED)
def detached(x):
    return torch.tensor(np.tanh((x * 2).detach().cpu().numpy())), x


@_in(FOLLOWED)
def by_asarray(x):
    own = np.array(x)
    own[0] = 3
    return torch.as_tensor(own + np.asarray(x), dtype=torch.float64), np.asarray(own).shape[0]


@_in(FOLLOWED)
def branch(x):
    array = x.numpy()
    if array[0] > 0:
        return torch.from_numpy(np.exp(array))
    return torch.as_tensor(-array)


@_in(FOLLOWED)
def numbers(x):
    array = x.numpy()
    return x * array.mean().item(), x * array.sum().item(), array.max(), array.dtype == np.float32


@_in(FOLLOWED)
def indexed(x):
    order = np.argsort(x.numpy())[::-1].copy()
    return x[torch.from_numpy(order)], x[torch.from_numpy(x.numpy() > 0)]


@_in(FOLLOWED)
def joined(x):
    both = np.stack([x.numpy(), np.cumsum(x.numpy())])
    return torch.from_numpy(both), np.linalg.norm(both, axis=0), torch.zeros(both.shape[1])


@_in(FOLLOWED)
def written_copy(x):
    array = x.numpy().copy()
    array[0] = 7
    array *= 2
    np.add(array, 1, out=array)
    return torch.tensor(array), torch.from_numpy(np.sort(array))


@_in(FOLLOWED)
def given_back(x):
    y = x + 1
    return {"array": y.numpy(), "list": [np.median(y.numpy()), (y,)]}


@_in(FOLLOWED)
def halved(x):
    array, rounds = x.numpy(), 0
    while array.max() > 2:
        array, rounds = array / 2, rounds + 1
    return torch.tensor(array), rounds


@_in(REFUSED)
def write_through_array(x):
    array = x.numpy()
    array += 1
    return x * 2


@_in(REFUSED)
def write_through_tensor(x):
    array = x.numpy()
    x.add_(1)
    return torch.tensor(array)


@_in(REFUSED)
def write_through_both(x):
    torch.from_numpy(x.numpy()).mul_(2)
    return x


@_in(REFUSED)
def in_place_sort(x):
    array = x.numpy().copy()
    array.sort()
    return torch.from_numpy(array)


@_in(REFUSED)
def asks_class(x):
    array = x.numpy()
    return torch.tensor(array) * (1 if type(array) is np.ndarray else 2)


@_in(REFUSED)
def made_inside(x):
    return torch.from_numpy(x.numpy() + np.arange(3, dtype=np.float32))


@_in(REFUSED)
def settings(x):
    with np.errstate(all="raise"):
        return torch.from_numpy(1 / x.numpy())


@_in(REFUSED)
def into_operator(x):
    x *= x.numpy().sum()
    return x


@_in(REFUSED)
def text(x):
    return str(x.numpy())


def _same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, (np.ndarray, np.generic)):
        return left.dtype == right.dtype and np.array_equal(left, right)
    return bool(left == right)


@pytest.mark.filterwarnings("ignore:__array__ implementation")
@pytest.mark.parametrize("name", FOLLOWED)
def test_one_graph(name: str) -> None:
    function = FOLLOWED[name]
    example = A.clone()
    graph = clew.trace(function, (example,))
    assert torch.equal(example, A)
    assert not any(node.meta.get("opaque") for node in all_nodes(graph.graph))
    for x in (A, B, C):
        ours, theirs = x.clone(), x.clone()
        assert _same(graph(ours), function(theirs)) and torch.equal(ours, theirs)
    for other in (A.double(), torch.ones(2, 2)):
        with pytest.raises(GuardError):
            graph(other)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_and_undone(name: str) -> None:
    example = A.clone()
    with pytest.raises(CaptureError):
        clew.trace(REFUSED[name], (example,))
    assert torch.equal(example, A)


def test_what_cannot_be_followed_is_an_island_as_before() -> None:
    graph = clew.trace(_around, (A.clone(),))
    assert [node.target for node in graph.graph.nodes if node.meta.get("opaque")] == [_sorted]
    assert _same(graph(B.clone()), _around(B.clone()))


def _sorted(x):
    array = x.numpy().copy()
    array.sort()
    return torch.from_numpy(array)


def _around(x):
    return _sorted(x) + 1


def test_memory_is_shared_as_in_the_program() -> None:
    def program(x):
        y = x * 1
        return y, y.numpy(), torch.from_numpy(np.asarray(y))

    tensor, array, again = clew.trace(program, (A.clone(),))(B.clone())
    array[0] = 50
    assert tensor[0] == again[0] == 50


def test_state_that_holds_arrays() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = None

        def forward(self, x):
            self.last = np.abs(x.numpy())
            return x + torch.from_numpy(self.last)

    model, twin = Model(), Model()
    lazy = clew.trace(model)
    for x in (A, B, C):
        try:
            assert _same(lazy(x.clone()), twin(x.clone()))
        except ClewError:
            twin = copy.deepcopy(model)
            continue
        assert np.array_equal(model.last, twin.last)
