"""Loops whose variables are None, or a number, until some round makes an array of them: one loop for any length."""

from __future__ import annotations

import numpy
import pytest
import torch

import clew


def total(x):
    total = 0
    for row in x:
        total = total + row.sum()
    return total


def best(x):
    best = None
    for row in x:
        y = row.sum()
        best = y if best is None else torch.maximum(best, y)
    return best


def last_large(x):
    found = None
    for row in x:
        if row.sum() > 1:
            found = row
    return x.sum(0) if found is None else found


def mean_of_positive(x):
    total, count = 0.0, 0
    for row in x:
        if row.sum() > 0:
            total += row.mean()
            count += 1
    return total / max(count, 1), count


def first_and_best(x):
    first, best = None, None
    for row in x:
        if row.sum() > 0:
            if first is None:
                first = row * 2
            best = row if best is None else torch.maximum(best, row)
    return first, best


def stops(x):
    found = None
    for row in x:
        if row.sum() > 2:
            break
        if row.sum() > 0:
            found = row + 1
    return found


def product_or_none(x):
    product, seen = None, False
    for row in x:
        if row.min() > 0:
            product = row.clone() if product is None else product * row
            seen = True
    return product, seen


def in_place(x):
    kept = None
    for row in x:
        if row.sum() > 0:
            if kept is None:
                kept = row.clone()
            else:
                kept += row
    return kept


PROGRAMS = [total, best, last_large, mean_of_positive, first_and_best, stops, product_or_none, in_place]
SHAPES = [(0, 2), (1, 2), (2, 2), (5, 2), (9, 2)]


def outcome(program, x):
    try:
        return program(x.clone())
    except clew.GuardError:
        raise
    except Exception as error:
        return type(error)


def same(one, other):
    if isinstance(one, tuple):
        return type(other) is tuple and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    return type(one) is type(other) and one == other


def examples():
    torch.manual_seed(0)
    return [torch.zeros(3, 2), torch.ones(3, 2), -torch.ones(2, 2), *(torch.randn(shape) for shape in SHAPES * 4)]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("example", [torch.ones(3, 2), -torch.ones(4, 2), torch.tensor([[1.0, 1], [-1, -1], [1, 0]])])
def test_one_capture_for_all_lengths_and_values(program, example):
    captured = clew.trace(program, (example,), dynamic=True)
    refused = 0
    for x in examples():
        try:
            assert same(outcome(program, x), outcome(captured, x))
        except clew.GuardError:
            refused += 1
    assert refused == 0 or example.max() < 0  # where no round sets the variable, nothing tells of what kind it would be


def test_the_code_is_that_of_the_program():
    code = clew.trace(last_large, (torch.ones(3, 2),), dynamic=True).code
    assert "for row in x:" in code
    assert "if found is None:" in code
    assert code.count("for ") == 1


def test_a_loop_without_a_round_leaves_the_number():
    captured = clew.trace(total, (torch.ones(3, 2),), dynamic=True)
    assert captured(torch.ones(0, 2)) == 0
    assert type(captured(torch.ones(0, 2))) is int


def test_what_follows_must_bear_either():
    def root(x):
        total = 0
        for row in x:
            total = total + row.sum()
        return total.sqrt()

    captured = clew.trace(root, (torch.ones(3, 2),), dynamic=True)
    assert torch.equal(captured(torch.ones(2, 2)), root(torch.ones(2, 2)))
    with pytest.raises((AttributeError, clew.GuardError)):
        captured(torch.ones(0, 2))


def test_numpy():
    def program(x):
        found = None
        for row in x:
            if row.sum() > 1:
                found = row * 2
        return x if found is None else found

    captured = clew.trace(program, (numpy.ones((3, 2)),), dynamic=True)
    for x in (numpy.ones((5, 2)), numpy.zeros((2, 2)), numpy.array([[3.0, 1], [0, 0]])):
        assert numpy.array_equal(captured(x), program(x))
