"""Modes that are switched for a block, where the block is left inside a branch on data: by an early return, say."""

import pytest
import torch

import clew
from tests.control_flow.examination import generated, outline


@torch.no_grad()
def decorated(x):
    if x.sum() > 0:
        return x.relu() + 1
    return x * 2


def with_block(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x.relu() + 1
        y = x * 2
    return y + x


@torch.enable_grad()
def enabled(x):
    if x.sum() > 0:
        return x * 2
    return x * 3


@torch.autocast("cpu", dtype=torch.bfloat16)
def lower(x):
    if x.sum() > 0:
        return x @ x
    return x + x @ x


@torch.inference_mode()
def inferred(x):
    if x.sum() > 0:
        return (x + 1).is_inference()
    return (x * 2).is_inference()


def two_blocks(x):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        if x.sum() > 0:
            return x @ x
        if x.max() > -1:
            return x.T @ x
    return x * 2


PROGRAMS = (decorated, with_block, enabled, lower, inferred, two_blocks)


def modes():
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")


def described(result):
    if not isinstance(result, torch.Tensor):
        return result
    return result.dtype, result.requires_grad, result.float().tolist()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("around", [torch.enable_grad, torch.no_grad], ids=lambda mode: mode.__name__)
@pytest.mark.parametrize("sign", [1.0, -1.0, -0.01])
def test_both_sides_end_in_the_mode_of_the_caller(program, around, sign):
    captured = clew.trace(program, args=(torch.ones(2, 2, requires_grad=True),))
    x = (torch.eye(2) * sign).requires_grad_()
    with around():
        before = modes()
        expected, result = program(x), captured(x)
        assert modes() == before
    assert described(result) == described(expected)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("make", [clew.trace, lambda program: clew.trace(program, args=(torch.ones(2, 2),))])
def test_an_error_inside_leaves_the_block(program, make):
    captured = make(program)
    captured(torch.ones(2, 2))
    before = modes()
    with pytest.raises((TypeError, RuntimeError, clew.GuardError)):
        captured(torch.ones(2, 2, dtype=torch.complex64))
    assert modes() == before


def test_an_error_after_the_block_does_not_leave_it_twice():
    def program(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            if x.sum() > 0:
                z = x @ x
            else:
                return x
        return z + y

    captured = clew.trace(program, args=(torch.ones(2, 2), torch.ones(2)))
    nesting = torch.autocast_increment_nesting()
    with pytest.raises(RuntimeError):
        captured(torch.ones(2, 2), torch.ones(3))
    assert torch.autocast_increment_nesting() == nesting + 1
    torch.autocast_decrement_nesting()
    torch.autocast_decrement_nesting()


@pytest.mark.parametrize("program", [decorated, lower, enabled], ids=lambda program: program.__name__)
def test_a_block_to_the_end_is_a_with_and_is_captured_again_to_the_same_graph(program):
    captured = clew.trace(program, args=(torch.ones(2, 2),))
    assert "    with torch." in captured.code
    assert "__exit__" not in captured.code
    again = clew.trace(generated(captured), args=(torch.ones(2, 2),))
    assert outline(again.graph) == outline(captured.graph)
