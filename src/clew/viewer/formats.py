"""Graphs in the formats of other viewers: Graphviz's DOT, Mermaid, Model Explorer's JSON, and Netron's.

A captured program or a graph comes in; text comes out, and is written to a file if a path is given. Always holds:
names of a graph are quoted as each format wants it, so that no name can break out of its place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.ir.arguments import references
from clew.ir.format import format_argument, format_target
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.ir.types import ArrayType
from clew.viewer.document import class_of, label_of
from clew.viewer.families import family_of
from clew.viewer.picture import Box, Picture, Step, picture_of
from clew.viewer.visible import Visible, visible


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def lines_of(picture: Picture, part: Step | Box) -> tuple[str, str]:
    """The two lines that are written on a part."""
    if isinstance(part, Step):
        kind = class_of(part.node, getattr(picture.program, "root", picture.program))
        return label_of(part.node, kind), "" if part.node.value_type is None else str(part.node.value_type)
    count = sum(1 for _ in part.steps())
    copies = f" ×{part.copies}" if part.copies > 1 else ""
    kind = "" if part.kind in ("section", part.label) or part.role != "module" else f"{part.kind} · "
    return f"{part.label}{copies}", f"{kind}{count} step{'s' * (count != 1)}"


# ---- Graphviz --------------------------------------------------------------------------------------------------------


def to_dot(captured: Any, path: str | Path | None = None, *, depth: int | None = None, details: bool = False) -> str:
    """The graph in Graphviz's language, with modules as clusters; ``depth`` says how many levels of them are opened,
    and ``details`` adds sizes, dtypes and inputs that nobody uses."""
    picture = picture_of(captured)
    shown = visible(picture, depth, details)
    lines = [
        f"digraph {_quoted(picture.name)} {{",
        '  graph [fontname="Helvetica", compound=true, ranksep=0.4];',
        '  node [shape=box, style="rounded,filled", fillcolor="white", color="#9aa5b6"];',
        '  node [fontname="Helvetica", fontsize=11];',
        '  edge [color="#7a8699", arrowsize=0.6];',
        *_dot_items(shown, picture.root, "  "),
    ]
    for (begin, end), count in shown.edges().items():
        lines.append(f"  {_dot_edge(shown, begin, end)}{f' [penwidth={min(1 + count / 2, 4)}]' if count > 1 else ''};")
    return _written("\n".join([*lines, "}"]) + "\n", path)


def _dot_items(shown: Visible, box: Box, indent: str) -> Iterator[str]:
    for item in shown.items(box):
        first, second = lines_of(shown.picture, item)
        label = _quoted("\n".join(filter(None, (first, second))))
        if isinstance(item, Box) and shown.is_open(item):
            yield f"{indent}subgraph cluster_{item.number} {{"
            yield f'{indent}  label={label}; style="rounded"; color="#9aa5b6"; fontname="Helvetica"; fontsize=11;'
            yield from _dot_items(shown, item, indent + "  ")
            yield f"{indent}}}"
        else:
            shape = ", shape=box3d" if isinstance(item, Box) and item.copies > 1 else ""
            if isinstance(item, Step) and item.node.op in ("placeholder", "output"):
                shape = ", shape=oval"
            yield f"{indent}n{item.number} [label={label}{shape}];"


def _dot_edge(shown: Visible, begin: int, end: int) -> str:
    """An edge; one from or to an open box goes to a part of it, and is cut at its border."""
    ends = []
    for number, side in ((begin, "ltail"), (end, "lhead")):
        part = shown.picture.parts[number]
        inner = _a_part(shown, part)
        ends.append((f"n{inner.number}", "" if inner is part else f"{side}=cluster_{number}"))
    options = ", ".join(filter(None, (ends[0][1], ends[1][1])))
    return f"{ends[0][0]} -> {ends[1][0]}" + (f" [{options}]" if options else "")


def _a_part(shown: Visible, part: Step | Box) -> Step | Box:
    while isinstance(part, Box) and shown.is_open(part) and shown.items(part):
        part = shown.items(part)[-1]
    return part


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{"".join(character for character in escaped if character.isprintable())}"'


# ---- Mermaid ---------------------------------------------------------------------------------------------------------


def to_mermaid(
    captured: Any, path: str | Path | None = None, *, depth: int | None = None, details: bool = False
) -> str:
    """The graph as a Mermaid flowchart, for pages in Markdown; ``depth`` and ``details`` as for ``to_dot``."""
    picture = picture_of(captured)
    shown = visible(picture, depth, details)
    lines = ["flowchart TD", *_mermaid_items(shown, picture.root, "  ")]
    for (begin, end), count in shown.edges().items():
        lines.append(f"  {_mermaid_name(shown, begin)} {'==>' if count > 1 else '-->'} {_mermaid_name(shown, end)}")
    return _written("\n".join(lines) + "\n", path)


def _mermaid_items(shown: Visible, box: Box, indent: str) -> Iterator[str]:
    for item in shown.items(box):
        first, second = lines_of(shown.picture, item)
        label = _mermaid_text(first) + (f"<br/>{_mermaid_text(second)}" if second else "")
        if isinstance(item, Box) and shown.is_open(item) and shown.items(item):
            yield f'{indent}subgraph b{item.number}["{label}"]'
            yield from _mermaid_items(shown, item, indent + "  ")
            yield f"{indent}end"
        elif isinstance(item, Step) and item.node.op in ("placeholder", "output"):
            yield f'{indent}n{item.number}(["{label}"])'
        elif isinstance(item, Box):
            yield f'{indent}n{item.number}[["{label}"]]'
        else:
            yield f'{indent}n{item.number}["{label}"]'


def _mermaid_name(shown: Visible, number: int) -> str:
    part = shown.picture.parts[number]
    is_group = isinstance(part, Box) and shown.is_open(part) and bool(shown.items(part))
    return f"{'b' if is_group else 'n'}{number}"


def _mermaid_text(text: str) -> str:
    """Text for a label: all but letters, digits and a few signs by their numbers."""
    plain = " _.,=-×·–"
    return "".join(one if one.isalnum() or one in plain else f"#{ord(one)};" for one in text if one.isprintable())


# ---- Model Explorer --------------------------------------------------------------------------------------------------


def to_model_explorer(captured: Any, path: str | Path | None = None) -> str:
    """The graph as JSON that Model Explorer opens: all steps, in namespaces for modules and bodies of control flow."""
    picture = picture_of(captured)
    incoming: dict[int, list[int]] = {}
    for begin, end in picture.edges:
        incoming.setdefault(end, []).append(begin)
    nodes = []
    for part in picture.parts:
        if isinstance(part, Step) or part.node is not None:
            nodes.append(_explorer_node(picture, part, incoming.get(part.number, [])))
    found = {"label": picture.name, "graphs": [{"id": picture.name, "nodes": nodes}]}
    return _written(json.dumps(found, indent=1, ensure_ascii=True), path)


def _explorer_node(picture: Picture, part: Step | Box, incoming: list[int]) -> dict[str, Any]:
    node = part.node
    assert node is not None
    attributes = {
        "name": node.name,
        "target": format_target(node.target),
        "arguments": format_argument(node.args).replace("%", ""),
        "source": "" if node.source is None else f"{os.path.basename(node.source.filename)}:{node.source.lineno}",
    }
    label = lines_of(picture, part)[0] if isinstance(part, Step) else part.label
    shape = "" if node.value_type is None else str(node.value_type)
    outputs = [{"key": "tensor_shape", "value": shape}] if shape else []
    return {
        "id": str(part.number),
        "label": label,
        "namespace": "/".join(_names_around(picture, part)),
        "attrs": [{"key": key, "value": value} for key, value in attributes.items() if value],
        "incomingEdges": [
            {"sourceNodeId": str(begin), "sourceNodeOutputId": "0", "targetNodeInputId": str(place)}
            for place, begin in enumerate(incoming)
        ],
        "outputsMetadata": [{"id": "0", "attrs": outputs}],
    }


def _names_around(picture: Picture, part: Step | Box) -> list[str]:
    """The labels of the boxes around a part, outermost first, without the program itself; a box is inside of itself."""
    found: list[str] = []
    number = part.number if isinstance(part, Box) else picture.parents[part.number]
    while picture.parents[number] >= 0:
        box = picture.parts[number]
        assert isinstance(box, Box)
        found.insert(0, box.label.replace("/", "_"))
        number = picture.parents[number]
    return found


# ---- Netron ----------------------------------------------------------------------------------------------------------

_CATEGORIES = {
    "matrix": "Layer", "attention": "Attention", "normalization": "Normalization", "activation": "Activation",
    "pool": "Pool", "shape": "Shape", "embedding": "Transform",
}  # fmt: skip


def to_netron(captured: Any, path: str | Path | None = None, *, details: bool = False) -> str:
    """The graph as JSON that Netron opens; give the file the ending ``.netron``. Modules are flat there; bodies of
    control flow are graphs of their own. ``details`` as for ``to_dot``."""
    picture = picture_of(captured)
    graphs = [(picture.name, picture.graph)]
    modules = []
    for name, graph in graphs:
        modules.append(_netron_module(picture, name, [*_shown_nodes(picture, graph, details)]))
        for node in graph.nodes:
            part = picture.parts[picture.numbers[node]]
            for body in part.items if isinstance(part, Box) and part.role == "control" else ():
                inside = next(iter(body.steps()), None) if isinstance(body, Box) else None
                if inside is not None and isinstance(body, Box):
                    graphs.append((f"{name}/{node.name}/{body.label}", inside.node.graph))
    found = {"signature": "netron:clew", "format": "Clew", "modules": modules}
    return _written(json.dumps(found, indent=1, ensure_ascii=True), path)


def _shown_nodes(picture: Picture, graph: Graph, details: bool) -> Iterator[Node]:
    for node in graph.nodes:
        part = picture.parts[picture.numbers[node]]
        if details or not part.is_minor:
            yield node


def _netron_module(picture: Picture, name: str, nodes: list[Node]) -> dict[str, Any]:
    known = set(nodes)
    arguments = [{"name": node.name, **_netron_type(node)} for node in nodes]
    return {
        "name": name,
        "arguments": arguments,
        "inputs": [{"name": node.name, "value": [node.name]} for node in nodes if node.op == "placeholder"],
        "outputs": [
            {"name": used.name, "value": [used.name]}
            for node in nodes
            if node.op == "output"
            for used in references(node.args)
            if used in known
        ],
        "nodes": [_netron_node(picture, node, known) for node in nodes if node.op not in ("placeholder", "output")],
    }


def _netron_type(node: Node) -> dict[str, Any]:
    known = node.value_type
    if not isinstance(known, ArrayType):
        return {}
    return {"type": {"dataType": known.dtype, "shape": {"dimensions": [*map(_dimension, known.shape)]}}}


def _dimension(size: Any) -> Any:
    return size if isinstance(size, int) else str(size)


def _netron_node(picture: Picture, node: Node, known: set[Node]) -> dict[str, Any]:
    kind = class_of(node, getattr(picture.program, "root", picture.program))
    type_found = {"name": kind or format_target(node.target).rpartition(".")[2]}
    category = _CATEGORIES.get(family_of(node, kind))
    plain = [value for value in (*node.args, *node.kwargs.items()) if not references(value)]
    attributes = [{"name": "target", "value": format_target(node.target), "type": "string"}]
    if plain:
        attributes.append({"name": "arguments", "value": format_argument(tuple(plain))[:400], "type": "string"})
    return {
        "name": node.name,
        "type": {**type_found, **({"category": category} if category else {})},
        "inputs": [{"name": used.name, "value": [used.name]} for used in node._inputs if used in known],
        "outputs": [{"name": "output", "value": [node.name]}],
        "attributes": attributes,
    }
