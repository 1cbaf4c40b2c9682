"""Calls that assign or delete are written as statements, and do the same as the calls that they stand for."""

import operator

import pytest
import torch

import clew
from clew.capture.state.slots import assign, remove
from clew.ir.graph import Graph
from clew.ir.interpreter import Interpreter
from clew.runtime.module import GraphModule


class Holder:
    """Something with attributes."""


def written(target, *args):
    """The lines of a graph that calls ``target`` on its input and gives the input back."""
    graph = Graph()
    holder = graph.placeholder("holder")
    graph.call_function(target, (holder, *args))
    graph.output(holder)
    module = GraphModule(torch.nn.Module(), graph)
    return module, [line.strip().removesuffix(";  holder = None") for line in module.code.strip().split("\n")[-2:-1]]


@pytest.mark.parametrize(
    ("target", "args", "line"),
    [
        (setattr, ("name", 3), "holder.name = 3"),
        (delattr, ("old",), "del holder.old"),
        (operator.setitem, ("key", 3), "holder['key'] = 3"),
        (operator.delitem, ("old",), "del holder['old']"),
        (setattr, ("not a name", 3), "setattr(holder, 'not a name', 3)"),
        (setattr, ("class", 3), "setattr(holder, 'class', 3)"),
        (setattr, ("__private", 3), "setattr(holder, '__private', 3)"),
        (delattr, ("no name",), "delattr(holder, 'no name')"),
    ],
)
def test_attributes_and_items(target, args, line):
    module, lines = written(target, *args)
    assert lines == [line]
    made = []
    for call in (module, Interpreter(module).run, lambda holder: (target(holder, *args), holder)[1]):
        holder = {"old": 1} if "item" in target.__name__ else Holder()
        if isinstance(holder, Holder):
            vars(holder).update({"old": 1, "no name": 2})
        result = call(holder)
        made.append(dict(result) if isinstance(result, dict) else vars(result))
    assert made[0] == made[1] == made[2]


def test_the_value_of_an_assignment_is_none():
    graph = Graph()
    holder = graph.placeholder("holder")
    graph.output((graph.call_function(setattr, (holder, "name", 1)), graph.call_function(delattr, (holder, "name"))))
    module = GraphModule(torch.nn.Module(), graph)
    assert "holder.name = 1;  setattr_1 = None" in module.code and module(Holder()) == (None, None)


def state_graph(*calls):
    """A graph that makes these calls on the root it gets."""
    graph = Graph()
    root = graph.get_attr("_self")
    for target, *args in calls:
        graph.call_function(target, (root, *args))
    return graph, root


def test_state_of_the_root_reads_as_python():
    graph, _ = state_graph((assign, "calls", 1), (assign, "part.calls", 2), (remove, "old"))
    graph.output(None)
    code = graph.python_code("self").src
    assert "    self.calls = 1\n    self.part.calls = 2\n    del self.old\n" in code
    assert "_self" not in code


@pytest.mark.parametrize("path", ["not a name", "part.class", "__private", ""])
def test_a_path_that_cannot_be_written_stays_a_call(path):
    graph, _ = state_graph((assign, path, 1))
    graph.output(None)
    code = graph.python_code("self").src
    assert "_self = self._self" in code and f"assign(_self, {path!r}, 1)" in code


def test_a_root_that_is_used_otherwise_is_still_read():
    graph, root = state_graph((assign, "calls", 1))
    graph.output(root)
    code = graph.python_code("self").src
    assert "_self = self._self" in code and "self.calls = 1" in code
    graph, root = state_graph()
    graph.call_function(assign, (root, "calls", [root]))
    graph.output(None)
    code = graph.python_code("self").src
    assert "_self = self._self" in code and "self.calls = [_self];  _self = None" in code


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.nn.Module()
        self.part.calls = 0
        self.calls = torch.zeros(())
        self.register_buffer("total", torch.zeros(()))
        self.old = 1

    def forward(self, x):
        self.calls = self.calls + x.sum()
        self.total = self.total + 1
        self.part.calls += 1
        if hasattr(self, "old"):
            del self.old
        return x * self.part.calls


@pytest.mark.parametrize("live", [False, True])
def test_captured_state_goes_where_it_belongs(live):
    original, twin = Counting(), Counting()
    x = torch.ones(2)
    captured = clew.trace(original.forward if live else original, (x,))
    assert "self.part.calls = " in captured.code and "_self" not in captured.code
    for holder in (captured(x), twin(x)):
        assert torch.equal(holder, x)
    changed = original if live else captured
    assert torch.equal(changed.calls, twin.calls) and changed.part.calls == 1 and not hasattr(changed, "old")
    assert torch.equal(changed._buffers["total"], twin._buffers["total"])
    assert original.part.calls == int(live)


def test_a_device_is_made_once():
    def program(x, cpu):
        return x + len({x.device}) + len({cpu.device})

    captured = clew.trace(program, (torch.ones(2), torch.ones(2)))
    head, _, body = captured.recompile().src.partition("def forward")
    assert head.count("cpu_1 = torch.device('cpu')") == 1 and "torch.device(" not in body
    assert "if x.device != cpu_1:" in body and "if cpu.device != cpu_1:" in body
    assert torch.equal(captured(torch.zeros(3), torch.zeros(1)), torch.full((3,), 2.0))
    with pytest.raises(clew.GuardError, match=r"x\.device == cpu"):
        captured(torch.ones(2, device="meta"), torch.ones(2))


def test_a_folder_makes_its_constants(tmp_path, monkeypatch):
    class Moving(torch.nn.Module):
        def forward(self, x):
            return x.to(x.device) + len({x.device})

    clew.trace(Moving(), (torch.ones(2),)).to_folder(tmp_path / "moved_package", "Moved")
    assert "\ncpu = torch.device('cpu')\n" in (tmp_path / "moved_package" / "module.py").read_text()
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__("moved_package").Moved()
    assert torch.equal(module(torch.zeros(2)), torch.ones(2))
