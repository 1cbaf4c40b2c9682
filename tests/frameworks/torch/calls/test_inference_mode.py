"""Captures inside of inference mode, of tensors and modules that were made there."""

import pytest
import torch
from torch import nn

import clew


def shifted(x):
    return torch.relu(x) + 1


def branching(x):
    return x * 2 if x.sum() > 0 else x - 1


def written(x):
    x += 1
    return x * 2


def generated(x):
    return (row * 2 for row in x)


PROGRAMS = (shifted, branching, written)


@pytest.mark.parametrize(
    "program", [*PROGRAMS, nn.Linear(3, 3), nn.BatchNorm1d(3)], ids=[*(f.__name__ for f in PROGRAMS), "linear", "norm"]
)
@pytest.mark.parametrize("lazy", [False, True])
def test_inside(program, lazy):
    with torch.inference_mode():
        x = torch.ones(2, 3)
        captured = clew.trace(program) if lazy else clew.trace(program, args=(x,))
        assert x.tolist() == torch.ones(2, 3).tolist()
        for sign in (1.0, -1.0):
            assert torch.equal(captured(torch.full((4, 3), sign)), program(torch.full((4, 3), sign)))


def test_tensors_of_inference_mode_outside_of_it():
    with torch.inference_mode():
        x = torch.ones(2, 3)
        layer = nn.Linear(3, 3)
    assert torch.equal(clew.trace(shifted, args=(x,))(x), shifted(x))
    assert torch.equal(clew.trace(layer, args=(x,))(x), layer(x))


def test_a_write_past_torch_is_followed():
    with torch.inference_mode():
        x = torch.ones(3)
        memory = x.numpy()

        def program(y):
            memory[0] = 5.0
            return y + 1

        captured = clew.trace(program, args=(x,))
        assert x.tolist() == [1.0, 1.0, 1.0]
        assert captured(x).tolist() == [6.0, 2.0, 2.0]


def test_a_generator_as_result():
    with torch.inference_mode():
        captured = clew.trace(generated, args=(torch.ones(2, 3),))
        assert [row.tolist() for row in captured(torch.ones(2, 4))] == [[2.0] * 4] * 2
