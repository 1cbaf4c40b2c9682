"""``torch.Tensor(...)`` and its like inside a captured program."""

import pytest
import torch

import clew


def of_a_list(x):
    return x * torch.Tensor([1.0, 2.0, 3.0])


def of_sizes(x):
    made = torch.Tensor(x.shape[0], 3).fill_(2.0)
    return x + made


def of_numbers_of_the_input(x):
    return x + torch.Tensor([x.shape[0], len(x)]).sum()


def written_to(x):
    made = torch.Tensor([0.0, 0.0, 0.0])
    made += x.sum(0)
    return made, torch.LongTensor([1, 2])


def empty(x):
    return torch.cat([torch.Tensor(), x.flatten()])


PROGRAMS = (of_a_list, of_sizes, of_numbers_of_the_input, written_to, empty)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_tensor_is_made_anew_at_each_call(program):
    captured = clew.trace(program, args=(torch.ones(2, 3),))
    for rows in (2, 5, 1):
        x = torch.rand(rows, 3)
        torch.testing.assert_close(captured(x), program(x), rtol=0, atol=0)


def test_the_class_is_as_it_was_afterwards():
    before = dict(vars(torch.Tensor))
    clew.trace(of_a_list, args=(torch.ones(2, 3),))
    assert dict(vars(torch.Tensor)) == before
    assert torch.Tensor([1.0, 2.0]).tolist() == [1.0, 2.0]


def test_a_tensor_of_a_tensor_is_refused():
    with pytest.raises(clew.CaptureError, match="does not see"):
        clew.trace(lambda x: torch.Tensor(x) + 1, args=(torch.ones(2, 3),))
