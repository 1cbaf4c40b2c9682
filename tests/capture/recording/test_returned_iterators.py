"""Programs that give iterators: the graph computes all values, and notices what would have changed them."""

from __future__ import annotations

import types

import pytest
import torch

import clew
from clew.errors import CaptureError, GuardError

FACTOR = 2


def scaled(x, count):
    for index in range(count):
        yield x * index
    return x.sum()


def of_list(parts):
    for part in parts:
        yield part * FACTOR


def mapped(x):
    return map(torch.exp, x)


def filtered(x):
    return filter(lambda row: row.dim() == 1, [x[0], x, x[1]])


def test_a_generator_gives_the_same_values():
    graph = clew.trace(scaled, (torch.ones(3), 3))
    for x in (torch.arange(3.0), torch.arange(5.0)):
        result = graph(x, 3)
        assert type(result) is types.GeneratorType
        assert all(torch.equal(one, other) for one, other in zip(result, scaled(x, 3), strict=True))


def test_what_a_generator_returns():
    walked = clew.trace(scaled, (torch.ones(3), 0))(torch.arange(3.0), 0)
    with pytest.raises(StopIteration) as end:
        next(walked)
    assert torch.equal(end.value.value, torch.tensor(3.0))


@pytest.mark.parametrize(("program", "kind"), [(mapped, map), (filtered, filter)])
def test_other_iterators(program, kind):
    graph = clew.trace(program, (torch.ones(2, 3),))
    x = torch.randn(2, 4)
    assert type(graph(x)) is kind
    assert all(torch.equal(one, other) for one, other in zip(graph(x), program(x), strict=True))


def test_changes_while_it_is_walked_are_noticed():
    graph = clew.trace(scaled, (torch.ones(3), 3))
    x = torch.ones(3)
    walked = graph(x, 3)
    next(walked)
    x.add_(1)
    with pytest.raises(GuardError, match="nothing changes while its generator is walked"):
        next(walked)
    walked = graph(x, 3)
    with torch.no_grad(), pytest.raises(GuardError):
        next(walked)


def test_a_list_that_grows_is_noticed():
    parts = [torch.ones(2), torch.zeros(2)]
    graph = clew.trace(of_list, (parts,))
    assert len(list(graph(parts))) == 2
    walked = graph(parts)
    parts.append(torch.ones(2))
    with pytest.raises(GuardError):
        next(walked)


def test_a_variable_set_while_a_generator_is_walked_is_not_seen():
    global FACTOR
    walked = clew.trace(of_list, ([torch.ones(2)],))([torch.ones(2)])
    FACTOR = 3
    try:
        assert torch.equal(next(walked), torch.full((2,), 2.0))
    finally:
        FACTOR = 2


def test_a_generator_that_does_more_than_compute_is_refused():
    def drawing(x):
        yield x + torch.rand(2)

    def writing(x):
        yield x.add_(1)

    for program in (drawing, writing):
        with pytest.raises(CaptureError, match="does more than compute"):
            clew.trace(program, (torch.ones(2),))


def test_an_endless_generator_is_refused():
    def endless(x):
        while True:
            yield x

    with pytest.raises(CaptureError, match="very many values"):
        clew.trace(endless, (torch.ones(2),))


def test_a_lazy_graph_gives_generators_too():
    lazy = clew.trace(scaled)
    for count in (2, 2, 4):
        x = torch.randn(3)
        assert all(torch.equal(one, other) for one, other in zip(lazy(x, count), scaled(x, count), strict=True))
