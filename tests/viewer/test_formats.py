"""DOT, Mermaid, Model Explorer's JSON, Netron's, and SVG: whole, and safe with any name."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as xml

import pytest

import clew
from tests.viewer.programs import captured_deciding, captured_model, hostile_graph, large_graph

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"];x [label="',
    "]]>&amp;<b>",
    "a\nb\\",
    "ü\u2028漢\U0001f600",
    "--> n1\nend",
]

LABEL = r'"[^"<>]*(<br/>[^"<>]*)?"'
MERMAID = re.compile(
    rf"\s*(flowchart TD|end|subgraph b\d+\[{LABEL}\]|[nb]\d+ [-=]+> [nb]\d+|n\d+\W{{1,2}}{LABEL}\W{{1,2}})"
)


def test_dot_has_clusters_and_all_edges():
    text = clew.to_dot(captured_model(depth=3), depth=9)
    assert text.startswith('digraph "Model" {') and text.count("subgraph cluster_") == 2
    assert "blocks.0 ×3\\nBlock · 4 steps" in text
    names = set(re.findall(r"^\s*(n\d+) \[", text, re.M))
    edges = re.findall(r"^\s*(n\d+) -> (n\d+)", text, re.M)
    assert edges and {end for edge in edges for end in edge} <= names


def test_mermaid_has_subgraphs_and_all_edges():
    text = clew.to_mermaid(captured_model(depth=3), depth=9)
    assert text.startswith("flowchart TD\n") and text.count("subgraph") == text.count("  end\n") == 2
    names = set(re.findall(r"^\s*(?:subgraph )?([nb]\d+)[\[(]", text, re.M))
    edges = re.findall(r"^\s*([nb]\d+) [-=]+> ([nb]\d+)$", text, re.M)
    assert edges and {end for edge in edges for end in edge} <= names


def test_model_explorer_has_namespaces_and_edges():
    captured = captured_deciding()
    found = json.loads(clew.to_model_explorer(captured))
    assert found["label"] == "Deciding"  # without a label the explorer refuses the file
    (graph,) = found["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    spaces = {node["namespace"] for node in nodes.values()}
    assert "if y.sum() > 0/if true" in spaces and "" in spaces
    for node in nodes.values():
        assert all(edge["sourceNodeId"] in nodes for edge in node["incomingEdges"])
    assert all(isinstance(one["value"], str) for node in nodes.values() for one in node["attrs"])


def test_netron_has_all_nodes_and_bodies_as_graphs():
    captured = captured_deciding()
    found = json.loads(clew.to_netron(captured))
    assert found["signature"].startswith("netron:") and next(iter(found)) == "signature"
    assert [module["name"] for module in found["modules"]][:3] == [
        "Deciding",
        "Deciding/cond/if true",
        "Deciding/cond/if false",
    ]
    first = found["modules"][0]
    values = {argument["name"] for argument in first["arguments"]}
    assert {name for node in first["nodes"] for one in node["inputs"] for name in one["value"]} <= values
    small, whole = (json.loads(clew.to_netron(captured_model(), details=details)) for details in (False, True))
    assert len(whole["modules"][0]["nodes"]) == len(small["modules"][0]["nodes"]) + 2  # x.shape, x.shape[0]


@pytest.mark.parametrize("depth", [None, 0, 1, 9])
def test_svg_is_well_formed_and_nothing_overlaps(depth):
    tree = xml.fromstring(clew.to_svg(captured_model(depth=3), depth=depth))
    width, height = float(tree.get("width")), float(tree.get("height"))
    cards = [rect for rect in tree.iter() if rect.tag.endswith("rect") and rect.get("class") in ("card", "end")]
    boxes = [tuple(float(one.get(key)) for key in ("x", "y", "width", "height")) for one in cards]
    assert all(0 <= x and x + w <= width and 0 <= y and y + h <= height for x, y, w, h in boxes)
    apart = [
        a[0] + a[2] <= b[0] or b[0] + b[2] <= a[0] or a[1] + a[3] <= b[1] or b[1] + b[3] <= a[1]
        for place, a in enumerate(boxes)
        for b in boxes[place + 1 :]
        if abs(a[0] - b[0]) > 10 or abs(a[1] - b[1]) > 10  # cards of a stack lie on each other
    ]
    assert all(apart)


def test_svg_shows_control_flow_and_is_the_same_each_time():
    captured = captured_deciding()
    text = clew.to_svg(captured, depth=9)
    assert text == clew.to_svg(captured, depth=9)
    assert "if true" in text and "if false" in text and 'class="group control"' in text


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_out_of_any_format(name):
    graph = hostile_graph(name)
    tree = xml.fromstring(clew.to_svg(graph, depth=9))
    assert not [
        one
        for one in tree.iter()
        if one.tag.rpartition("}")[2] not in "svg title style defs marker path rect text tspan".split()
    ]
    json.loads(clew.to_model_explorer(graph)), json.loads(clew.to_netron(graph))
    dot = clew.to_dot(graph, depth=9)
    assert '"' not in re.sub(r'"(?:[^"\\]|\\.)*"', "", dot)
    assert all(MERMAID.fullmatch(line) for line in clew.to_mermaid(graph, depth=9).splitlines())


def test_files_are_written(tmp_path):
    captured = captured_model(depth=2)
    for make in (clew.to_dot, clew.to_mermaid, clew.to_model_explorer, clew.to_netron, clew.to_svg):
        path = tmp_path / make.__name__
        make(captured, path)
        assert path.read_text(encoding="utf-8") == make(captured)


def test_a_large_graph_is_drawn_in_little_time():
    text = clew.to_svg(large_graph(60, 40))
    assert text.count("<rect") < 200
