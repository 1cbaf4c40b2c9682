"""Random numbers of torch, NumPy and Python: fresh at each call, from the same streams as the original."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.footguns.ledger import Case, call, program


@program("torch_noise", kind="random_numbers")
def _():
    def f(x):
        return x + torch.randn_like(x) + torch.rand(x.shape[-1])

    return Case(
        f,
        example=lambda: call(torch.zeros(2, 3)),
        others=[lambda: call(torch.zeros(4, 3)), lambda: call(torch.zeros(2, 5))],
    )


@program("dropout_in_training", kind="random_numbers")
def _():
    return Case(
        nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5)).train(),
        example=lambda: call(torch.ones(2, 4)),
        others=[lambda: call(torch.ones(5, 4))],
        gradients=True,
    )


@program("dropout_probability_argument", kind="random_numbers")
def _():
    def f(x, p=0.5, training=True):
        return F.dropout(x, p=p, training=training)

    return Case(
        f,
        example=lambda: call(torch.ones(20)),
        others=[lambda: call(torch.ones(20), p=0.1), lambda: call(torch.ones(20), training=False)],
    )


@program("manual_seed_inside", kind="random_numbers")
def _():
    def f(x, seed=0):
        torch.manual_seed(seed)
        return x + torch.rand(3)

    return Case(
        f,
        example=lambda: call(torch.zeros(3)),
        others=[lambda: call(torch.zeros(3), seed=7), lambda: call(torch.ones(3))],
    )


@program("own_generator", kind="random_numbers")
def _():
    generator = torch.Generator().manual_seed(3)

    def f(x):
        return x + torch.rand(2, generator=generator)

    return Case(f, example=lambda: call(torch.zeros(2)), others=[lambda: call(torch.ones(2))], state=lambda: generator)


@program("generator_argument_used", kind="random_numbers")
def _():
    def f(x, generator=None):
        return x + torch.randn(x.shape, generator=generator)

    return Case(
        f,
        example=lambda: call(torch.zeros(2), torch.Generator().manual_seed(1)),
        others=[
            lambda: call(torch.zeros(2), torch.Generator().manual_seed(2)),
            lambda: call(torch.zeros(2)),
            lambda: call(torch.zeros(4), torch.Generator().manual_seed(1)),
        ],
    )


@program("generator_made_inside", kind="random_numbers")
def _():
    def f(x, seed):
        generator = torch.Generator()
        generator.manual_seed(seed)
        return x * torch.randperm(len(x), generator=generator)

    return Case(
        f,
        example=lambda: call(torch.ones(6), 1),
        others=[lambda: call(torch.ones(6), 2), lambda: call(torch.ones(9), 1)],
    )


@program("python_random_factor", kind="random_numbers")
def _():
    def f(x):
        return x * random.random()

    return Case(f, example=lambda: call(torch.ones(2)), others=[lambda: call(torch.ones(2))])


@program("python_random_choice", kind="random_numbers")
def _():
    def f(x):
        function = random.choice([torch.sin, torch.cos, torch.exp, torch.neg])
        return function(x)

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2)), lambda: call(torch.ones(2)), lambda: call(torch.ones(2))],
    )


@program("python_shuffle", kind="random_numbers")
def _():
    def f(x):
        order = list(range(6))
        random.shuffle(order)
        return x[order]

    return Case(
        f,
        example=lambda: call(torch.arange(6)),
        others=[lambda: call(torch.arange(6)), lambda: call(torch.arange(6) * 2)],
    )


@program("own_python_random", kind="random_numbers")
def _():
    source = random.Random(5)

    def f(x):
        return x + source.randint(0, 10**6)

    return Case(
        f,
        example=lambda: call(torch.zeros(1, dtype=torch.long)),
        others=[lambda: call(torch.zeros(1, dtype=torch.long))],
        state=lambda: repr(source.getstate()),
    )


@program("numpy_noise", kind="random_numbers")
def _():
    def f(x):
        noise = np.random.randn(*x.shape).astype(np.float32)
        return x + torch.from_numpy(noise)

    return Case(
        f,
        example=lambda: call(torch.zeros(2, 2)),
        others=[lambda: call(torch.zeros(2, 2)), lambda: call(torch.zeros(3, 2))],
    )


@program("numpy_permutation", kind="random_numbers")
def _():
    def f(x):
        return x[np.random.permutation(len(x))]

    return Case(
        f, example=lambda: call(torch.arange(8)), others=[lambda: call(torch.arange(8)), lambda: call(torch.arange(5))]
    )


@program("numpy_generator_object", kind="random_numbers")
def _():
    rng = np.random.default_rng(4)

    def f(x):
        return x * float(rng.uniform())

    return Case(
        f,
        example=lambda: call(torch.ones(2)),
        others=[lambda: call(torch.ones(2))],
        state=lambda: repr(rng.bit_generator.state),
    )


@program("random_branch", kind="random_numbers")
def _():
    def f(x):
        if torch.rand(()) < 0.5:
            return x * 2
        return x - 1

    return Case(f, example=lambda: call(torch.ones(2) * 5), others=[lambda: call(torch.ones(2) * 5)] * 4)


@program("python_random_branch", kind="random_numbers")
def _():
    def f(x, p=0.5):
        return x.flip(0) if random.random() < p else x

    return Case(f, example=lambda: call(torch.arange(3)), others=[lambda: call(torch.arange(3))] * 4)


@program("stochastic_depth", kind="random_numbers")
def _():
    class Drop(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                if self.training and torch.rand([]) < 0.5:
                    continue
                x = x + layer(x)
            return x

    return Case(
        Drop().train(),
        example=lambda: call(torch.ones(1, 3)),
        others=[lambda: call(torch.ones(1, 3)), lambda: call(torch.ones(2, 3))],
    )


@program("mixup", kind="random_numbers")
def _():
    def f(x):
        share = float(np.random.beta(0.4, 0.4))
        order = torch.randperm(x.size(0))
        return share * x + (1 - share) * x[order]

    return Case(
        f,
        example=lambda: call(torch.arange(4.0)),
        others=[lambda: call(torch.arange(4.0)), lambda: call(torch.arange(6.0))],
    )


@program("random_size", kind="random_numbers")
def _():
    def f(x):
        size = int(torch.randint(1, len(x), ()))
        return x[:size]

    return Case(f, example=lambda: call(torch.arange(9)), others=[lambda: call(torch.arange(9))] * 3)


@program("random_crop", kind="random_numbers")
def _():
    def f(image, size=2):
        top = random.randint(0, image.shape[-2] - size)
        left = np.random.randint(0, image.shape[-1] - size + 1)
        return image[..., top : top + size, left : left + size]

    return Case(
        f,
        example=lambda: call(torch.arange(36.0).view(6, 6)),
        others=[lambda: call(torch.arange(36.0).view(6, 6)), lambda: call(torch.arange(80.0).view(8, 10), size=3)],
    )


@program("random_in_place", kind="random_numbers")
def _():
    def f(x):
        x.normal_(0, 1)
        mask = torch.empty(3).bernoulli_(0.5)
        return x * mask

    return Case(f, example=lambda: call(torch.zeros(3)), others=[lambda: call(torch.ones(3))])


@program("sampling_token", kind="random_numbers")
def _():
    def f(logits, temperature=1.0, k=None):
        scores = logits / temperature
        if k is not None:
            floor = scores.topk(k).values[..., -1, None]
            scores = scores.masked_fill(scores < floor, float("-inf"))
        return torch.multinomial(scores.softmax(-1), 1)

    return Case(
        f,
        example=lambda: call(torch.zeros(1, 9)),
        others=[
            lambda: call(torch.arange(9.0)[None], temperature=0.1),
            lambda: call(torch.arange(9.0)[None] * 0.01, k=1),
            lambda: call(torch.zeros(4, 9)),
        ],
    )


@program("fork_rng", kind="random_numbers")
def _():
    def f(x):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            fixed = torch.rand(2)
        return x + fixed + torch.rand(2)

    return Case(f, example=lambda: call(torch.zeros(2)), others=[lambda: call(torch.ones(2))])


@program("rng_state_saved_and_restored", kind="random_numbers")
def _():
    def f(x):
        state = torch.get_rng_state()
        first = torch.rand(2)
        torch.set_rng_state(state)
        second = torch.rand(2)
        return x + first - second * 2

    return Case(f, example=lambda: call(torch.zeros(2)), others=[lambda: call(torch.ones(2))])


@program("unused_random_draw", kind="random_numbers")
def _():
    def f(x):
        torch.rand(3)
        random.random()
        return x + torch.rand(1)

    return Case(f, example=lambda: call(torch.zeros(2)), others=[lambda: call(torch.ones(2))])


@program("distribution_object", kind="random_numbers")
def _():
    def f(mean, deviation):
        normal = torch.distributions.Normal(mean, deviation)
        sample = normal.rsample()
        return sample, normal.log_prob(sample).sum()

    return Case(
        f,
        example=lambda: call(torch.zeros(2), torch.ones(2)),
        others=[lambda: call(torch.ones(3) * 5, torch.ones(3) * 0.1), lambda: call(torch.zeros(2), -torch.ones(2))],
        gradients=True,
    )


def _seeded(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@program("generators_drawn_and_seeded", kind="random_numbers")
def _():
    def f(x, a, b):
        noise = torch.randn(2, generator=a)
        b.manual_seed(7)
        return x + noise + torch.randn(2, generator=b) + torch.empty(2).normal_(generator=a)

    return Case(
        f,
        example=lambda: call(torch.zeros(2), *_seeded(1, 2)),
        others=[
            lambda: call(torch.ones(2), *_seeded(3, 4)),
            lambda: call(torch.ones(2), *_seeded(5) * 2),
        ],
    )


@program("generator_given_twice", kind="random_numbers")
def _():
    def f(x, a, b):
        return x + torch.rand(2, generator=a), torch.rand(2, generator=b), a is b

    return Case(
        f,
        example=lambda: call(torch.zeros(2), *_seeded(1) * 2),
        others=[lambda: call(torch.ones(2), *_seeded(3) * 2), lambda: call(torch.ones(2), *_seeded(3, 3))],
    )


@program("generator_set_back", kind="random_numbers")
def _():
    def f(options):
        state = options["generator"].get_state()
        first = torch.rand(2, generator=options["generator"])
        options["generator"].set_state(state)
        return first, torch.rand(3, generator=options["generator"]), options["generator"].initial_seed()

    return Case(
        f,
        example=lambda: call({"generator": _seeded(1)[0]}),
        others=[lambda: call({"generator": _seeded(9)[0]})],
    )


@program("generator_or_none", kind="random_numbers")
def _():
    def f(x, generator=None):
        return torch.bernoulli(x * 0.5, generator=generator), generator

    return Case(
        f,
        example=lambda: call(torch.ones(4), _seeded(1)[0]),
        others=[lambda: call(torch.ones(6), _seeded(2)[0]), lambda: call(torch.ones(4))],
    )
