"""Programs that catch errors of their own calls: the graph makes the call that fails, and relies on the failure."""

from __future__ import annotations

import pytest
import torch

import clew
from clew.capture.bytecode.try_blocks import attempted
from clew.errors import CaptureError, GuardError


def _product(x, y):
    try:
        return x @ y
    except RuntimeError:
        return x @ y.T


def _told(x, y):
    try:
        return x @ y
    except RuntimeError as error:
        return x.sum() * len(str(error))


def _at_index(x):
    try:
        return x[7]
    except IndexError:
        return x.sum()


def _divided(x):
    try:
        return x * (10 // (x.shape[0] - 3))
    except ZeroDivisionError:
        return -x


def _several(x, y):
    for other in (y, y.T, y[:3]):
        try:
            return torch.cat([x, other]) * 2
        except (RuntimeError, ValueError):
            continue
    return x


def _in_place(x, y):
    try:
        x.add_(y)
    except RuntimeError:
        return x * 0
    return x


def _outer(x, y):
    try:
        return _inner(x, y)
    except (ValueError, RuntimeError):
        return x


def _inner(x, y):
    return x.reshape(7, 7) + y


def _from_list(x):
    try:
        return torch.tensor([1.0, 2.0]).view(3) + x
    except RuntimeError:
        return x + 1


def test_a_call_that_fails_is_made_again():
    graph = clew.trace(_product, (torch.randn(2, 3), torch.randn(4, 3)))
    for sizes in ((2, 3, 4), (5, 3, 7), (1, 2, 6)):
        x, y = torch.randn(sizes[0], sizes[1]), torch.randn(sizes[2], sizes[1])
        assert torch.equal(graph(x, y), x @ y.T)
    with pytest.raises(GuardError, match="failure_of"):
        graph(torch.randn(2, 3), torch.randn(3, 3))


def test_a_text_that_is_looked_at_counts():
    x, y = torch.randn(2, 3), torch.randn(4, 3)
    graph = clew.trace(_told, (x, y))
    assert torch.equal(graph(x, y), _told(x, y))
    with pytest.raises(GuardError):
        graph(torch.randn(2, 3), torch.randn(14, 3))


@pytest.mark.parametrize(
    ("program", "example", "other"),
    [
        (_at_index, (torch.randn(3),), (torch.randn(5),)),
        (_divided, (torch.randn(3),), (torch.randn(3),)),
        (_several, (torch.randn(2, 3), torch.randn(3, 4)), (torch.randn(4, 3), torch.randn(3, 4))),
        (_outer, (torch.randn(3), torch.randn(3)), (torch.randn(5), torch.randn(5))),
        (_from_list, (torch.randn(3),), (torch.randn(5),)),
    ],
)
def test_errors_that_are_caught(program, example, other):
    graph = clew.trace(program, example)
    for given in (example, other):
        assert torch.equal(graph(*given), program(*given))


def test_the_other_way_is_guarded():
    graph = clew.trace(_at_index, (torch.randn(3),))
    with pytest.raises(GuardError):
        graph(torch.randn(9))
    graph = clew.trace(_divided, (torch.randn(3),))
    with pytest.raises(GuardError):
        graph(torch.randn(4))


def test_a_failed_write_is_refused():
    with pytest.raises(CaptureError, match="catches a RuntimeError"):
        clew.trace(_in_place, (torch.randn(2), torch.randn(3)))


def test_lazy_captures_keep_both_ways():
    lazy = clew.trace(_product)
    for shape in ((4, 3), (3, 4), (5, 3), (3, 3)):
        x, y = torch.randn(2, 3), torch.randn(shape)
        assert torch.equal(lazy(x, y), _product(x, y))
    assert len(lazy.captures) == 2


@pytest.mark.parametrize("manager", [torch.no_grad, torch.enable_grad, lambda: torch.autocast("cpu")])
def test_managers_of_torch_pass_errors_on(manager):
    """Also where a capture has put something in the place of their methods: nothing inside of them is tried."""

    def program(x):
        with manager():
            y = x[0] + 1
        return x * y

    captured = clew.trace(program, (torch.randn(2, 4),))
    assert not any(attempted(node) is not node for node in captured.graph.nodes)
