"""The code of a nested form: one class for each group of equal modules, inner ones first, the root last.

A nested form comes in, text goes out. A run of equal modules, each of which takes what the one before gave, is written
as a loop: the graph that is shown is a copy in which the run is a ``for_loop``. How a graph becomes Python is the
affair of the code generator; here stand only the heads of the classes, which name the modules that share them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from clew.codegen.plan import LoopLayout
from clew.codegen.python import CodeGen, PythonCode
from clew.ir.effects import resolve
from clew.ir.graph import Graph
from clew.ir.node import Node
from clew.passes.fold_runs import Called, folded, is_item

_WIDTH = 120


class _Shown(CodeGen):
    """Writes code for people: what stands in a list is reached by its number, and several values that a call gives
    are set at once."""

    def _scope(self, nodes: Any, root: str, namespace: Any, variables: frozenset[str] = frozenset()) -> Any:
        scope, plan = super()._scope(nodes, root, namespace, variables)
        vars(scope)["attribute_path"] = subscripted
        inner = [layout.side.body.nodes for layout in plan.layouts.values() if isinstance(layout, LoopLayout)]
        for call, items in [pair for block in (nodes, *inner) for pair in _unpacked(block)]:
            names = {node.args[1]: scope.locals.name(node) for node in items}
            scope.locals.rename(call, ", ".join(names[place] for place in range(len(names))))
            plan.silent.update(items)
        return scope, plan

    def _names_for_users(self) -> list[tuple[str, Any]]:
        return []


def _unpacked(nodes: Any) -> Iterator[tuple[Node, list[Node]]]:
    """The calls that give several values, which the nodes right behind them take one by one."""
    for call in nodes:
        items, node = [], call.next
        while node in call.users and is_item(node) and node.args[0] is call:
            items.append(node)
            node = node.next
        places = sorted(item.args[1] for item in items)
        if len(items) > 1 and len(items) == len(call.users) and places == [*range(len(items))]:
            yield call, items


def subscripted(base: str, path: str) -> str:
    """The expression for what a module holds at a path; what has a number for a name stands in a list."""
    return base + "".join(f"[{atom}]" if atom.isdigit() else f".{atom}" for atom in path.split("."))


def written(graph: Graph, name: str) -> PythonCode:
    """The code of a graph as it is shown to people, as a function of this name."""
    codegen = _Shown() if type(graph._codegen) is CodeGen else graph._codegen
    before, codegen._func_name = codegen._func_name, name
    try:
        return codegen.python_code(graph, "self", shown=True, inline=True, modules=False)
    finally:
        codegen._func_name = before


@dataclass
class _Class:
    """Modules that share all their graphs."""

    kind: str
    graphs: list[Graph]
    modules: dict[str, Any] = field(default_factory=dict)


def code_of(nested: Any) -> str:
    """The classes of a nested form; ``nested`` has a graph, and so have its ``pieces``."""
    classes = [*_classes(nested), _Class(type(nested).__name__, [nested.graph], {"": nested})]
    imports = _Imports()
    texts = []
    for one, name in zip(classes, _names(classes), strict=True):
        methods = [_text(one, place, imports) for place in range(len(one.graphs))]
        texts.append(f"{_head(name, one)}\n" + "\n\n".join(methods))
    head = "\n".join(imports.lines)
    return "\n\n\n".join([head, *texts] if head else texts) + "\n"


def _text(one: _Class, place: int, imports: _Imports) -> str:
    """One method of a class, indented."""
    graph = folded(one.graphs[place], _Callee(one).of)
    graph.owning_module = next(iter(one.modules.values()))
    code = written(graph, _method(place))
    definition, *lines = code.src.rstrip("\n").split("\n")[code._prologue_start - 1 :]
    lines = [definition, *(f"    {line}" for line in imports.own(code)), *lines]
    return "\n".join(f"    {line}" if line else "" for line in lines)


class _Imports:
    """The lines above all classes; a name that already means something else is imported where it is used."""

    def __init__(self) -> None:
        self._by_name: dict[str, str] = {}

    @property
    def lines(self) -> list[str]:
        """All lines that functions share, imports first."""
        return sorted(self._by_name.values(), key=lambda line: not line.startswith(("import ", "from ")))

    def own(self, code: PythonCode) -> list[str]:
        """The lines that a function needs for itself; those that it can share with others are noted."""
        lines = {line.rpartition(" ")[2]: line for line in code.imports}
        lines |= {line.partition(" = ")[0]: line for line in code._constants}
        return [line for name, line in lines.items() if self._by_name.setdefault(name, line) != line]


def _method(place: int) -> str:
    return f"forward_{place + 1}" if place else "forward"


class _Callee:
    """Tells which calls of a class mean the same."""

    def __init__(self, one: _Class) -> None:
        self.module = next(iter(one.modules.values()))

    def of(self, target: str) -> Called | None:
        """What is called at a path; None for a module that has no graph."""
        found = resolve(self.module, target)
        graphs = getattr(found, "graphs", None)
        if graphs is None:
            return None
        holder = resolve(self.module, target.rpartition(".")[0]) if "." in target else self.module
        names = tuple(node.name for node in graphs[0].nodes if node.op == "placeholder")
        return Called(tuple(map(id, graphs)), len(holder._modules), names)


def _classes(nested: Any) -> list[_Class]:
    """The groups of equal modules, those that are called by others before them."""
    found: dict[Any, _Class] = {}
    pieces = {path: piece for path, piece in nested.pieces.items() if hasattr(piece, "graphs")}
    called: list[str] = []
    waiting = [("", nested, False)]
    while waiting:
        path, module, is_done = waiting.pop()
        if is_done:
            called.append(path)
            continue
        waiting.append((path, module, True))
        graphs = getattr(module, "graphs", None) or [module.graph]
        inner = [node.target for graph in graphs for node in graph.nodes if node.op == "call_module"]
        paths = (f"{path}.{target}".removeprefix(".") for target in inner)
        paths = (re.sub(r"\.forward_\d+$", "", one) for one in paths)
        waiting += [(one, pieces[one], False) for one in reversed(list(dict.fromkeys(paths))) if one in pieces]
    for path in dict.fromkeys(called):
        if path:
            piece = pieces[path]
            key = (type(piece).__name__, *map(id, piece.graphs))
            found.setdefault(key, _Class(type(piece).__name__, piece.graphs)).modules[path] = piece
    return list(found.values())


def _names(classes: list[_Class]) -> list[str]:
    """The names of the classes; those that several have get a number."""
    counts: dict[str, int] = {}
    names = []
    for one in classes:
        counts[one.kind] = counts.get(one.kind, 0) + 1
        names.append(one.kind if counts[one.kind] == 1 else f"{one.kind}_{counts[one.kind]}")
    return names


def _head(name: str, one: _Class) -> str:
    paths = list(one.modules)
    if paths == [""]:
        return f"class {name}:"
    listed = _ranges(paths)
    text = ", ".join(listed) + (f" (x{len(paths)})" if len(paths) > 1 else "")
    start = f"class {name}:  # "
    if len(start) + len(text) > _WIDTH:
        kept = [*itertools.takewhile(lambda one: len(one) < 60, listed)][:2] or listed[:1]
        text = f"{', '.join(kept)} and others (x{len(paths)})"
    return start + text


def _ranges(paths: list[str]) -> list[str]:
    """The paths in code's notation; those that differ in numbers alone are written as one where they are all there."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for path in paths:
        atoms = path.split(".")
        key = ".".join("0" if atom.isdigit() else atom for atom in atoms)
        found.setdefault(key, []).append(tuple(int(atom) for atom in atoms if atom.isdigit()))
    return [text for key, numbers in found.items() for text in _written_ranges(key, numbers)]


def _written_ranges(key: str, numbers: list[tuple[int, ...]]) -> list[str]:
    columns = [sorted(set(column)) for column in zip(*numbers, strict=True)]
    is_whole = len(numbers) == math.prod(map(len, columns))
    is_whole = is_whole and all(column == [*range(column[0], column[-1] + 1)] for column in columns)
    chosen = [columns] if is_whole else [[[number] for number in one] for one in numbers]
    pattern = subscripted("", key).lstrip(".").replace("[0]", "[{}]")
    return [pattern.format(*(_range(column) for column in some)) for some in chosen]


def _range(numbers: list[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}:{numbers[-1] + 1}"
