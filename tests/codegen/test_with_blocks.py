"""Entering and leaving a context manager comes out as a ``with`` block, wherever Python can write one."""

import contextlib
import operator
import textwrap

import pytest
import torch

import clew
from clew.ir.source import SourceLine

from .running import code_of, module_of, new_graph, run_both

log = []


@contextlib.contextmanager
def noted(name):
    """Notes when it is entered and left."""
    log.append(f"enter {name}")
    try:
        yield name
    finally:
        log.append(f"leave {name}")


def enter(graph, manager):
    return graph.call_method("__enter__", (manager,))


def leave(graph, manager):
    return graph.call_method("__exit__", (manager, None, None, None))


def nested_graph():
    graph, x = new_graph("x")
    outer = graph.call_function(torch.no_grad)
    enter(graph, outer)
    doubled = graph.call_function(operator.mul, (x, 2))
    inner = graph.call_function(torch.set_grad_enabled, (True,))
    enter(graph, inner)
    total = graph.call_function(operator.add, (doubled, x))
    leave(graph, inner)
    leave(graph, outer)
    graph.output(graph.call_function(operator.neg, (total,)))
    return graph


def test_blocks_in_blocks():
    expected = """
        import torch


        def forward(self, x):
            with torch.no_grad():
                mul = x * 2
                with torch.set_grad_enabled(True):
                    add = mul + x;  mul = x = None
            neg = -add;  add = None
            return neg
    """
    assert code_of(nested_graph()) == textwrap.dedent(expected).lstrip("\n")
    x = torch.ones(2, requires_grad=True)
    assert run_both(nested_graph(), x).requires_grad


def test_an_empty_block_a_value_and_a_manager_with_a_name():
    graph, x = new_graph("x")
    manager = graph.call_function(noted, ("a",))
    text = graph.call_method("upper", ("b",))
    leave(graph, (enter(graph, manager), manager)[1])
    other = graph.call_function(noted, (x,))
    entered = enter(graph, other)
    text = graph.call_function(operator.add, (text, entered))
    leave(graph, other)
    graph.output(text)
    expected = """
        from tests.codegen.test_with_blocks import noted as noted_2


        def forward(self, x):
            noted = noted_2('a')
            upper = 'b'.upper()
            with noted:
                pass
            noted = None
            with noted_2(x) as enter_1:
                x = None
                add = upper + enter_1;  upper = enter_1 = None
            return add
    """
    assert code_of(graph) == textwrap.dedent(expected).lstrip("\n")
    assert run_both(graph, "c") == "Bc"


def test_an_error_inside_leaves_the_block():
    graph, x = new_graph("x")
    manager = graph.call_function(noted, ("a",))
    enter(graph, manager)
    failing = graph.call_function(operator.truediv, (1, x))
    failing.source = SourceLine("model.py", 5, "forward")
    leave(graph, manager)
    graph.output(failing)
    log.clear()
    with pytest.raises(ZeroDivisionError) as caught:
        module_of(graph)(0)
    assert log == ["enter a", "leave a"]
    assert "model.py:5" in caught.value.__notes__[0] and "truediv = 1 / x" in caught.value.__notes__[0]


def crossing(graph, first, second):
    enter(graph, first)
    enter(graph, second)
    leave(graph, first)
    leave(graph, second)


def left_twice(graph, first, second):
    enter(graph, first)
    leave(graph, first)
    leave(graph, first)
    enter(graph, second)


def used_after(graph, first, second):
    enter(graph, first)
    graph.call_function(print, (leave(graph, first),))


def with_an_error(graph, first, second):
    enter(graph, first)
    graph.call_method("__exit__", (first, ValueError, None, None))


@pytest.mark.parametrize("edit", [crossing, left_twice, used_after, with_an_error])
def test_what_is_no_block_stays_calls(edit):
    graph, x = new_graph("x")
    edit(graph, graph.call_function(torch.no_grad), graph.call_function(torch.enable_grad))
    graph.output(x)
    before = torch.is_grad_enabled()
    try:
        assert run_both(graph, 1) == 1
    finally:
        torch.set_grad_enabled(before)
    count = len(graph.find_nodes(op="call_method"))
    code = code_of(graph)
    assert code.count("__enter__") + code.count("__exit__") + 2 * code.count("with ") == count


def test_an_edit_that_breaks_a_block_gives_code_that_runs():
    graph = nested_graph()
    module = module_of(graph)
    x = torch.ones(2, requires_grad=True)
    assert module(x).requires_grad
    for node in graph.find_nodes(op="call_method", target="__exit__"):
        graph.erase_node(node)
    before = torch.is_grad_enabled()
    try:
        assert "with " not in module.code
        assert module(x).requires_grad
    finally:
        torch.set_grad_enabled(before)


def test_one_manager_entered_again():
    graph, x = new_graph("x")
    manager = graph.call_function(torch.enable_grad)
    for _ in range(2):
        enter(graph, manager)
    y = graph.call_function(operator.mul, (x, 2))
    for _ in range(2):
        leave(graph, manager)
    graph.output(y)
    assert code_of(graph).count("with enable_grad:") == 2
    assert run_both(graph, 4) == 8


def test_blocks_deeper_than_python_allows():
    graph, x = new_graph("x")
    managers = []
    for _ in range(40):
        managers.append(graph.call_function(torch.no_grad))
        enter(graph, managers[-1])
    y = graph.call_function(operator.mul, (x, 2))
    for manager in reversed(managers):
        leave(graph, manager)
    graph.output(y)
    assert run_both(graph, torch.ones(1, requires_grad=True)).requires_grad is False
    assert torch.is_grad_enabled()


def test_comments_lines_and_bodies_inside_of_blocks():
    graph = nested_graph()
    for number, node in enumerate(graph.nodes):
        node.source = SourceLine("model.py", number, "forward")
    text = clew.GraphModule({}, graph).print_readable(print_output=False)
    assert "            # File: model.py:3 in forward, code: \n            mul = x * 2" in text
    code = graph.python_code("self")
    nodes = list(graph.nodes)
    owners = [nodes[place].target for place in code._lineno_map.values()]
    kinds = [operator.mul, "__enter__", operator.add, operator.neg, "output"]
    assert owners == ["__enter__", *kinds]
