"""NumPy inside a torch program: one graph of both, equal on other inputs, with the same writes to shared memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import clew
from clew.errors import CaptureError, GuardError
from clew.ir.arguments import all_nodes

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


@_in(FOLLOWED)
def write_through_array(x):
    array = x.numpy()
    array += 1
    return x * 2


@_in(FOLLOWED)
def write_through_tensor(x):
    array = x.numpy()
    x.add_(1)
    return torch.tensor(array)


@_in(FOLLOWED)
def write_through_both(x):
    torch.from_numpy(x.numpy()).mul_(2)
    return x


@_in(FOLLOWED)
def in_place_sort(x):
    array = x.numpy().copy()
    array.sort()
    return torch.from_numpy(array)


@_in(FOLLOWED)
def asks_class(x):
    array = x.numpy()
    return torch.tensor(array) * (1 if type(array) is np.ndarray else 2)


@_in(FOLLOWED)
def made_inside(x):
    return torch.from_numpy(x.numpy() + np.arange(len(x), dtype=np.float32))


@_in(FOLLOWED)
def settings(x):
    with np.errstate(all="ignore"):
        return torch.from_numpy(1 / x.numpy())


@_in(FOLLOWED)
def into_operator(x):
    x *= x.numpy().sum()
    return x


@_in(FOLLOWED)
def of_sizes(x):
    return x * np.sqrt(x.shape[0]), torch.from_numpy(np.hanning(len(x))), np.asarray(x)


@_in(REFUSED)
def address(x):
    return x + x.numpy().ctypes.data % 2


@_in(REFUSED)
def another_shape(x):
    array = x.numpy()
    array.shape = (3, 1)
    return torch.from_numpy(array)


@_in(REFUSED)
def objects(x):
    return torch.tensor(np.array([x.numpy(), None], dtype=object)[0])


@_in(REFUSED)
def another_class(x):
    return torch.tensor(np.asmatrix(x.numpy()))


@_in(REFUSED)
def without_a_seed(x):
    return x * np.random.default_rng().random()


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
        before = other.clone()
        with pytest.raises(GuardError):
            graph(other)
        assert torch.equal(other, before)


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
    array = np.frombuffer(memoryview(x.numpy()), np.float32).copy()
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
            self.last = np.zeros(1, dtype=np.float32)

        def forward(self, x):
            self.last = np.abs(x.numpy()) + self.last[0]
            return x + torch.from_numpy(self.last)

    model, twin = Model(), Model()
    lazy = clew.trace(model)
    for x in (A, B, C):
        assert _same(lazy(x.clone()), twin(x.clone()))
        assert np.array_equal(model.last, twin.last)


def test_a_guard_that_fails_leaves_arrays_and_generators_as_they_were() -> None:
    def program(x, array, generator):
        array[0] = generator.random()
        return x + 1 if len(x) > 2 else x - 1

    graph = clew.trace(program, (A, np.zeros(2), np.random.default_rng(0)), control_flow="guard")
    array, generator = np.zeros(2), np.random.default_rng(5)
    with pytest.raises(GuardError, match="len|shape"):
        graph(torch.ones(2), array, generator)
    assert not array.any() and generator.random() == np.random.default_rng(5).random()


def test_nothing_of_numpy_is_replaced_for_programs_without_it() -> None:
    seen: list[Any] = []

    def program(x):
        seen.append(np_module.zeros)
        return x + 1

    np_module = SimpleNamespace(zeros=0)
    original = np.cumsum, np.zeros, torch.Tensor.__getitem__
    clew.trace(lambda x: program(x), (A,))
    assert (np.cumsum, np.zeros, torch.Tensor.__getitem__) == original and "__getitem__" not in vars(torch.Tensor)


def test_an_error_of_the_program_is_its_own() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        clew.trace(lambda x: torch.from_numpy(x.numpy() + np.ones(7)), (A,))


def test_the_graph_and_its_code_hold_both() -> None:
    graph = clew.trace(made_inside, (A,))
    assert all(text in graph.code for text in ("x.numpy()", "numpy.arange(", "torch.from_numpy("))


def test_a_captured_module_with_arrays_is_copied() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = np.arange(3, dtype=np.float32)

        def forward(self, x):
            return x * torch.from_numpy(self.table)

    graph = clew.trace(Model(), (A,))
    assert torch.equal(copy.deepcopy(graph)(A), graph(A))
