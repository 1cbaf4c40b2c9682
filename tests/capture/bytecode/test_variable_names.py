"""Nodes of a capture bear the names of the user's variables, where the result of a call goes straight into one."""

import operator
import sys
import types

import torch
from torch import nn
from torch.nn import functional

import clew
from clew.capture.bytecode.instructions import stored_in, variable_for
from clew.ir.source import source_of_frame
from tests.speed.counts import calls_in

seen = []


def called(*args, **kwargs):
    """Notes which variable gets its result."""
    frame = sys._getframe(1)
    seen.append(stored_in(frame.f_code, frame.f_lasti))
    return args or (1, 2)


class Thing:
    def __add__(self, other):
        frame = sys._getframe(1)
        seen.append(stored_in(frame.f_code, frame.f_lasti))
        return self

    __getitem__ = method = __add__


def assigning(holder):
    a = called(1)
    b = called(a, key=2)
    holder.c = called(*b)
    d = e = called(**{})
    if f := called(d, e):
        g = Thing() + 1
    g += 1
    h = g[0]
    i = h.method(f)
    cell = called(called(i))
    return lambda: cell


def not_assigning():
    _ = called()
    a, b = called()
    for _ in called(a, b):
        pass
    called()
    return called()


def test_the_variable_of_a_call_is_read_from_bytecode():
    seen.clear()
    assigning(types.SimpleNamespace())
    assert seen == ["a", "b", "c", "d", "f", "g", "g", "h", "i", "", "cell"]
    seen.clear()
    not_assigning()
    assert set(seen) == {""}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.seq = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x):
        h = self.fc(x)
        count = x.shape[0] * 2
        h = functional.softmax(h, dim=-1)
        through = self.seq(h)
        rest = through.squeeze()
        total = 1 - rest.T
        total += 2
        return functional.relu(self.fc(h)), total, count


def names_of(captured):
    return {node.name: node.target for node in captured.graph.nodes if node.op.startswith("call_")}


def test_nodes_are_called_like_the_variables():
    model = Model()
    captured = clew.trace(model, (torch.ones(2, 4),))
    names = names_of(captured)
    assert names["h"] == "fc" and names["h_1"] is functional.softmax and "count" in names
    assert names["rest"] == "squeeze" and names["total"] is operator.sub
    assert "    h = self.fc(x)\n" in captured.code
    assert torch.equal(captured(torch.ones(2, 4))[0], model(torch.ones(2, 4))[0])


def test_what_a_library_calls_on_the_way_keeps_its_own_name():
    names = names_of(clew.trace(Model(), (torch.ones(2, 4),)))
    assert names["seq_0"] == "seq.0" and names["seq_1"] == "seq.1" and not any("through" in name for name in names)


def test_items_and_helpers_of_guards_take_no_variable():
    def program(x):
        first, second = x.chunk(2)
        late = x.shape
        flat = first.squeeze()
        return flat + second, late[0] + 1

    captured = clew.trace(program, (torch.ones(2, 3),))
    names = names_of(captured)
    assert names["flat"] == "squeeze"
    assert "late" not in captured.code


def test_names_that_python_needs():
    def program(x):
        input = x * 2
        torch = input + 1
        self = torch * 3
        return self - 1

    x = torch.ones(3)
    captured = clew.trace(program, (x,))
    assert captured(x).equal(program(x))


def test_looking_again_is_cheap():
    frame = sys._getframe()
    source = source_of_frame(frame)
    variable_for(frame, source, (), "relu")
    assert calls_in(lambda: variable_for(frame, source, (), "relu")) <= 2  # the lambda, and the look itself
