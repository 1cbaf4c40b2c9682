"""Checks of values are written as an ``if`` with a cheap test, and mean exactly what the functions mean."""

import math
import operator
import textwrap

import pytest
import torch

import clew
from clew.capture.example import guards
from clew.errors import GuardError

from .running import code_of, exact_node, module_of, new_graph, run_both


def checked(check, expected, *more):
    """A graph that checks its input and returns it."""
    graph, x = new_graph("x")
    graph.call_function(check, (x, expected, "x is right", *more))
    graph.output(x)
    return graph


def test_sizes_stand_inside_of_the_test():
    graph, x, y = new_graph("x", "y")
    for value, limit in ((x, 512), (y, 8)):
        size = graph.call_function(operator.getitem, (graph.call_function(getattr, (value, "shape")), 1))
        small = graph.call_function(operator.le, (graph.call_function(operator.add, (size, 1)), limit))
        graph.call_function(guards.require, (small, limit == 512, "small", "model.py:12"))
    rank = graph.call_function(getattr, (y, "ndim"))
    graph.call_function(guards.require, (rank, 2, "y.ndim == 2"))
    same = graph.call_function(operator.is_, (x, y))
    graph.call_function(guards.require, (same, False, "not (x is y)"))
    graph.output(y)
    expected = """
        from clew.capture.example.guards import require


        def forward(self, x, y):
            if not (x.shape[1] + 1) <= 512:
                require(False, True, 'small', 'model.py:12')
            if (y.shape[1] + 1) <= 8:
                require(True, False, 'small', 'model.py:12')
            if y.ndim != 2:
                require(y.ndim, 2, 'y.ndim == 2')
            if x is y:
                require(True, False, 'not (x is y)')
            x = None
            return y
    """
    assert code_of(graph) == textwrap.dedent(expected).lstrip("\n")
    assert run_both(graph, torch.ones(1, 2), torch.ones(1, 8)).shape == (1, 8)
    for sizes in ((512, 8), (2, 7)):
        with pytest.raises(GuardError, match="small.*the value is (True|False)"):
            module_of(graph)(torch.ones(1, sizes[0]), torch.ones(1, sizes[1]))


def test_what_is_computed_is_computed_once():
    graph, x = new_graph("x")
    graph.call_function(guards.require, (graph.call_method("item", (x,)), 2.0, "x.item() == 2.0"))
    half = graph.call_function(operator.truediv, (graph.call_method("size", (x, 0)), 2))
    graph.call_function(guards.require, (half, 0.5, "x.size(0) / 2 == 0.5"))
    graph.output(None)
    expected = """
        from clew.capture.example.guards import require


        def forward(self, x):
            if type((item := x.item())) is not float or item != 2.0:
                require(item, 2.0, 'x.item() == 2.0')
            if type((truediv := x.size(0) / 2)) is not float or truediv != 0.5:
                require(truediv, 0.5, 'x.size(0) / 2 == 0.5')
            x = None
            return None
    """
    assert code_of(graph) == textwrap.dedent(expected).lstrip("\n")
    run_both(graph, torch.tensor([2.0]))
    with pytest.raises(GuardError, match=r"the value is 3\.0"):
        module_of(graph)(torch.tensor([3.0]))


def test_values_that_others_use_keep_their_name():
    graph, x = new_graph("x")
    size = graph.call_method("size", (x, 0))
    graph.call_function(guards.require, (size, 2, "size"))
    even = graph.call_function(operator.eq, (size, 2))
    graph.call_method("add_", (x, 1))
    graph.call_function(guards.require, (even, True, "even"))
    graph.output(size)
    code = code_of(graph)
    assert "if size != 2:" in code and "eq = size == 2" in code and "if not eq:" in code
    assert run_both(graph, torch.ones(2)) == 2


ANSWERS = [True, False, 1, 0, 1.0, 0.0, -0.0, math.nan, "1", "", b"1", 1j, None, (1,), (1, 2), [1], torch.float32,
           torch.float16, torch.device("cpu"), torch.device("meta"), torch.Size([1]), int, float]  # fmt: skip
OBJECTS = [True, False, None, torch.float32, torch.float16, int, print]


@pytest.mark.parametrize("check", [guards.require, guards.require_same, guards.require_type])
def test_the_test_agrees_with_the_function(check):
    for place, expected in enumerate(OBJECTS if check is guards.require_same else ANSWERS):
        wanted = type(expected) if check is guards.require_type else expected
        module = module_of(checked(check, wanted))
        for value in ANSWERS:
            assert _passes(module, value) is _passes(check, value, wanted, ""), (place, value)


def _passes(function, *args):
    try:
        function(*args)
    except GuardError:
        return False
    return True


def test_lengths_keys_and_arrays():
    for expected in (0, 2):
        module = module_of(checked(guards.require_length, expected))
        assert [_passes(module, [0] * count) for count in range(3)] == [count == expected for count in range(3)]
    module = module_of(checked(guards.require_keys, ("a", "b")))
    assert _passes(module, {"a": 1, "b": 2}) and not _passes(module, {"b": 1, "a": 2}) and not _passes(module, {})
    module = module_of(checked(guards.require_array, torch.Tensor))
    x = torch.ones(1)
    assert _passes(module, x) and not _passes(module, torch.nn.Parameter(x)) and not _passes(module, 1)
    x.mark = 1
    assert _passes(module, x)


def test_locals_with_the_names_of_builtins():
    graph, x = new_graph("x")
    one = exact_node(graph, "call_function", "type", operator.neg, (x,))
    two = exact_node(graph, "call_function", "int", operator.neg, (one,))
    graph.call_function(guards.require, (one, -3, "one"))
    graph.call_function(guards.require_length, ([], 0, "no node"))
    graph.output((one, two))
    assert run_both(graph, 3) == (-3, 3)
    with pytest.raises(GuardError):
        module_of(graph)(4)


def test_lines_belong_to_the_check():
    graph = checked(guards.require, 3)
    code = graph.python_code("self")
    nodes = list(graph.nodes)
    assert [nodes[place].name for place in code._lineno_map.values()] == ["require", "require", "output"]


def test_a_captured_branch_reads_like_the_program():
    def program(x):
        return x * 2 if x.shape[1] <= 512 else x

    captured = clew.trace(program, (torch.ones(2, 3),))
    assert "    if not x.shape[1] <= 512:\n        require(False, True, 'x.shape[1] <= 512', " in captured.code
    with pytest.raises(GuardError, match=r"x\.shape\[1\] <= 512, but the value is False"):
        captured(torch.ones(2, 513))
