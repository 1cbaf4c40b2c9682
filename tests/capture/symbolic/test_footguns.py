"""The ledger of docs/footguns.md: what symbolic tracing cannot promise, each with its warning or its plain fact."""

import random
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import clew
from clew.errors import TraceWarning

X = torch.rand(3, 3)
LEDGER = Path(__file__).resolve().parents[3] / "docs" / "footguns.md"


def line_of(function, text):
    """The number of the line of ``function`` in this file that holds ``text``."""
    first = function.__code__.co_firstlineno
    lines = Path(__file__).read_text().splitlines()
    return next(number for number in range(first, len(lines)) if text in lines[number - 1])


def test_every_entry_of_the_ledger_has_its_test():
    named = re.findall(r"`(test_\w+)`", LEDGER.read_text())
    assert len(named) >= 8
    beside = "".join(path.read_text() for path in Path(__file__).parents[2].rglob("test_*.py"))
    assert [name for name in named if f"def {name}(" not in beside] == []


def draws(x):
    return x + torch.rand(3)


def test_random_numbers_without_symbols_are_frozen():
    before = torch.get_rng_state()
    with pytest.warns(TraceWarning, match="rand drew random numbers") as told:
        traced = clew.symbolic_trace(draws)
    assert torch.equal(torch.get_rng_state(), before)
    assert (told[0].filename, told[0].lineno) == (__file__, line_of(draws, "torch.rand"))
    assert torch.equal(traced(X), traced(X))


def test_random_numbers_with_symbols_are_recorded(recwarn):
    traced = clew.symbolic_trace(lambda x: x + torch.rand_like(x))
    assert not torch.equal(traced(X), traced(X))
    assert not [told for told in recwarn if told.category is TraceWarning]


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        return x * (self.scale + 1)


def test_values_computed_from_buffers_alone_are_frozen():
    module = Scaled()
    with pytest.warns(TraceWarning, match="computed from 'scale' alone"):
        traced = clew.symbolic_trace(module)
    module.scale.add_(1)
    torch.testing.assert_close(traced(X), X * 2)


def test_the_way_out_for_buffers(recwarn):
    class Symbolic(clew.Tracer):
        proxy_buffer_attributes = True

    module = Scaled()
    traced = clew.GraphModule(module, Symbolic().trace(module))
    module.scale.add_(1)
    torch.testing.assert_close(traced(X), module(X))
    assert not [told for told in recwarn if told.category is TraceWarning]


class Branches(Scaled):
    def forward(self, x):
        return x if self.scale.sum() > 5 else -x


def test_a_branch_on_a_buffer_is_frozen():
    with pytest.warns(TraceWarning, match="'scale'"):
        traced = clew.symbolic_trace(Branches())
    torch.testing.assert_close(traced(X), -X)


class Assigns(Scaled):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.last = None

    def forward(self, x):
        self.calls += 1
        self.last = x
        self.scale = self.scale + 1
        return x


def test_assigned_attributes_are_put_back():
    module = Assigns()
    scale = module.scale
    with pytest.warns(TraceWarning, match="was assigned while tracing") as told:
        traced = clew.symbolic_trace(module)
    assert (module.calls, module.last) == (0, None) and module.scale is scale
    assert sorted(re.findall(r"attribute '(\w+)'", " ".join(str(t.message) for t in told))) == [
        "calls",
        "last",
        "scale",
    ]
    assert all(t.filename == __file__ for t in told)
    assert traced(X) is X


def test_hooks_of_the_root_are_left_out():
    module = nn.Sequential(nn.ReLU())
    module.register_forward_hook(lambda module, inputs, result: result + 1)
    with pytest.warns(TraceWarning, match="has forward hooks"):
        traced = clew.symbolic_trace(module)
    torch.testing.assert_close(traced(X), torch.relu(X))
    torch.testing.assert_close(clew.symbolic_trace(nn.Sequential(module))(X), torch.relu(X) + 1)


class Called(Scaled):
    def __call__(self, x):
        return super().__call__(x) + 1

    def forward(self, x):
        return x * self.scale


def test_a_call_of_the_roots_own_is_left_out():
    with pytest.warns(TraceWarning, match=r"Called\.__call__"):
        clew.symbolic_trace(Called())


class Trains(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5, training=self.training)


def test_the_training_flag_is_frozen():
    traced = clew.symbolic_trace(Trains().eval())
    torch.testing.assert_close(traced.train()(X), X)
    kept = clew.symbolic_trace(nn.Sequential(nn.Dropout()).eval())
    assert not torch.equal(kept.train()(X + 1), X + 1)


def test_questions_about_the_class_are_answered_for_the_proxy():
    def asks(x):
        return x + 1 if isinstance(x, torch.Tensor) else x + 2

    torch.testing.assert_close(clew.symbolic_trace(asks)(X), X + 2)


def test_text_of_a_symbolic_value_is_its_name():
    assert clew.symbolic_trace(lambda x: (f"{x}", x))(X)[0] == "Proxy(x)"


def test_what_python_reads_elsewhere_is_frozen():
    traced = clew.symbolic_trace(lambda x: x + random.random())
    assert torch.equal(traced(X), traced(X))


def fails_inside(x):
    with torch.no_grad():
        return x.view(7)


def test_a_failure_inside_a_region_is_raised():
    traced = clew.symbolic_trace(fails_inside)
    try:
        with pytest.raises(RuntimeError, match="invalid for input of size"):
            traced(X)
    finally:
        torch.set_grad_enabled(True)


CACHE = torch.zeros(3)


def writes_outside(x):
    CACHE.add_(x[0])
    return x + CACHE


def test_a_tensor_outside_the_root_is_shared_by_all_runs():
    with pytest.warns(TraceWarning, match="no part of the root") as told:
        traced = clew.symbolic_trace(writes_outside)
    assert told[0].lineno == line_of(writes_outside, "CACHE.add_")
    before = CACHE.clone()
    traced(X)
    torch.testing.assert_close(CACHE, before + X[0])
