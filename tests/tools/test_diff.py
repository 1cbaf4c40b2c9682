"""diff: every kind of change is told, of the node that changed, and of no other."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import clew
from clew.tools.diff import _longest_rising


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = x * 2
        shifted = x + 1
        hidden = torch.relu(self.layer(scaled))
        if hidden.sum() > 1:
            hidden = hidden / 2
        return self.drop(hidden) - shifted


def captured() -> clew.GraphModule:
    return clew.trace(Net(), args=(torch.ones(2, 4),))


def kinds(found: clew.Diff) -> list[tuple[str, str]]:
    return [(change.kind, change.name) for change in found.changes]


def test_nothing_has_changed() -> None:
    one = captured()
    found = clew.diff(one, copy.deepcopy(one), weights=True)
    assert not found and str(found) == "no difference" and found.unified() == ""


def test_a_node_that_calls_something_else() -> None:
    one = captured()
    other = copy.deepcopy(one)
    (node,) = other.graph.find(op=torch.relu)
    node.target = torch.tanh
    found = clew.diff(one, other)
    assert kinds(found) == [("target", node.name)]
    (change,) = found.changes
    assert (change.before, change.after) == ("torch.relu", "torch.tanh") and change.line.startswith("test_diff.py:")
    lines = found.unified().splitlines()
    assert sum(line.startswith("-") for line in lines) == sum(line.startswith("+") for line in lines) == 2
    assert "torch.tanh" in found.table() and found.to_dict()["changes"][0]["kind"] == "target"


def test_nodes_added_and_removed_and_their_users() -> None:
    one = captured()
    other = copy.deepcopy(one)
    (layer,) = other.graph.find_nodes(op="call_module", target="layer")
    with other.graph.inserting_before(layer):
        added = other.graph.call_function(torch.exp, (layer.args[0],))
    layer.update_arg(0, added)
    found = clew.diff(one, other)
    assert kinds(found) == [("added", added.name), ("arguments", "layer")]
    assert found.of("added")[0].after == "torch.exp(scaled)" and found.of("arguments")[0].before == "(scaled,)"
    back = clew.diff(other, one)
    assert ("removed", added.name) in kinds(back) and len(back.changes) == 2


def test_inside_of_branches() -> None:
    one = captured()
    other = copy.deepcopy(one)
    (node,) = other.graph.find(op=torch.div)
    node.update_arg(1, 4)
    found = clew.diff(one, other)
    assert [(change.kind, change.after) for change in found.changes] == [("arguments", f"({node.args[0].name}, 4)")]


def test_the_order() -> None:
    one = captured()
    other = copy.deepcopy(one)
    (shifted,) = other.graph.find(name="shifted")
    other.graph.output_node().args[0].prepend(shifted)
    other.graph.lint()
    found = clew.diff(one, other)
    assert kinds(found) == [("moved", "shifted")] and found.changes[0].before == "behind scaled"


def test_names_do_not_matter() -> None:
    one = captured()
    other = copy.deepcopy(one)
    for node in other.graph.nodes:
        if node.op == "call_function":
            node.name = f"renamed_{node.name}"
    assert not clew.diff(one, other)


def test_settings_sizes_guards_and_weights() -> None:
    one = captured()
    other = copy.deepcopy(one)
    other.drop.p = 0.5
    with torch.no_grad():
        other.layer.bias += 1
    (change,) = clew.diff(one, other).changes
    assert change.kind == "settings" and "p=0.1" in change.before and "p=0.5" in change.after
    found = clew.diff(one, other, weights=True)
    assert [(row.name, row.after) for row in found.of("weight")] == [("layer.bias", "differs by at most 1")]
    wide = clew.trace(Net(), args=(torch.ones(3, 4),))
    sizes = clew.diff(one, wide)
    assert {row.kind for row in sizes.changes} == {"type"} and sizes.of("type")[0].before == "f32[2, 4]"
    loose = copy.deepcopy(one)
    loose.graph.guards = ()
    told = clew.diff(one, loose)
    assert bool(told) == bool(len(one.graph.guards)) and all(row.kind == "guard removed" for row in told.changes)


def test_guards() -> None:
    def program(x: torch.Tensor, flag: bool) -> torch.Tensor:
        return x.exp() if isinstance(flag, bool) else x

    one = clew.trace(program, args=(torch.ones(2), True))
    loose = copy.deepcopy(one)
    loose.graph.guards = ()
    assert [row.kind for row in clew.diff(loose, one).changes] == ["guard added"] * len(set(map(str, one.graph.guards)))
    assert len(one.graph.guards) > 0


@pytest.mark.parametrize(
    ("numbers", "longest"), [([], 0), ([1, 2, 3], 3), ([3, 1, 2], 2), ([2, 5, 1, 3, 4], 3), ([4, 3, 2, 1], 1)]
)
def test_longest_rising(numbers: list[int], longest: int) -> None:
    places = sorted(_longest_rising(numbers))
    rising = [numbers[place] for place in places]
    assert len(places) == longest and rising == sorted(rising)
