"""Modules whose parts bear names that a captured module needs for itself."""

import copy
import pickle

import pytest
import torch
from torch import nn

import clew


class Named(nn.Module):
    """Adds, or calls, what it keeps under a name."""

    def __init__(self, name, part):
        super().__init__()
        setattr(self, name, part)
        self.part_name = name

    def forward(self, x):
        part = getattr(self, self.part_name)
        return part(x) if isinstance(part, nn.Module) else x + part


NAMES = ("graph", "code", "guards", "meta", "recompile", "print_readable", "protection", "_graph", "root")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "make", [lambda: nn.Linear(3, 3), lambda: nn.Parameter(torch.rand(3))], ids=["module", "parameter"]
)
def test_a_part_may_have_any_name(name, make):
    model = Named(name, make())
    x = torch.rand(2, 3)
    captured = clew.trace(model, args=(x,))
    assert torch.equal(captured(x + 1), model(x + 1))
    assert isinstance(captured.graph, clew.Graph)
    assert "def forward" in captured.code
    assert list(captured.state_dict()) == list(model.state_dict())
    again = copy.deepcopy(captured)
    again.load_state_dict({key: value + 1 for key, value in model.state_dict().items()})
    assert not torch.equal(again(x), model(x))
    assert torch.equal(pickle.loads(pickle.dumps(captured))(x), model(x))


@pytest.mark.parametrize("name", ("view", "check", "node_of", "insert_after", "replace_module", "wrap_module"))
def test_methods_give_way_to_parts_of_a_symbolic_trace(name):
    model = Named(name, nn.Linear(3, 3))
    traced, x = clew.symbolic_trace(model), torch.rand(2, 3)
    assert torch.equal(traced(x), model(x)) and getattr(traced, name) is getattr(model, name)
    assert torch.equal(clew.trace(model, args=(x,))(x), model(x))


class Scaled(nn.Module):
    """Keeps a buffer that is not saved."""

    def __init__(self):
        super().__init__()
        self.register_buffer("code", torch.full((3,), 2.0), persistent=False)

    def forward(self, x):
        return x * self.code


def test_a_buffer_that_is_not_saved_stays_so():
    captured = clew.trace(Scaled(), args=(torch.rand(3),))
    assert captured(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
    assert list(captured.state_dict()) == []


def test_state_that_the_program_sets_under_such_a_name_is_refused():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.meta = 0

        def forward(self, x):
            self.meta += 1
            return x * self.meta

    with pytest.raises(clew.CaptureError, match="attribute 'meta'"):
        clew.trace(Counting(), args=(torch.rand(3),))
