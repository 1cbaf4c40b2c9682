"""Texts that are made at each call but are only for the errors of a function that checks something."""

import pytest
import torch

import clew


class CheckError(Exception):
    """What the checks raise."""


def check(condition, message="", raises=True):
    if not condition:
        if raises:
            message = str(message)
            raise CheckError(message)
        return False
    return True


def check_by_assertion(condition, message):
    assert condition, message


notes = []


def check_and_note(condition, message):
    notes.append(message)
    if not condition:
        raise CheckError(message)


def formatted(x, y):
    check(x.shape[0] == y.shape[0], f"sizes {x.shape} and {y.shape[0]}")
    check(x.ndim > 0, message="size %s" % x.shape[0])  # noqa: UP031
    check_by_assertion(x.ndim > 0, "size " + str(x.shape[0]))
    return x + y


def noted(x, y):
    check_and_note(x.shape[0] == y.shape[0], f"sizes {x.shape[0]}")
    return x + y


def in_the_condition(x, y):
    check(f"{x.shape[0]}" != "5", "no five")
    return x + y


def on_data(x):
    check(x.sum() > 0, f"bad at {x.shape[0]}")
    return x * 2


def test_sizes_in_messages_are_free():
    captured = clew.trace(formatted, args=(torch.ones(2), torch.ones(2)))
    assert torch.equal(captured(torch.ones(5), torch.ones(5)), torch.full((5,), 2.0))
    with pytest.raises(clew.GuardError, match=r"x\.shape\[0\] == 2"):  # which the error of another size would tell
        captured(torch.ones(5), torch.ones(1))


@pytest.mark.parametrize("program", [noted, in_the_condition])
def test_sizes_in_texts_that_do_more_are_guarded(program):
    notes.clear()
    captured = clew.trace(program, args=(torch.ones(2), torch.ones(2)))
    with pytest.raises(clew.GuardError):
        captured(torch.ones(5), torch.ones(5))


def test_an_error_that_the_graph_raises_tells_the_size_or_is_guarded():
    captured = clew.trace(on_data, args=(torch.ones(2),))
    assert torch.equal(captured(torch.ones(3)), torch.full((3,), 2.0))
    with pytest.raises(CheckError, match="bad at 2"):
        captured(-torch.ones(2))
    with pytest.raises(clew.GuardError, match=r"x\.shape\[0\] == 2"):
        captured(-torch.ones(3))
