"""Checks of values are written as an ``if`` with a cheap test, and mean exactly what the functions mean."""

import math
import operator
import textwrap

import pytest
import torch

import clew
from clew.capture.guards.notes import Variable
from clew.errors import GuardError
from clew.ir.guards import Attribute, Call, Guard, guard

from .running import code_of, exact_node, module_of, new_graph, run_both


def checked(test, expected, as_node=True):
    """A graph that checks its input, at its place or before all else, and returns it."""
    graph, x = new_graph("x")
    if as_node:
        graph.call_function(guard, (x, expected), {"test": test})
    else:
        graph.guards = [Guard(x, test, expected, "value")]
    graph.output(x)
    return graph


@pytest.mark.parametrize(
    ("test", "expected", "line"),
    [
        ("equals", torch.Tensor, "guard(x == torch.Tensor)"),
        ("is", torch.float32, "guard(x is torch.float32)"),
        ("type", torch.Size, "guard(type(x) is torch.Size)"),
    ],
)
def test_a_reader_finds_what_a_value_is_compared_with(test, expected, line):
    code = checked(test, expected).python_code("self", shown=True).src
    assert code.startswith("import torch\n") and line in code


def test_sizes_stand_inside_of_the_test():
    graph, x, y = new_graph("x", "y")
    for value, limit in ((x, 512), (y, 8)):
        size = graph.call_function(operator.getitem, (graph.call_function(getattr, (value, "shape")), 1))
        small = graph.call_function(operator.le, (graph.call_function(operator.add, (size, 1)), limit))
        graph.call_function(guard, (small, limit == 512))
    rank = graph.call_function(getattr, (y, "ndim"))
    graph.call_function(guard, (rank, 2))
    same = graph.call_function(operator.is_, (x, y))
    graph.call_function(guard, (same, False))
    graph.output(y)
    expected = """


        def forward(self, x, y):
            if not (x.shape[1] + 1) <= 512:
                _guard(False)
            if (y.shape[1] + 1) <= 8:
                _guard_1(True)
            if y.ndim != 2:
                _guard_2(y.ndim)
            if x is y:
                _guard_3(True)
            x = None
            return y
    """
    shown = """
        from clew import guard


        def forward(self, x, y):
            guard((x.shape[1] + 1) <= 512)
            guard(not ((y.shape[1] + 1) <= 8))
            guard(y.ndim == 2)
            guard(not (x is y))
            return y
    """
    assert code_of(graph).strip() == textwrap.dedent(expected).strip()
    assert graph.python_code("self", shown=True).src.strip() == textwrap.dedent(shown).strip()
    assert run_both(graph, torch.ones(1, 2), torch.ones(1, 8)).shape == (1, 8)
    for sizes in ((512, 8), (2, 7)):
        with pytest.raises(GuardError, match="shape.*the value is (True|False)"):
            module_of(graph)(torch.ones(1, sizes[0]), torch.ones(1, sizes[1]))


def test_what_is_computed_is_computed_once():
    graph, x = new_graph("x")
    graph.call_function(guard, (graph.call_method("item", (x,)), 2.0))
    half = graph.call_function(operator.truediv, (graph.call_method("size", (x, 0)), 2))
    graph.call_function(guard, (half, 0.5))
    graph.output(None)
    expected = """
        def forward(self, x):
            if type((item := x.item())) is not float or item != 2.0:
                _guard(item)
            if type((truediv := x.size(0) / 2)) is not float or truediv != 0.5:
                _guard_1(truediv)
            x = None
            return None
    """
    assert code_of(graph).strip() == textwrap.dedent(expected).strip()
    run_both(graph, torch.tensor([2.0]))
    with pytest.raises(GuardError, match=r"the value is 3\.0"):
        module_of(graph)(torch.tensor([3.0]))


def test_values_that_others_use_keep_their_name():
    graph, x = new_graph("x")
    size = graph.call_method("size", (x, 0))
    graph.call_function(guard, (size, 2))
    even = graph.call_function(operator.eq, (size, 2))
    graph.call_method("add_", (x, 1))
    graph.call_function(guard, (even,))
    graph.output(size)
    code = code_of(graph)
    assert "if size != 2:" in code and "eq = size == 2" in code and "if not eq:" in code
    assert run_both(graph, torch.ones(2)) == 2


