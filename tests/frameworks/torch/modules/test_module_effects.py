"""Effects of modules of torch.nn, which hang on their settings; in which mode a module is makes no difference."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from clew.ir.guests import Effect, guest

NONE, RANDOM, WRITE, UNKNOWN = Effect.NONE, Effect.RANDOM, Effect.WRITE, Effect.UNKNOWN


def effect(module):
    return guest("torch").module_effect(module)


CASES = [
    (lambda: nn.Linear(2, 2), NONE),
    (lambda: nn.Conv2d(2, 2, 1), NONE),
    (lambda: nn.LayerNorm(2), NONE),
    (lambda: nn.Dropout(0.5), RANDOM),
    (lambda: nn.Dropout(0.0), NONE),
    (lambda: nn.Dropout2d(0.5), RANDOM),
    (lambda: nn.AlphaDropout(0.5), RANDOM),
    (lambda: nn.Dropout(0.5, inplace=True), WRITE),
    (lambda: nn.BatchNorm2d(2), WRITE),
    (lambda: nn.BatchNorm1d(2, track_running_stats=False), NONE),
    (lambda: nn.InstanceNorm2d(2), NONE),
    (lambda: nn.InstanceNorm2d(2, track_running_stats=True), WRITE),
    (lambda: nn.ReLU(), NONE),
    (lambda: nn.ReLU(inplace=True), WRITE),
    (lambda: nn.RReLU(), RANDOM),
    (lambda: nn.FractionalMaxPool2d(2, output_size=1), RANDOM),
    (lambda: nn.LSTM(2, 2, num_layers=2, dropout=0.5), RANDOM),
    (lambda: nn.GRU(2, 2), NONE),
    (lambda: nn.MultiheadAttention(2, 1, dropout=0.1), RANDOM),
    (lambda: nn.MultiheadAttention(2, 1), NONE),
    (lambda: nn.TransformerEncoderLayer(2, 1), RANDOM),
    (lambda: nn.TransformerEncoderLayer(2, 1, dropout=0.0), NONE),
    (lambda: nn.TransformerEncoderLayer(2, 1, dropout=0.0, activation=lambda x: x), UNKNOWN),
    (lambda: nn.Embedding(2, 2), NONE),
    (lambda: nn.Embedding(2, 2, max_norm=1.0), WRITE),
    (lambda: nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), RANDOM),
    (lambda: nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(2)), WRITE),
    (lambda: nn.Sequential(nn.Sequential(nn.ReLU(inplace=True))), WRITE),
    (lambda: parametrizations.weight_norm(nn.Linear(2, 2)), NONE),
    (lambda: parametrizations.spectral_norm(nn.Linear(2, 2)), WRITE),
    (lambda: nn.LazyLinear(2), UNKNOWN),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_effects_of_modules(make, expected):
    module = make()
    assert effect(module.train()) is expected
    assert effect(module.eval()) is expected


class Users(nn.Linear):
    pass


class Doubling(nn.Module):
    def forward(self, weight):
        return weight * 2


def test_classes_of_users_are_not_vouched_for():
    assert effect(Users(2, 2)) is None
    assert effect(nn.Sequential(nn.Linear(2, 2), Users(2, 2))) is UNKNOWN
    parametrized = nn.Linear(2, 2)
    parametrize.register_parametrization(parametrized, "weight", Doubling())
    assert effect(parametrized) is UNKNOWN
    users = Users(2, 2)
    parametrize.register_parametrization(users, "weight", Doubling())
    assert effect(users) is None


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_are_unknown(register):
    module = nn.Sequential(nn.Linear(2, 2))
    handle = getattr(module[0], register)(lambda *args: None)
    assert effect(module) is UNKNOWN
    handle.remove()
    assert effect(module) is NONE


def test_a_forward_of_its_own_is_unknown():
    module = nn.ReLU()
    module.forward = lambda x: x
    assert effect(module) is UNKNOWN


def test_a_global_hook_is_unknown():
    handle = nn.modules.module.register_module_forward_hook(lambda *args: None)
    try:
        assert effect(nn.ReLU()) is UNKNOWN
    finally:
        handle.remove()
    assert effect(nn.ReLU()) is NONE


def test_the_drawing_modules_do_draw():
    """The tables against torch itself: the state of the generator moves exactly where they say so."""
    x = torch.randn(4, 2, 4, 4)
    for make, expected in [(lambda: nn.Dropout(0.5), True), (lambda: nn.Dropout(0.0), False), (nn.RReLU, True)]:
        for training in (True, False):
            module = make().train(training)
            before = torch.get_rng_state()
            module(x)
            moved = not torch.equal(before, torch.get_rng_state())
            assert moved is (expected and training)
            assert (effect(module) is RANDOM) is expected  # in any mode: it may be in the other one by then
