"""Stages in processes of their own, DDP over a captured model, and what happens where a process goes away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn

import clew
from clew import tree
from tests.tools.pipeline_worker import start


def test_two_processes_train_as_one_and_a_lost_worker_is_told() -> None:
    told = start(2, ["1F1B", "ddp", "refuse", "die"])
    assert all(text.count("DONE") == 3 for text in told[:1]), told[0]
    assert "between stages was 6 in the example, and is 7 now" in told[0]
    assert "REFUSED stage 1 of 2 cannot go on" in told[1], told[1]
    assert "SAID stage 0 of 2 cannot go on" in told[0] and "in time" in told[0]


def test_captured_models_are_sharded_and_split() -> None:
    """FSDP2 and tensor parallelism over captures; what is distributed before it is captured is refused."""
    told = start(2, ["fsdp", "tensor"])
    assert all(text.count("DONE") == 2 for text in told), told
    assert "SAID the program works on a DTensor" in told[0]


@pytest.fixture
def alone() -> Iterator[None]:
    """A group of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def stages(count: int) -> tuple[Any, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.randn(6, 4)
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    return clew.split(clew.trace(model, (x,)), stages=count), x


def loss_of(result: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (result - target).pow(2).mean()


def test_making_a_pipeline_changes_nothing(alone: None) -> None:
    whole, x = stages(1)
    before = {name: value.clone() for name, value in whole.state_dict().items()}
    state = torch.get_rng_state()
    run = whole.pipeline((x,), microbatches=2, loss=loss_of)
    torch.testing.assert_close(dict(whole.state_dict()), before, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), state)
    target = torch.randn(6, 2)
    found = run.step(x, target=target)
    assert len(run.losses) == 2
    torch.testing.assert_close(torch.stack(run.losses).mean(), loss_of(found, target))


def test_what_is_no_pipeline_is_refused(alone: None) -> None:
    whole, x = stages(1)
    with pytest.raises(clew.ClewError, match="2 stages and 1 processes"):
        stages(2)[0].pipeline((x,), microbatches=2)
    with pytest.raises(clew.ClewError, match="schedule='zigzag'"):
        whole.pipeline((x,), microbatches=2, schedule="zigzag")
    with pytest.raises(clew.ClewError, match="4 equal parts"):
        whole.pipeline((x,), microbatches=4)
    run = whole.pipeline((x,), microbatches=2)
    with torch.no_grad():
        torch.testing.assert_close(run.step(x).shape, torch.Size([6, 2]))
    with pytest.raises(clew.ClewError, match="made for 6 rows, and this batch has 4"):
        run.step(x[:4])


def test_no_processes_no_pipeline() -> None:
    whole, x = stages(2)
    with pytest.raises(clew.ClewError, match="needs processes that know each other"):
        whole.pipeline((x,), microbatches=2)
    captured = clew.split(clew.trace(lambda x: x.sin().cos(), (x,)), stages=2)
    with pytest.raises(clew.ClewError, match="only stages of torch modules"):
        captured.pipeline((x,), microbatches=2)
    assert tree.flatten(whole(x))[0][0].shape == (6, 2)
