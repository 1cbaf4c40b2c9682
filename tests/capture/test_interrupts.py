"""An interrupt at any moment of a capture leaves nothing behind, and reaches the program where its code runs."""

from __future__ import annotations

import _signal
import functools
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import clew
from benchmarks.forks import in_child
from benchmarks.interrupts import LEFT, left_behind
from clew.capture.interrupts import DeferredSignals
from clew.capture.patches import patched_places

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers with signals here")


@pytest.fixture
def alarm() -> Iterator[None]:
    """A timer whose handler raises."""

    def raise_error(number: int, frame: Any) -> None:
        raise TimeoutError("the time is over")

    before = signal.signal(signal.SIGALRM, raise_error)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", ["batch norm", "counter", "arrays", "symbolic"])
def test_nothing_is_left_behind(name: str) -> None:
    found = in_child(functools.partial(left_behind, name, 25, 1), 120, str)
    assert isinstance(found, dict), found
    assert found["interrupted"] > 3
    assert not any(found[what] for what in LEFT), found


def test_a_program_that_does_not_end_can_be_interrupted(alarm: None) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        while len(str(x.shape)) > 0:
            time.monotonic()
        return x

    signal.setitimer(signal.ITIMER_REAL, 0.3)
    with pytest.raises(TimeoutError, match="the time is over"):
        clew.trace(program, args=(torch.ones(2),))
    assert patched_places() == 0


def test_what_comes_during_clews_own_work_waits_for_its_end(alarm: None) -> None:
    handler = signal.getsignal(signal.SIGALRM)
    done = []
    with pytest.raises(TimeoutError), DeferredSignals():
        _in_clew(functools.partial(os.kill, os.getpid(), signal.SIGALRM))
        done.append("what was under way")
    assert done == ["what was under way"]
    assert signal.getsignal(signal.SIGALRM) is handler


def _in_clew(act: Any) -> None:
    """Run something in a frame whose code counts as Clew's own, as the frames after it do not."""
    names: dict[str, Any] = {"act": act}
    exec(compile("def run():\n    act()\n    return [None for _ in range(3)]\nrun()", "<clew test>", "exec"), names)


def test_handlers_are_put_back_and_those_of_the_program_stay(alarm: None) -> None:
    before = signal.getsignal(signal.SIGINT)
    clew.trace(torch.nn.Linear(2, 2), args=(torch.ones(2),))
    assert signal.getsignal(signal.SIGINT) is before


def test_captures_in_other_threads_change_no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[Any] = []
    monkeypatch.setattr(_signal, "signal", lambda number, handler: changed.append(number))
    thread = threading.Thread(target=lambda: clew.trace(torch.nn.Linear(2, 2), args=(torch.ones(2),)))
    thread.start()
    thread.join()
    assert not changed
