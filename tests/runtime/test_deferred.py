"""Guards on computed values that wait: inside of ``deferring()``, and while a CUDA graph is recorded, a call does not
look at what a tensor holds; ``confirm()`` does. Only those wait behind which all can be computed whatever they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clew
from clew.frameworks.torch import guest
from clew.ir.guards import deferring


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.LayerNorm(3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x)
        if x.isfinite().all():
            x = self.norm(x)
        return torch.relu(x) * 2


def plain(x: Tensor) -> Tensor:
    return x * 2 if (x > 0).all() else x + 1


def negated(x: Tensor) -> Tensor:
    return x + 1 if (x < 0).any() else x * 2


def twice(x: Tensor) -> Tensor:
    x = x * 2 if (x > 0).all() else x + 1
    return x.exp() if x.sum() < 100 else x


def indexing(x: Tensor, index: Tensor) -> Tensor:
    if index.max() < 3:
        return x[index]
    return x


def gathering(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(0, index) if index.max() < 3 else x


def counting(x: Tensor) -> Tensor:
    return torch.zeros(int(x.sum())) if (x > 0).all() else x


def writing(x: Tensor) -> Tensor:
    if (x > 0).all():
        x.add_(1)
    return x * 2


KEPT = torch.tensor(True)


@clew.wrap
def flag(x: Tensor) -> Tensor:
    return KEPT


def by_flag(x: Tensor) -> Tensor:
    return x * 2 if flag(x) else x + 1


def _traced(program: Any, *args: Any) -> Any:
    return clew.trace(program, args, control_flow="guard")


@pytest.mark.parametrize("calls", [0, 4])
@pytest.mark.parametrize(("make", "wanted"), [(lambda: plain, "(x > 0).all()"), (lambda: negated, "not "), (Model, "")])
def test_a_guard_waits_and_is_confirmed(make: Callable[[], Any], wanted: str, calls: int) -> None:
    program, good, bad = make(), torch.ones(2, 3), torch.full((2, 3), float("-inf"))
    captured = _traced(program, good)
    for _ in range(calls):
        captured(good)
    with deferring():
        found = captured(good)
        captured.confirm()
        torch.testing.assert_close(found, program(good))
        captured(bad)
    with pytest.raises(clew.GuardError, match="the graph assumed") as error:
        captured.confirm()
    assert wanted in str(error.value)
    captured.confirm()  # what it told of is over
    with pytest.raises(clew.GuardError):
        captured(bad)


def test_several_guards_wait() -> None:
    captured, good = _traced(twice, torch.ones(2, 3)), torch.ones(2, 3)
    with deferring():
        for given in (good, good * 1000):
            captured(given)
    with pytest.raises(clew.GuardError, match="100"):
        captured.confirm()


@pytest.mark.parametrize(
    ("program", "good", "bad"),
    [
        (indexing, (torch.arange(3.0), torch.tensor([0, 2])), (torch.arange(3.0), torch.tensor([0, 9]))),
        (gathering, (torch.arange(3.0), torch.tensor([0, 2])), (torch.arange(3.0), torch.tensor([0, 9]))),
        (counting, (torch.ones(3),), (-torch.ones(3),)),
        (writing, (torch.ones(3),), (-torch.ones(3),)),
    ],
)
def test_a_guard_that_others_rely_on_does_not_wait(program: Any, good: Any, bad: Any) -> None:
    captured = _traced(program, *good)
    with deferring():
        with pytest.raises(clew.GuardError):
            captured(*bad)
        found = captured(*(one.clone() for one in good))
        torch.testing.assert_close(found, program(*(one.clone() for one in good)))


def test_an_edit_is_looked_at() -> None:
    good, index = torch.ones(3), torch.tensor([0, 1])
    captured = clew.trace(lambda x, index: (x > 0).all() and x * 2, (good, index), control_flow="guard")
    output = captured.graph.output_node()
    taken = next(node for node in captured.graph.nodes if node.name == "index")
    with captured.graph.inserting_before(output):
        output.args = (captured.graph.call_method("index_select", (output.args[0], 0, taken)),)
    with deferring(), pytest.raises(clew.GuardError):
        captured(-good, index)


@contextmanager
def _recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if a CUDA graph was recorded, and all tensors were the device's."""
    with monkeypatch.context() as patched:
        patched.setattr(guest.TorchGuest, "must_not_wait", lambda self, array=None: True)
        yield


def test_a_cuda_graph_is_confirmed_after_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensor that a guard has kept is written by each run of a CUDA graph."""
    captured = _traced(by_flag, torch.ones(3))
    with _recorded(monkeypatch):
        captured(torch.ones(3))
    captured.confirm()
    for holds in (False, True, False):
        KEPT.fill_(holds)
        if holds:
            captured.confirm()
        else:
            with pytest.raises(clew.GuardError, match="the graph assumed"):
                captured.confirm()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_in_a_cuda_graph_of_the_user() -> None:
    model, x = Model().cuda().eval(), torch.ones(2, 3, device="cuda")
    captured = _traced(model, x)
    with torch.no_grad():
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            captured(x)
        torch.cuda.current_stream().wait_stream(stream)
        recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(recorded):
            found = captured(x)
        recorded.replay()
        captured.confirm()
        torch.testing.assert_close(found, model(x))
        x.fill_(float("inf"))
        recorded.replay()
        with pytest.raises(clew.GuardError, match="isfinite"):
            captured.confirm()
        x.fill_(2.0)
        recorded.replay()
        captured.confirm()
        torch.testing.assert_close(found, model(x))
