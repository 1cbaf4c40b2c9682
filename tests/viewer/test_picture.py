"""Boxes of graphs: modules, equal blocks, control flow, sections, and what is left out."""

from __future__ import annotations

import operator

import numpy
import torch
from torch import nn

import clew
from clew.viewer.document import document_of
from clew.viewer.picture import LONGEST, Box, Step, picture_of
from clew.viewer.visible import visible
from tests.viewer.programs import captured_deciding, captured_model, large_graph


def outline(box: Box, depth: int = 0) -> list[str]:
    lines = []
    for item in box.items:
        if isinstance(item, Step):
            lines.append("  " * depth + item.node.name + (" (minor)" if item.is_minor else ""))
        else:
            copies = {0: " (as above)", 1: ""}.get(item.copies, f" x{item.copies}")
            lines.append("  " * depth + f"[{item.label}: {item.kind}]{copies}")
            lines += outline(item, depth + 1)
    return lines


def test_modules_are_boxes_and_equal_ones_are_found():
    found = outline(picture_of(captured_model(depth=3)).root)
    assert found[:8] == [
        "x",
        "y",
        "[blocks.0: Block] x3",
        "  blocks_0_first",
        "  blocks_0_act",
        "  blocks_0_second",
        "  y_1",
        "[blocks.1: Block] (as above)",
    ]
    assert "[last: Block]" in found  # equal, but elsewhere
    assert [line for line in found if line.endswith("(minor)")] == ["getattr_1 (minor)", "x_dim0 (minor)"]


def test_blocks_with_other_settings_are_not_equal():
    captured = captured_model(depth=3)
    block = captured.graph.find_nodes(op="call_function", target=operator.add)[1]
    block.args = (block.args[0], 2)
    copies = [item.copies for item in picture_of(captured).root.items if isinstance(item, Box)]
    assert copies == [1, 1, 1, 1]


def test_what_a_pass_puts_between_nodes_of_a_module_is_inside_of_it():
    captured = captured_model(depth=2)
    graph = captured.graph
    act, out = (next(node for node in graph.nodes if node.name == name) for name in ("blocks_0_act", "output"))
    with graph.inserting_after(act):
        inside = graph.call_function(torch.neg, (act,))
    act.replace_all_uses_with(inside, lambda user: user is not inside)
    with graph.inserting_before(out):
        outside = graph.call_function(torch.neg, (out.args[0],))
    out.args = (outside,)
    picture = picture_of(captured)
    around = [picture.parts[picture.parents[picture.numbers[node]]] for node in (inside, outside)]
    assert [box.path for box in around if isinstance(box, Box)] == ["blocks.0", ""]


def test_every_node_is_one_part_and_edges_lead_from_makers_to_users():
    picture = picture_of(captured_model())
    nodes = [part.node for part in picture.parts if part.node is not None]
    assert len(nodes) == len(set(nodes)) == len(picture.graph.nodes)
    number = picture.numbers
    wanted = {(number[used], number[node]) for node in picture.graph.nodes for used in node.all_input_nodes}
    assert set(picture.edges) == wanted
    assert all(
        picture.parents[item.number] == part.number
        for part in picture.parts
        if isinstance(part, Box)
        for item in part.items
    )


def test_who_reads_after_a_write_reads_what_was_written():
    def program(x, y):
        z = x * 2
        w = z.sum()
        z.add_(y)
        z[0] = w
        return z.relu(), w

    picture = picture_of(clew.trace(program, (torch.ones(2, 3), torch.ones(2, 3))))
    told = {picture.parts[number].node.name: number for number in picture.numbers.values()}
    names = {number: name for name, number in told.items()}
    edges = {(names[one], names[other]) for one, other in picture.edges}
    assert {("z", "w"), ("z", "add_"), ("add_", "setitem"), ("setitem", "relu")} <= edges
    assert ("z", "relu") not in edges and ("add_", "relu") not in edges