ANSWERS = [True, False, 1, 0, 1.0, 0.0, -0.0, math.nan, "1", "", b"1", 1j, None, (1,), (1, 2), [1], torch.float32,
           torch.float16, torch.device("cpu"), torch.device("meta"), torch.Size([1]), int, float]  # fmt: skip
OBJECTS = [True, False, None, torch.float32, torch.float16, int, print]


@pytest.mark.parametrize("as_node", [True, False])
@pytest.mark.parametrize("test", ["equals", "is", "type"])
def test_the_condition_agrees_with_the_guard(test, as_node):
    for place, expected in enumerate(OBJECTS if test == "is" else ANSWERS):
        wanted = type(expected) if test == "type" else expected
        module = module_of(checked(test, wanted, as_node))
        exact = Guard("x", test, wanted, "value")
        for value in ANSWERS:
            assert _passes(module, value) is _passes(exact.require, value), (place, value)


def _passes(function, *args):
    try:
        function(*args)
    except GuardError:
        return False
    return True


def test_lengths_keys_and_arrays():
    for expected in (0, 2):
        module = module_of(checked("length", expected))
        assert [_passes(module, [0] * count) for count in range(3)] == [count == expected for count in range(3)]
    module = module_of(checked("keys", ("a", "b")))
    assert _passes(module, {"a": 1, "b": 2}) and not _passes(module, {"b": 1, "a": 2}) and not _passes(module, {})
    module = module_of(checked("array", torch.Tensor))
    x = torch.ones(1)
    assert _passes(module, x) and not _passes(module, torch.nn.Parameter(x)) and not _passes(module, 1)
    x.mark = 1
    assert _passes(module, x)


def test_locals_with_the_names_of_builtins():
    graph, x = new_graph("x")
    one = exact_node(graph, "call_function", "type", operator.neg, (x,))
    two = exact_node(graph, "call_function", "int", operator.neg, (one,))
    graph.call_function(guard, (one, -3))
    graph.call_function(guard, ([], 0), {"test": "length"})
    graph.output((one, two))
    assert run_both(graph, 3) == (-3, 3)
    with pytest.raises(GuardError):
        module_of(graph)(4)


def test_lines_belong_to_the_check():
    graph = checked("equals", 3)
    code = graph.python_code("self")
    nodes = list(graph.nodes)
    assert [nodes[place].name for place in code._lineno_map.values()] == ["guard", "guard", "output"]
    entered = checked("equals", 3, as_node=False)
    lines = entered.python_code("self")._lineno_map
    assert [place and list(entered.nodes)[place].name for place in lines.values()] == [None, None, "output"]


def test_guards_stand_before_the_program_that_runs_and_not_in_what_is_shown():
    def program(x):
        return x * 2 if x.shape[1] <= 512 else x

    captured = clew.trace(program, (torch.ones(2, 3),), control_flow="guard")
    assert "    if not x.shape[1] <= 512:\n        _guard_3(False)\n" in captured.recompile().src
    assert captured.code.strip() == "def forward(self, x):\n    return x * 2"
    with pytest.raises(GuardError, match=r"x\.shape\[1\] <= 512, which does not hold"):
        captured(torch.ones(2, 513))


def test_subjects_are_attributes_variables_and_calls_of_methods():
    graph, x = new_graph("x")
    around = {"SCALE": 2.0}
    graph.guards = [
        Guard(Call("size", (x, 0)), "equals", 2, "size"),
        Guard(Attribute("inner.flag"), "equals", True, "mode"),
        Guard(Variable(around, "SCALE", 2.0), "variable", None, "variable", label="SCALE is unchanged"),
    ]
    graph.output(x)
    root = torch.nn.Module()
    root.inner = torch.nn.Module()
    root.inner.flag = True
    module = clew.GraphModule(root, graph)
    assert [str(one) for one in module.guards] == ["x.size(0) == 2", "self.inner.flag", "SCALE is unchanged"]
    assert module(torch.ones(2)).shape == (2,) and module.check(torch.ones(2)) is None
    assert str(module.check(torch.ones(3))) == "x.size(0) == 2"
    module.inner.flag = False
    assert str(module.check(torch.ones(2))) == "self.inner.flag"
    module.inner.flag = True
    around["SCALE"] = 3.0
    with pytest.raises(GuardError, match="SCALE is unchanged, but the variable has changed"):
        module(torch.ones(2))
