"""Answers that follow from the sizes of inputs alone: guarded before the program, computed once for each size."""

import copy
import pickle

import pytest
import torch

import clew


def packed(x):
    positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0)
    steps = torch.diff(positions, prepend=positions[:, :1] - 1, dim=-1)
    return x * 2 if (steps != 1).sum() == 0 else x


def few(x):
    return x * 2 if bool((torch.arange(x.shape[0], device=x.device) < 4).all()) else x - 1


def by_values(x):
    return x * 2 if bool((torch.arange(x.shape[0]) * x.long() >= 0).all()) else x - 1


def by_fractions(x):
    return x * 2 if bool((torch.arange(x.shape[0]) / 3 < 4).all()) else x - 1


def written(x):
    positions = torch.arange(x.shape[0])
    positions[0] = 7
    return x * 2 if bool((positions < 4).all()) else x - 1


def traced(program, *args):
    return clew.trace(program, args=args, control_flow="guard")


def computed(captured):
    return [one for one in captured.guards if one.kind == "computed"]


def test_an_answer_of_sizes_is_no_part_of_the_program():
    x = torch.randn(2, 5)
    captured = traced(packed, x)
    assert not computed(captured) and "arange" not in captured.code
    for length in (1, 3, 9):
        given = torch.randn(2, length)
        torch.testing.assert_close(captured(given), packed(given))


def test_another_answer_is_refused():
    captured = traced(few, torch.randn(3))
    assert not computed(captured)
    torch.testing.assert_close(captured(torch.ones(4)), few(torch.ones(4)))
    with pytest.raises(clew.GuardError, match="size|assumed"):
        captured(torch.ones(5))
    assert captured.check(torch.ones(5)) is not None and captured.check(torch.ones(2)) is None


@pytest.mark.parametrize("program", [by_values, by_fractions, written])
def test_what_does_not_follow_from_sizes_in_whole_numbers_stays(program):
    captured = traced(program, torch.ones(3))
    assert computed(captured)
    torch.testing.assert_close(captured(torch.ones(3)), program(torch.ones(3)))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_ask_too(copied):
    twin = copied(traced(few, torch.randn(3)))
    torch.testing.assert_close(twin(torch.ones(4)), few(torch.ones(4)))
    with pytest.raises(clew.GuardError):
        twin(torch.ones(5))


def test_a_compiler_finds_a_constant():
    torch._dynamo.reset()
    compiled = torch.compile(traced(packed, torch.randn(2, 5)), backend="eager", fullgraph=True)
    for length in (5, 3, 9):
        given = torch.randn(2, length)
        torch.testing.assert_close(compiled(given), packed(given))
