"""A captured module whose parts are put into another mode than they were in: the graph does what the original does."""

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
def test_a_part_that_asks_for_its_mode_finds_it(kind, mode):
    model = Model(kind())
    model.encoder.train(mode)
    x = torch.ones(4, 3)
    captured = clew.trace(model, args=(x,))
    again = clew.trace(captured, args=(x,))
    for now in (mode, not mode, mode):
        for twin in (captured, copy.deepcopy(captured), again):
            model.encoder.train(now)
            twin.encoder.train(now)
            assert same(twin, model, x)


class Identical(Encoder):
    def forward(self, x):
        return self.linear(x) * 2 if self.training is True else self.linear(x)


class InDict(Encoder):
    def forward(self, x):
        return self.linear(x) * 2 if vars(self)["training"] else self.linear(x)


@pytest.mark.parametrize("kind", [Identical, InDict])
def test_a_mode_that_only_its_plain_value_answers_for_is_guarded(kind):
    model, x = Model(kind()), torch.ones(4, 3)
    captured = clew.trace(model, args=(x,))
    assert same(captured, model, x)
    captured.encoder.eval()
    with pytest.raises(clew.GuardError, match=r"assumed self\.encoder\.training, but"):
        captured(x)
    captured.out.eval()
    captured.encoder.train()
    assert same(captured, model, x)


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
