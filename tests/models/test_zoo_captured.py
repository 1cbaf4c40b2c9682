"""Every model of the zoo captured from an example: the same results, gradients and state, and at another batch size."""

import pytest
import torch
from models import BY_EXAMPLE, captured_zoo
from torch import Tensor
from torch.utils._pytree import tree_map

import clew
from tests.models.zoo_checks import gradients, run, same, state

each_model = pytest.mark.parametrize("name", captured_zoo)
each_mode = pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
ROW_BY_ROW = sorted(set(captured_zoo) - {"dlrm", "graph_convolution"})  # those two take no batches of this kind


@each_mode
@each_model
def test_same_results_and_state(name: str, training: bool) -> None:
    entry = captured_zoo[name]
    plain, root = entry.build().train(training), entry.build().train(training)
    captured = clew.trace(root, args=entry.inputs())
    same(state(plain), state(root), "state after the capture")
    for seed in (1, 2):
        same(run(plain, entry.inputs(seed), seed), run(captured, entry.inputs(seed), seed))
    ours, theirs = state(captured), state(plain)
    same(
        {key: theirs[key] for key in ours if key in theirs}, {key: ours[key] for key in ours if key in theirs}, "state"
    )


@pytest.mark.parametrize("name", BY_EXAMPLE)
def test_same_gradients(name: str) -> None:
    entry = captured_zoo[name]
    captured = clew.trace(entry.build(), args=entry.inputs())
    same(gradients(entry.build(), entry.inputs()), gradients(captured, entry.inputs()), "gradients")


@pytest.mark.parametrize("name", ROW_BY_ROW)
def test_other_batch_sizes(name: str) -> None:
    entry = captured_zoo[name]
    plain, captured = entry.build().eval(), clew.trace(entry.build().eval(), args=entry.inputs())
    for size in (1, 3):
        inputs = tree_map(lambda leaf, rows=size: resized(leaf, rows), entry.inputs(2))
        same(run(plain, inputs), run(captured, inputs))


def resized(tensor: Tensor, rows: int) -> Tensor:
    return torch.cat([tensor, tensor])[:rows]


def test_a_conformer_takes_any_length() -> None:
    entry = captured_zoo["conformer"]
    plain, captured = entry.build().eval(), clew.trace(entry.build().eval(), args=entry.inputs())
    for frames in (1, 8, 50):
        inputs = (torch.randn(2, frames, 12),)
        same(run(plain, inputs), run(captured, inputs))
