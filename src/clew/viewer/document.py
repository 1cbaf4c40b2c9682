"""What the page shows, as plain data: steps, boxes, edges, sources, code, guards, costs and changes.

Pictures come in, and with them perhaps a profile or what has changed between two of them; a dict for ``json`` comes
out. Always holds: nothing of it is code or markup, and no path of the machine is in it, only names of files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from clew.ir.effects import resolve
from clew.ir.format import format_argument, format_target
from clew.ir.module_calls import stack_of
from clew.ir.node import Node
from clew.ir.source import SourceLine
from clew.tools.costs import cost_by_types
from clew.tools.diff import Diff
from clew.tools.profile import Profile
from clew.viewer.families import bytes_of, family_of
from clew.viewer.picture import Box, Picture, Step

_LONGEST_TEXT = 600
"""How many characters of an argument are shown."""
_SYMBOLS = {
    "add": "+", "iadd": "+=", "sub": "−", "isub": "−=", "mul": "×", "imul": "×=", "truediv": "÷", "floordiv": "//",
    "matmul": "@", "pow": "**", "mod": "%", "neg": "−x", "gt": ">", "lt": "<", "ge": "≥", "le": "≤", "eq": "==",
    "ne": "≠", "and_": "&", "or_": "|", "invert": "~", "getitem": "[ ]", "setitem": "[ ] =",
}  # fmt: skip
"""Operators as Python writes them."""


def document_of(
    picture: Picture, profile: Profile | None = None, before: Picture | None = None, difference: Diff | None = None
) -> dict[str, Any]:
    """The data of a page: one graph, or two with what has changed between them."""
    graphs = [_graph(picture, profile, difference)]
    found: dict[str, Any] = {"version": 1, "title": picture.name, "graphs": graphs}
    if before is not None and difference is not None:
        graphs.insert(0, _graph(before, None, difference))
        pairs = [(before.numbers[one], picture.numbers[other]) for one, other in difference.pairs]
        found["pairs"] = [[one, other] for one, other in pairs]
        found["changes"] = difference.to_dict()["changes"]
    if profile is not None:
        found["profile"] = _totals(profile)
    return found


def _totals(profile: Profile) -> dict[str, Any]:
    named = "seconds flops bytes peak_bytes peak_node parameters weight_bytes unknown".split()
    return {name: getattr(profile, name) for name in named}


def _graph(picture: Picture, profile: Profile | None, difference: Diff | None) -> dict[str, Any]:
    described = _Described(picture, profile, difference)
    return {
        "name": picture.name,
        "root": picture.root.number,
        "parts": [described.part(part) for part in picture.parts],
        "parents": picture.parents,
        "edges": [number for edge in picture.edges for number in edge],
        "sources": described.sources,
        "code": picture.code[0],
        "guards": [*described.guards()],
        "parameters": described.parameters.get("", 0),
    }


class _Described:
    """Describes the parts of one picture."""

    def __init__(self, picture: Picture, profile: Profile | None, difference: Diff | None) -> None:
        self.picture = picture
        self.holder = getattr(picture.program, "root", picture.program)
        self.marks = {} if difference is None else difference.marks
        self.costs = _costs(picture, profile) if profile is not None else _costs_by_types(picture, self.holder)
        self.sources: list[list[Any]] = []
        self._places: dict[SourceLine, int] = {}
        self.parameters = _parameters(self.holder)

    def part(self, part: Step | Box) -> dict[str, Any]:
        """A step or a box; what is empty is left out."""
        found = self.step(part) if isinstance(part, Step) else self.box(part)
        return {key: value for key, value in found.items() if value not in (None, "", False, [], {})}

    def box(self, box: Box) -> dict[str, Any]:
        node = box.node
        return {
            "box": box.role,
            "label": box.label,
            "path": box.path,
            "kind": box.kind,
            "items": [item.number for item in box.items],
            "copies": box.copies if box.copies > 1 else None,
            "follows": box.copies == 0,
            "minor": box.is_minor,
            "parameters": self.parameters.get(box.path) if box.role == "module" else None,
            **({} if node is None else self.of_node(node)),
        }

    def step(self, step: Step) -> dict[str, Any]:
        node = step.node
        kind = class_of(node, self.holder)
        return {
            "label": label_of(node, kind),
            "family": family_of(node, kind),
            "minor": step.is_minor,
            "settings": _settings(node, self.holder),
            "parameters": self.parameters.get(str(node.target)) if node.op in ("call_module", "get_attr") else None,
            **self.of_node(node),
        }

    def of_node(self, node: Node) -> dict[str, Any]:
        """What is known of a node, whether it is a step or a box."""
        return {
            "name": node.name,
            "op": node.op,
            "target": format_target(node.target),
            "type": "" if node.value_type is None else str(node.value_type),
            "size": bytes_of(node.value_type),
            "args": _arguments(node),
            "source": self.source(node.source),
            "lines": self.picture.code[1].get(node),
            "marks": self.marks.get(node),
            **self.costs.get(node, {}),
        }

    def source(self, source: SourceLine | None) -> int | None:
        """The number of a source line, from 1."""
        if source is None:
            return None
        if source not in self._places:
            self.sources.append([os.path.basename(source.filename), source.lineno, source.function, source.text])
            self._places[source] = len(self.sources)
        return self._places[source]

    def guards(self) -> Iterator[dict[str, Any]]:
        """The guards of a program, with the inputs that they look at."""
        for guard in self.picture.graph.guards:
            yield {
                "kind": guard.kind,
                "text": guard.expression,
                "source": self.source(guard.source),
                "inputs": [self.picture.numbers[node] for node in guard.inputs if node in self.picture.numbers],
            }


def label_of(node: Node, kind: str) -> str:
    """What is written in large letters on a step."""
    if node.op in ("placeholder", "output"):
        return node.name
    if node.op == "get_attr":
        return str(node.target).rpartition(".")[2]
    if kind:
        return kind
    short = format_target(node.target).rpartition(".")[2]
    if node.target is getattr and len(node.args) > 1:
        return f".{node.args[1]}"
    if short.startswith("rebuild") and node.args and isinstance(node.args[0], type):
        return node.args[0].__name__  # an object of a class, made of its parts
    return _SYMBOLS.get(short, short) if getattr(node.target, "__module__", "") == "_operator" else short


def class_of(node: Node, holder: Any) -> str:
    """The class of the module that a node calls; empty for other nodes."""
    if node.op != "call_module":
        return ""
    known = [kind for path, kind in stack_of(node).values() if path == node.target]
    module = resolve(holder, str(node.target))
    kind = known[-1] if known else type(module) if module is not None else node.target
    return str(getattr(kind, "__name__", str(kind).rpartition(".")[2]))


def _settings(node: Node, holder: Any) -> str:
    """How the module that a node calls was made."""
    describe = getattr(resolve(holder, str(node.target)), "extra_repr", None) if node.op == "call_module" else None
    return "" if describe is None else str(describe())


def _arguments(node: Node) -> str:
    words = [format_argument(argument).replace("%", "") for argument in node.args]
    words += [f"{key}={format_argument(value).replace('%', '')}" for key, value in node.kwargs.items()]
    text = ", ".join(words)
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} …"


def _parameters(holder: Any) -> dict[str, int]:
    """How many numbers the parameters at each path of a module and below it hold; nothing for what is no module."""
    named = getattr(holder, "named_parameters", None)
    found: dict[str, int] = {}
    for name, value in () if named is None else named():
        atoms = name.split(".")
        for depth in range(len(atoms) + 1):
            path = ".".join(atoms[:depth])
            found[path] = found.get(path, 0) + int(value.numel())
    return found


def _costs(picture: Picture, profile: Profile) -> dict[Node, dict[str, Any]]:
    """What each node took, under the names of the page."""
    by_name = {node.name: node for node in picture.graph.nodes}
    found = {}
    for row in profile.nodes:
        node = row.node if row.node in picture.numbers else by_name.get(row.node.name)
        if node is not None:
            found[node] = {
                "calls": row.calls,
                "seconds": row.seconds,
                "flops": None if row.unknown else row.flops,
                "bytes": row.bytes,
                "memory": row.allocated,
            }
    return found


def _costs_by_types(picture: Picture, holder: Any) -> dict[Node, dict[str, Any]]:
    """The arithmetic of each node where the types in the graph tell it; of a loop, that of one step."""
    framework = getattr(picture.program, "framework", "") or "torch"
    found = {}
    for node in picture.numbers:
        module = resolve(holder, str(node.target)) if node.op == "call_module" else None
        cost = cost_by_types(node, module, framework)
        if cost is not None:
            found[node] = {"flops": cost.flops}
    return found
