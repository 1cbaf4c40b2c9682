"""A captured module whose parts are put into another mode than they were in: the graph holds, or says so."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.9)

    def forward(self, x):
        return F.dropout(self.linear(x), 0.9, self.training)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.9)

    def forward(self, x):
        return self.drop(self.linear(x))


class Model(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.out = nn.Linear(3, 3)

    def forward(self, x):
        return self.out(self.encoder(x))


def noisy(x, module):
    return F.dropout(x, 0.9, module.training)


class Outside(Encoder):
    """Lets a function ask for its mode."""

    def forward(self, x):
        return noisy(self.linear(x), self)


def same(captured, model, x):
    torch.manual_seed(0)
    expected = model(x)
    torch.manual_seed(0)
    return torch.equal(captured(x), expected)


@pytest.mark.parametrize("kind", [Encoder, Outside])
@pytest.mark.parametrize("mode", [True, False])
def test_a_part_that_asked_for_its_mode_is_guarded(kind, mode):
    model = Model(kind())
    model.encoder.train(mode)
    x = torch.ones(4, 3)
    captured = clew.trace(model, args=(x,))
    assert same(captured, model, x)
    captured.encoder.train(not mode)
    with pytest.raises(clew.GuardError, match=r"self\.encoder\.training"):
        captured(x)
    with pytest.raises(clew.GuardError, match=r"self\.encoder\.training"):
        clew.trace(captured, args=(x,))(x)
    for twin in (copy.deepcopy(captured), captured):
        twin.encoder.train(mode)
        assert same(twin, model, x)


def test_a_layer_that_stays_one_call_has_its_own_mode():
    model = Model(Plain())
    x = torch.ones(4, 3)
    captured = clew.trace(model, args=(x,))
    for one in (model, captured):
        one.encoder.drop.eval()
    assert same(captured, model, x)


def test_parts_are_in_the_mode_of_the_original():
    model = Model(Encoder()).eval()
    captured = clew.trace(model, args=(torch.ones(4, 3),))
    assert [part.training for part in captured.modules()] == [False] * len(list(captured.modules()))
