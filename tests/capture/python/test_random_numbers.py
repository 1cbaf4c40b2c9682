"""Random numbers of Python inside captured programs: every draw is made anew, from the same stream."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn

import clew
from clew.errors import CaptureError, GuardError

X = torch.arange(4.0)


def _same_for_all_seeds(make, seeds=range(12)):
    """The capture draws like the original, whatever the streams give."""
    graph = clew.trace(make(), (X,))
    for seed in seeds:
        results = []
        for function in (make(), graph):
            random.seed(seed)
            results.append((function(X + seed), random.random()))
        assert torch.equal(results[0][0], results[1][0]), seed
        assert results[0][1] == results[1][1], seed


def _branch(x):
    return x.flip(0) if random.random() < 0.5 else x * 2


def _choice_of_functions(x):
    return random.choice([torch.sin, torch.cos, torch.neg])(x)


def _choice_of_numbers(x):
    return x * random.choice([1, 2, 3]) + random.choice((0.5, 1.5)) + random.choice(range(2, 9, 3))


def _choice_of_tensors(x):
    return random.choice([x, x + 1, -x]) * 2


def _choices(x):
    return x + sum(random.choices([1.0, 2.0, 4.0], weights=[1, 1, 3], k=3))


def _choices_of_texts(x):
    names = random.choices(["add", "mul"], k=2)
    for name in names:
        x = getattr(x, name)(3)
    return x


def _sample_of_tensors(x):
    first, second = random.sample([x, x * 10, x - 1], 2)
    return first - second


def _shuffle(x):
    parts = [x, x * 10, x * 100]
    random.shuffle(parts)
    return torch.stack(parts)


def _number_of_rounds(x):
    for _ in range(random.randint(0, 3)):
        x = x + 1
    return x


def _as_float(x):
    return x * float(random.random()) + int(random.uniform(0, 5))


def _back_again(x):
    before = random.getstate()
    first = random.random()
    random.setstate(before)
    return x * first + random.random()


PROGRAMS = [
    _branch, _choice_of_functions, _choice_of_numbers, _choice_of_tensors, _choices, _choices_of_texts,
    _sample_of_tensors, _shuffle, _number_of_rounds, _as_float, _back_again,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__.strip("_") for program in PROGRAMS])
def test_draws_are_made_anew(program):
    _same_for_all_seeds(lambda: program)


def test_layers_are_dropped_at_random():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

        def forward(self, x):
            for layer in self.layers:
                if random.random() < 0.5:
                    x = layer(x)
            return x

    torch.manual_seed(0)
    model = Model()
    _same_for_all_seeds(lambda: model)


def _own(method):
    stream = random.Random(3)

    def f(x):
        return method(stream, x)

    return f, stream


_METHODS = {
    "number": lambda stream, x: x * stream.random() + stream.gauss(0, 1),
    "branch": lambda stream, x: x if stream.random() < 0.5 else -x,
    "choice": lambda stream, x: stream.choice([x, x + 1, x + 2]),
    "shuffle": lambda stream, x: _shuffled(stream, x),
    "seeded": lambda stream, x: x * (stream.random() if stream.seed(5) is None else 0),
}


def _shuffled(stream, x):
    order = [0, 1, 2, 3]
    stream.shuffle(order)
    return x[order]


@pytest.mark.parametrize("name", _METHODS)
def test_a_stream_of_the_program_is_drawn_from(name):
    (original, first), (subject, second) = _own(_METHODS[name]), _own(_METHODS[name])
    graph = clew.trace(subject, (X,))
    assert second.getstate() == first.getstate()
    for _ in range(8):
        assert torch.equal(graph(X), original(X))
    assert second.getstate() == first.getstate()


def test_a_stream_in_a_module_and_in_a_list():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.stream, self.others = random.Random(0), [random.Random(1), random.Random(2)]

        def forward(self, x):
            return x * self.stream.random() + self.others[1].random()

    original, subject = Model(), Model()
    graph = clew.trace(subject, (X,))
    for _ in range(3):
        assert torch.equal(graph(X), original(X))


def test_another_stream_in_its_place_is_guarded_or_used():
    class Holder:
        def __init__(self):
            self.stream = random.Random(0)

        def __call__(self, x):
            return x * self.stream.random()

    holder = Holder()
    graph = clew.trace(holder, (X,))
    holder.stream = random.Random(7)
    with pytest.raises(GuardError):
        graph(X)


def test_a_stream_among_the_arguments():
    def f(x, stream):
        return x * stream.random() if stream.random() < 0.5 else x + stream.randint(1, 9)

    graph = clew.trace(f, (X, random.Random(0)))
    for seed in range(8):
        one, other = random.Random(seed), random.Random(seed)
        assert torch.equal(graph(X, one), f(X, other))
        assert one.getstate() == other.getstate()


def test_a_guard_that_fails_takes_draws_back():
    stream = random.Random(0)

    def f(x):
        return x[: int(stream.random() * 0) + operator_index(x)] * stream.random()

    def operator_index(x):
        return 2 if x.sum().item() > 3 else 1

    graph = clew.trace(f, (X,), control_flow="guard")
    before = stream.getstate()
    with pytest.raises(GuardError):
        graph(-X)
    assert stream.getstate() == before


def test_a_look_into_the_state_is_refused():
    def f(x):
        return x * random.getstate()[1][0]

    with pytest.raises(CaptureError, match="a look into the state"):
        clew.trace(f, (X,))
