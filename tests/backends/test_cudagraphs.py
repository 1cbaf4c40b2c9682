"""CUDA graphs without a GPU: a stand-in records work and does it again on the same memory, as a graph would.

What is tried is all that is ours: which memory is copied where, when work is recorded anew, how many recordings there
are, and which guards wait. The recording itself is torch's.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import nn

import clew
from clew.backends.cuda_graphs import CudaGraphs, Recorded, Recording
from clew.backends.inductor import RecordedInductor


class OnCpu(Recording):
    """Does the recorded work again into the memory of the first results, and counts."""

    kind = "cpu"

    def __init__(self) -> None:
        super().__init__()
        self.recorded = self.launched = 0

    def is_there(self) -> bool:
        return True

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        with torch.random.fork_rng([]):
            yield

    def is_recording(self) -> bool:
        return False

    @contextlib.contextmanager
    def in_order(self) -> Iterator[None]:
        with self._lock:
            yield

    def record(self, run: Callable[[], Sequence[torch.Tensor]]) -> Recorded:
        self.recorded += 1
        with self.apart(), clean(run):
            results = run()

        def launch() -> None:
            self.launched += 1
            for kept, new in zip(results, run(), strict=True):
                if kept is not new and kept.data_ptr() != new.data_ptr():
                    kept.copy_(new)

        return launch, results


@contextlib.contextmanager
def clean(run: Callable[..., Any]) -> Iterator[None]:
    """Undo what a run writes into the tensors that it works on: recording does nothing on a GPU."""
    held = [cell.cell_contents for cell in run.__closure__ or ()]
    tensors = [tensor for one in held for tensor in one.used]
    before = [tensor.clone() for tensor in tensors]
    yield
    for tensor, value in zip(tensors, before, strict=True):
        tensor.copy_(value)


def compiled(program: Any, *args: Any, **options: Any) -> tuple[Any, OnCpu]:
    recording = OnCpu()
    return clew.compile(program, CudaGraphs(recording), args, **options), recording


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def test_one_recording_for_each_combination_of_sizes() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).eval()
    made, recording = compiled(model, torch.randn(3, 4))
    kept = []
    for rows in (3, 5, 3, 5, 3):
        x = torch.randn(rows, 4)
        kept.append((made(x), model(x)))
    for found, wanted in kept:  # results stay as they were, whatever ran since
        torch.testing.assert_close(found, wanted)
    assert (recording.recorded, recording.launched) == (2, 5)


def test_the_pool_is_bounded() -> None:
    made, recording = compiled(lambda x: x * 2 + 1, torch.randn(1))
    with pytest.warns(RuntimeWarning, match="runs in Python"):
        for size in range(1, 20):
            x = torch.randn(size)
            torch.testing.assert_close(made(x), x * 2 + 1)
    assert recording.recorded == 16


def test_weights_are_used_where_they_lie() -> None:
    model = nn.Linear(4, 2)
    x = torch.randn(3, 4)
    made, recording = compiled(model, x)
    torch.testing.assert_close(made(x), model(x))
    model.weight.mul_(2)
    torch.testing.assert_close(made(x), model(x))
    assert recording.recorded == 1
    model.weight.data = torch.randn(2, 4)
    torch.testing.assert_close(made(x), model(x))
    assert recording.recorded == 2


def test_state_arguments_and_random_numbers_are_written_once() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
            self.calls.add_(1)
            total.add_(x.sum())
            return self.drop(self.norm(x)) * self.calls

    models = [Net(), Net()]
    made, _ = compiled(models[0], torch.randn(3, 4), torch.zeros(()))
    models[1].load_state_dict(models[0].state_dict())
    totals = [torch.zeros(()), torch.zeros(())]
    for step in range(3):
        x = torch.randn(3, 4)
        results = []
        for program, total in zip((made, models[1]), totals, strict=True):
            torch.manual_seed(step)
            results.append((program(x, total), torch.rand(())))
        torch.testing.assert_close(*results)
    torch.testing.assert_close(*totals)
    torch.testing.assert_close(dict(made.named_buffers()), dict(models[1].named_buffers()))


def test_guards_are_looked_at_behind_the_last_segment() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if (y > 0).all():
            return y.exp() + 1
        return y

    captured = clew.trace(program, (torch.rand(3),), control_flow="guard")
    recording = OnCpu()
    made = clew.compile(captured, CudaGraphs(recording))
    x = torch.rand(3)
    torch.testing.assert_close(made(x), program(x))
    assert made.code.count("segment_") == 1 and recording.launched == 1
    with pytest.raises(clew.GuardError):
        made(-x)


def test_results_that_are_views() -> None:
    def program(x: torch.Tensor) -> Any:
        y = x * 2
        return y, y[0], x[1:], y.t()

    x = torch.randn(3, 4)
    made, _ = compiled(program, x)
    found, wanted = made(x), program(x)
    torch.testing.assert_close(found, wanted)
    found[0].zero_()
    found[2].zero_()
    assert not found[1].any() and not found[3].any() and not x[1:].any()


def test_what_is_refused() -> None:
    x = torch.randn(3)
    if not torch.cuda.is_available():
        with pytest.raises(clew.ClewError, match="needs a GPU with CUDA"):
            clew.compile(lambda x: x * 2, "cudagraphs", (x,))
    made, _ = compiled(lambda x: x * 2, x)
    with torch.enable_grad(), pytest.raises(clew.ClewError, match="no backward pass"):
        made(x.requires_grad_())
    with pytest.raises(clew.ClewError, match="one on meta"):
        made(torch.empty(3, device="meta"))

    def writing(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return y * 2

    both = torch.randn(4)
    made, _ = compiled(writing, both[:2], torch.randn(2))
    with pytest.raises(clew.ClewError, match="lie in the same memory"):
        made(both[:2], both[2:])


class Cache:
    """What a decoder keeps, in an object that is no module."""

    def __init__(self, length: int) -> None:
        self.length = torch.zeros((), dtype=torch.int64)
        self.keys = torch.zeros(length, 2)

    def update(self, key: torch.Tensor) -> torch.Tensor:
        place = torch.arange(len(key)) + self.length
        self.length.add_(len(key))
        try:
            self.keys.index_copy_(0, place, key)
        except NotImplementedError:
            self.keys[place] = key
        return self.keys


class Decoder(nn.Module):
    """Two layers, each with a cache that it writes into under an ``except``, and a block without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.caches = [Cache(6), Cache(6)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = x.abs().mean() + 1
        for layer, cache in zip(self.layers, self.caches, strict=True):
            x = layer(x / scale)
            x = x + cache.update(x).sum(0)
        return x


def states(model: Any) -> list[torch.Tensor]:
    return [tensor.clone() for cache in model.caches for tensor in (cache.length, cache.keys)]


def test_a_decoder_with_a_cache_is_one_recording_that_writes_where_the_cache_lies() -> None:
    torch.manual_seed(0)
    model = Decoder()
    original = copy.deepcopy(model)
    made, recording = compiled(model, torch.randn(1, 2))
    assert made.code.count("segment_") == 1
    for _ in range(4):
        x = torch.randn(1, 2)
        torch.testing.assert_close(made(x), original(x))
        torch.testing.assert_close(states(model), states(original))
    assert (recording.recorded, recording.launched) == (1, 4)


def test_a_cache_that_moves_is_found_again_and_one_that_always_moves_is_copied() -> None:
    torch.manual_seed(0)
    original = Decoder()
    made, recording = compiled(copy.deepcopy(original), torch.randn(1, 2))
    for _ in range(6):
        for one in (made, original):
            for cache in one.caches:
                cache.keys, cache.length = cache.keys.clone(), cache.length.clone()
        x = torch.randn(1, 2)
        torch.testing.assert_close(made(x), original(x))
        torch.testing.assert_close(states(made), states(original))
    assert 1 < recording.recorded <= 4


def test_a_call_under_an_except_that_fails_in_a_segment_is_a_guard_that_failed() -> None:
    model = Decoder()
    made, _ = compiled(model, torch.randn(1, 2))
    for _ in range(6):
        made(torch.randn(1, 2))
    before = states(model)
    with pytest.raises(clew.GuardError, match="index"):
        made(torch.randn(1, 2))
    torch.testing.assert_close(states(model)[:2], before[:2])


def test_kernels_of_inductor_are_recorded() -> None:
    recording = OnCpu()
    cache = torch.zeros(4)

    def program(x: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        cache.add_(x.exp())
        return (x * 2 + cache).sum()

    made = clew.compile(program, RecordedInductor(recording), (torch.ones(4), torch.zeros(4)))
    wanted = torch.zeros(4)
    for _ in range(3):
        x = torch.randn(4)
        torch.testing.assert_close(made(x, cache), program(x, wanted))
        torch.testing.assert_close(cache, wanted)
    assert (recording.recorded, recording.launched) == (1, 3)
