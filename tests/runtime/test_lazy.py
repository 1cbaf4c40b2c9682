"""Lazy graphs of functions, and what holds for all: threads, the limit of captures, copies, tools of torch."""

from __future__ import annotations

import copy
import pickle
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from clew.capture.current_capture import LOCK
from clew.runtime.lazy import LazyGraph

X = torch.arange(3.0)
THREADS = 16


def way(x: Tensor, name: str) -> Tensor:
    """Decides by a plain argument."""
    return x * 2 if name == "double" else x + len(name)


@clew.trace
def decorated(x: Tensor) -> Tensor:
    """A function of this module, replaced by its lazy graph."""
    return x + 1


def at_once(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """What each of many threads gets, all of which start together; the first error is raised."""
    barrier, results = threading.Barrier(count), [None] * count

    def run(place: int) -> None:
        barrier.wait()
        try:
            results[place] = work(place)
        except Exception as error:
            results[place] = error

    workers = [threading.Thread(target=run, args=(place,)) for place in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


# ---- threads ---------------------------------------------------------------------------------------------------------


def test_many_threads_may_make_the_first_call_together():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.GELU(), nn.Dropout(0.5)).eval()
    lazy = clew.trace(model)
    x = torch.rand(2, 3)
    for result in at_once(lambda place: lazy(x)):
        assert torch.equal(result, model(x))
    assert len(lazy.captures) == 1


def test_threads_that_need_other_captures_get_theirs():
    lazy = clew.trace(way)
    names = ["double", "a", "bb", "ccc"]  # a capture with another name may hold the branch for "double" too

    def work(place: int) -> None:
        for turn in range(40):
            name = names[(place + turn) % len(names)]
            assert torch.equal(lazy(X, name), way(X, name))

    at_once(work)
    assert len(lazy.captures) in (len(names) - 1, len(names))


def test_captures_of_several_programs_may_start_together():
    models = [nn.Sequential(nn.Linear(3, size), nn.ReLU()) for size in range(1, 9)]
    found = at_once(lambda place: clew.trace(models[place], (torch.ones(1, 3),)), len(models))
    for captured, model in zip(found, models, strict=True):
        assert torch.equal(captured(torch.ones(2, 3)), model(torch.ones(2, 3)))


def test_a_call_that_waits_for_too_long_runs_the_original(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("clew.runtime.lazy._PATIENCE", 0.05)
    lazy, results = clew.trace(way), []
    with LOCK:
        worker = threading.Thread(target=lambda: results.append(lazy(X, "double")))
        worker.start()
        worker.join(60)
    assert torch.equal(results[0], X * 2) and lazy.captures == []


def test_no_capture_is_made_while_another_thread_calls_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("clew.runtime.lazy._DRAINING", 0.05)
    lazy = clew.trace(way)
    lazy(X, "double")
    lazy._running.threads.append(-1)  # as a call in a thread that does not end
    assert torch.equal(lazy(X, "a"), way(X, "a")) and len(lazy.captures) == 1
    lazy._running.threads.remove(-1)
    assert torch.equal(lazy(X, "a"), way(X, "a")) and len(lazy.captures) == 2


def test_calls_wait_for_a_capture_of_the_same_program():
    def slow(parts: list[Tensor]) -> Tensor:
        if len(parts) > 1:
            time.sleep(0.3)
        return parts[0] + len(parts)

    lazy = clew.trace(slow)
    lazy([X])

    def work(place: int) -> int:
        parts = [X, X][place:]
        while len(parts) == 1 and not lazy._running.is_capturing:
            time.sleep(0.001)
        assert torch.equal(lazy(parts), X + len(parts))
        return len(lazy.captures)

    assert at_once(work, 2) == [2, 2] and lazy._running.threads == []


# ---- the limit -------------------------------------------------------------------------------------------------------


def test_beyond_its_limit_a_lazy_graph_runs_the_original_and_says_so_once():
    lazy = clew.trace(way, limit=2)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for name in ("double", "a", "bb", "ccc", "double", "bb"):
            assert torch.equal(lazy(X, name), way(X, name))
    assert len(lazy.captures) == 2
    (warning,) = [one for one in found if issubclass(one.category, RuntimeWarning)]
    assert "as many captures as it may have" in str(warning.message) and "name == 'double'" in str(warning.message)
    assert warning.filename == __file__


# ---- copies ----------------------------------------------------------------------------------------------------------


def test_a_lazy_graph_of_a_function_is_pickled_with_its_captures():
    lazy = clew.trace(way)
    lazy(X, "double")
    again = pickle.loads(pickle.dumps(lazy))
    assert isinstance(again, LazyGraph) and len(again.captures) == 1
    for name in ("double", "a"):
        assert torch.equal(again(X, name), way(X, name))
    assert len(again.captures) == 2 and len(lazy.captures) == 1


def test_a_decorated_function_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(decorated)) is decorated


def test_copies_have_captures_of_their_own():
    lazy = clew.trace_graph(way)
    lazy(X, "double")
    for twin in (copy.copy(lazy), copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert torch.equal(twin(X, "a"), way(X, "a")) and twin.fn is way
    assert len(lazy.captures) == 1


# ---- tools of torch --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_called_before", [False, True])
def test_the_compiler_reads_the_original(is_called_before: bool):
    lazy = clew.trace(way)
    if is_called_before:
        lazy(X, "double")
    compiled = torch.compile(lambda x: lazy(x, "double") + lazy(x, "a"), backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), way(X, "double") + way(X, "a"))
    assert len(lazy.captures) == is_called_before
    torch._dynamo.reset()


def test_a_lazy_graph_of_a_lazy_graph_is_one_of_the_original():
    lazy = clew.trace(clew.trace(way))
    assert lazy.fn is way and torch.equal(lazy(X, "double"), X * 2)
    assert torch.equal(clew.trace(lazy, (X, "double"))(X, "double"), X * 2)


def test_what_each_capture_has_is_told():
    lazy = clew.trace(way)
    with pytest.raises(AttributeError, match="it has none yet; call it"):
        lazy.code  # noqa: B018
    lazy(X, "double")
    with pytest.raises(AttributeError, match=r"its captures have: lazy.captures\[0\].graph"):
        lazy.graph  # noqa: B018
    assert not hasattr(lazy, "code") and not hasattr(clew.trace(torch.nn.Linear(2, 2)), "guards")


def test_a_class_of_modules_is_no_program():
    with pytest.raises(clew.CaptureError, match=r"clew.trace\(Linear\(...\), args\)"):
        clew.trace(torch.nn.Linear)