def test_control_flow_is_boxes_in_boxes():
    picture = picture_of(captured_deciding())
    found = outline(picture.root)
    assert "[if y.sum() > 0: if]" in found and "  [if true: if true]" in found and "  [if false: if false]" in found
    assert "[while y_1.abs().max() > 0.1: while]" in found and "  [while: while]" in found and "  [body: body]" in found
    branch = next(part for part in picture.parts if isinstance(part, Box) and part.kind == "if")
    inputs = [step.number for step in branch.steps() if step.node.op == "placeholder"]
    makers = {begin for begin, end in picture.edges if end in inputs}
    assert {picture.parts[number].node.name for number in makers} == {"y"}


def test_a_nested_form_has_the_same_boxes():
    captured = captured_model(depth=2)
    flat, nested = (picture_of(one) for one in (captured, clew.nested(captured)))
    kinds = [
        sorted(part.kind for part in one.parts if isinstance(part, Box) and part.role == "module")
        for one in (flat, nested)
    ]
    assert kinds[0] == kinds[1]


def test_long_lists_are_cut_into_sections():
    graph = clew.Graph()
    value = graph.placeholder("x")
    for number in range(1000):
        value = graph.call_function(operator.add, (value, number))
    graph.output(value)
    picture = picture_of(graph)
    assert all(len(part.items) <= LONGEST for part in picture.parts if isinstance(part, Box))
    assert sum(isinstance(part, Step) for part in picture.parts) == 1002


def test_what_is_shown_stays_small_and_stands_for_the_rest():
    picture = picture_of(large_graph(30, 20))
    shown = visible(picture)
    parts = [part for part in picture.parts if isinstance(part, Box) and shown.is_open(part)]
    assert 20 < sum(len(shown.items(box)) for box in parts) <= 60
    assert all(shown.seen(begin) is not None for begin, _ in picture.edges)
    everything = visible(picture, depth=9)
    assert len(everything.edges()) == len(set(picture.edges))


def test_programs_without_modules_are_drawn_too():
    picture = picture_of(clew.trace(lambda x: (x**2).sum() + 1, (numpy.ones(3),)))
    assert [line for line in outline(picture.root)] == ["x", "pow_1", "sum_1", "add", "output"]


def test_the_document_tells_types_sizes_lines_code_and_parameters():
    captured = captured_model(depth=2)
    document = document_of(picture_of(captured))
    (graph,) = document["graphs"]
    by_name = {part["name"]: part for part in graph["parts"] if "name" in part}
    assert by_name["getattr_1"]["label"] == ".shape" and by_name["add"]["label"] == "+"
    step = by_name["blocks_1_first"]
    assert step["type"] == "f32[2, 16]" and step["size"] == 2 * 16 * 4 and step["parameters"] == 8 * 16 + 16
    file, line, function, text = graph["sources"][step["source"] - 1]
    assert (file, function) == ("programs.py", "forward") and "self.first(x)" in text
    assert "blocks[1]" in graph["code"].splitlines()[step["lines"][0] - 1]
    assert graph["parameters"] == sum(one.numel() for one in captured.parameters())
    assert "type(x) is Tensor" in [guard["text"] for guard in graph["guards"]]
    assert "/" not in "".join(file for file, *_ in graph["sources"])


def test_arithmetic_is_told_without_a_profile_where_types_tell_it():
    model, x = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(144, 5)), (2, 3, 8, 8)
    captured = clew.trace(lambda x: model(x).add_(1).softmax(-1), (torch.randn(x),))
    document = document_of(picture_of(captured))
    told = sum(part.get("flops") or 0 for part in document["graphs"][0]["parts"])
    assert told == clew.profile(captured, torch.randn(x)).flops and "profile" not in document
    without_sizes = clew.trace(lambda x: x * 2, (numpy.ones(3),))
    (node,) = without_sizes.graph.find_nodes(op="call_function")
    node.value_type = None
    assert all(part.get("flops") is None for part in document_of(picture_of(without_sizes))["graphs"][0]["parts"])


def test_costs_of_a_profile_are_told_by_node():
    captured = captured_model(depth=2)
    profile = clew.profile(captured, torch.randn(2, 3))
    document = document_of(picture_of(captured), profile)
    told = sum(part.get("flops") or 0 for part in document["graphs"][0]["parts"])
    assert told == profile.flops and document["profile"]["flops"] == profile.flops
