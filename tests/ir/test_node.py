"""Nodes: fields, accounts of users, and the announcing of changes."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import pytest
import torch

from clew.errors import BadArgument
from clew.ir.arguments import immutable_dict, immutable_list
from clew.ir.graph import Graph
from clew.ir.node import OPCODES, Node, Opcode
from clew.ir.source import SourceLine
from clew.ir.verify import verify


@pytest.fixture
def graph() -> Graph:
    made = Graph()
    x, y = made.placeholder("x"), made.placeholder("y")
    made.output(made.call_function(operator.add, (x, [y, {"k": x}]), {"z": (y,)}))
    return made


def nodes_of(graph: Graph) -> dict[str, Node]:
    return {node.name: node for node in graph.nodes}


def test_six_opcodes() -> None:
    assert {str(opcode.value) for opcode in Opcode} == OPCODES
    assert len(OPCODES) == 6


def test_arguments_become_immutable_and_users_are_known(graph: Graph) -> None:
    nodes = nodes_of(graph)
    add = nodes["add"]
    assert type(add.args[1]) is immutable_list
    assert type(add.args[1][1]) is immutable_dict
    assert type(add.kwargs) is immutable_dict
    assert add.all_input_nodes == [nodes["x"], nodes["y"]]
    assert list(nodes["x"].users) == list(nodes["y"].users) == [add]


def test_assigning_arguments_keeps_the_accounts(graph: Graph) -> None:
    nodes = nodes_of(graph)
    nodes["add"].args = (nodes["y"], 1)
    assert not nodes["x"].users
    nodes["add"].kwargs = {}
    nodes["add"].args = ([nodes["x"]],)
    assert not nodes["y"].users
    assert list(nodes["x"].users) == [nodes["add"]]
    verify(graph)


def test_single_arguments(graph: Graph) -> None:
    nodes = nodes_of(graph)
    add = nodes["add"]
    add.update_arg(0, 5)
    add.update_kwarg("z", 6)
    add.insert_arg(1, nodes["y"])
    assert add.args[:2] == (5, nodes["y"])
    assert add.kwargs == {"z": 6}
    verify(graph)
    for place in (-1, 4):
        with pytest.raises(BadArgument, match="add has 3 positional arguments"):
            add.insert_arg(place, 0)


def test_args_must_be_a_tuple(graph: Graph) -> None:
    add = nodes_of(graph)["add"]
    before = add.args
    with pytest.raises(BadArgument, match="args of node add must be a tuple, not int"):
        add.args = 3  # type: ignore[assignment]
    assert add.args is before


def test_replacing_inputs_and_uses(graph: Graph) -> None:
    nodes = nodes_of(graph)
    x, y, add = nodes["x"], nodes["y"], nodes["add"]
    add.replace_input_with(x, y)
    assert add.args == (y, [y, {"k": y}])
    assert not x.users
    y.meta["note"] = 1
    assert y.replace_all_uses_with(x, propagate_meta=True) == [add]
    assert x.meta == {"note": 1}
    assert add.args == (x, [x, {"k": x}])
    assert x.replace_all_uses_with(y, delete_user_cb=lambda user: False) == []
    with pytest.raises(BadArgument, match="meta of its own"):
        y.replace_all_uses_with(x, propagate_meta=True)
    verify(graph)


def test_order(graph: Graph) -> None:
    nodes = nodes_of(graph)
    x, y, add = nodes["x"], nodes["y"], nodes["add"]
    assert x < y < add
    assert x.next is y and y.prev is x
    x.prepend(y)
    assert y < x and y <= x and x > y and x >= y
    y.append(y)
    x.append(y)
    assert [node.name for node in graph.nodes] == ["x", "y", "add", "output"]


def test_renaming_gives_a_unique_name(graph: Graph) -> None:
    nodes = nodes_of(graph)
    nodes["x"].name = "y"
    assert nodes["x"].name == "y_1"
    nodes["x"].name = "a b"
    assert repr(nodes["x"]) == "a_b"


@pytest.mark.parametrize(
    ("field", "value"),
    [("args", ()), ("kwargs", {}), ("target", operator.sub), ("type", int), ("name", "plus"), ("op", "call_method")],
)
def test_changes_are_announced_once(graph: Graph, field: str, value: Any) -> None:
    heard: list[str] = []
    graph.on_change(lambda: heard.append(field))
    setattr(nodes_of(graph)["add"], field, value)
    setattr(nodes_of(graph)["output"], "type", int)
    assert heard == [field]


def test_stack_trace_is_the_source_by_default(graph: Graph) -> None:
    add = nodes_of(graph)["add"]
    assert add.stack_trace is None
    add.source = SourceLine("model.py", 3, "forward")
    assert add.stack_trace == 'File "model.py", line 3, in forward'
    add.stack_trace = "mine"
    assert add.stack_trace == "mine"


def test_effects() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    assert x.is_impure()
    assert not graph.call_function(operator.add, (x, 1)).is_impure()
    assert graph.call_function(operator.setitem, (x, 0, 1)).is_impure()
    assert graph.call_method("add_", (x, 1)).is_impure()
    assert graph.call_function(nodes_of, (x,)).is_impure()
    draw = graph.call_function(torch.rand, (2,))
    assert draw.is_impure() and not draw.is_impure(impure_random=False)


def test_format_node(graph: Graph) -> None:
    nodes = nodes_of(graph)
    assert nodes["x"].format_node() == "%x : [num_users=1] = placeholder[target=x]"
    line = str(nodes["add"].format_node())
    assert line.startswith("%add : [num_users=1] = call_function[target=operator.add](args = (")


def test_a_copied_or_pickled_node_belongs_to_a_copied_graph(graph: Graph) -> None:
    add = nodes_of(graph)["add"]
    for twin in (copy.deepcopy(add), pickle.loads(pickle.dumps(add))):
        assert twin.name == "add"
        assert twin.graph is not graph
        assert [node.name for node in twin.graph.nodes] == ["x", "y", "add", "output"]
        verify(twin.graph)
