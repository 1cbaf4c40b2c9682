"""Constants: computed once where that cannot be seen, and random numbers baked in on request."""

from __future__ import annotations

import pytest
import torch

import clew

WEIGHT = torch.tensor([1.0, 2.0])


def powers(x: torch.Tensor) -> torch.Tensor:
    return x ** (torch.tensor([2]) + torch.tensor([1]))


def targets(captured: clew.GraphFunction) -> list[str]:
    return [str(getattr(node.target, "__name__", node.target)) for node in captured.graph.nodes]


def test_what_depends_on_constants_alone_is_computed_once() -> None:
    cached, whole = (clew.trace(powers, (torch.ones(2),), array_caching=flag) for flag in (True, False))
    assert "tensor" not in targets(cached) and "tensor" in targets(whole)
    x = torch.tensor([2.0, 3.0])
    assert torch.equal(cached(x), powers(x)) and torch.equal(whole(x), powers(x))


def test_a_constant_that_is_written_to_or_given_away_is_made_at_each_call() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.zeros(2)
        total[:1].add_(x[:1])
        given = torch.arange(2).view(2, 1)
        return total * 1, given

    captured = clew.trace(f, (torch.ones(2),))
    for _ in range(2):
        total, given = captured(torch.ones(2))
        assert total.tolist() == [1.0, 0.0] and given.tolist() == [[0], [1]]
        given.add_(5)


def test_an_array_around_the_program_that_is_changed_is_noticed() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * (WEIGHT * 2 + 1)

    captured = clew.trace(f, (torch.ones(2),))
    assert "add" not in targets(captured)
    assert torch.equal(captured(torch.ones(2)), f(torch.ones(2)))
    WEIGHT.mul_(1)
    with pytest.raises(clew.GuardError, match="_version"):
        captured(torch.ones(2))


def test_the_default_dtype_counts() -> None:
    captured = clew.trace(lambda x: x + torch.zeros(2), (torch.ones(2),))
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(clew.GuardError, match="defaults of torch"):
            captured(torch.ones(2))
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_leaf_that_wants_a_gradient_is_no_constant() -> None:
    weight = torch.ones(2, requires_grad=True)
    captured = clew.trace(lambda x: (x * (weight * 2)).sum(), (torch.ones(2),))
    captured(torch.ones(2)).backward()
    assert weight.grad is not None and weight.grad.tolist() == [2.0, 2.0]


def test_random_numbers_are_fresh_or_baked() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x ** torch.randint(0, 100, size=[1]) + torch.rand([1])

    fresh, baked = (clew.trace(f, (torch.ones(3) * 1.01,), include_generators=flag) for flag in (True, False))
    x = torch.full((3,), 1.01)
    torch.manual_seed(3)
    wanted = f(x)
    torch.manual_seed(3)
    assert torch.equal(fresh(x), wanted)
    assert not torch.equal(fresh(x), fresh(x))
    state = torch.get_rng_state()
    assert torch.equal(baked(x), baked(x))
    assert torch.equal(torch.get_rng_state(), state)
    assert "rand" not in targets(baked)


def test_what_is_made_of_an_array_that_was_written_to_is_no_constant() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        table = torch.arange(3.0)
        turned = table.view(3, 1)
        table[0] = x[0]
        return x + (table * 2).cos() + turned.sum()

    captured = clew.trace(program, (torch.ones(3),))
    other = torch.tensor([5.0, 1.0, 1.0])
    assert torch.equal(captured(other), program(other))
