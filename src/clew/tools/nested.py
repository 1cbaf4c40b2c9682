"""The nested form of a captured module: one module for each module of the original, each with a graph of its own.

``nested`` takes a flat capture and gives a module that does the same, whose parts are called as those of the original
are; ``flat`` goes back. Parameters, buffers and leaf modules are shared with the capture, under the same names and in
the same order. Equal modules share one graph: an edit of it changes all of them, unless ``split`` gave one a graph of
its own. The code has one class for each group of equal modules, inner ones first; a run of equal modules, each of which
takes what the one before gave, is written as a loop. Importing this file imports torch.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from clew.codegen.lines import import_lines
from clew.codegen.plan import LoopLayout
from clew.codegen.python import CodeGen, PythonCode
from clew.errors import GraphError, a_or_an
from clew.frameworks.torch.modules.state import OWN
from clew.frameworks.torch.protection import Plan, plan_of, writes_late
from clew.ir.arguments import all_nodes
from clew.ir.effects import resolve
from clew.ir.graph import Graph, Watchers
from clew.ir.node import Node
from clew.passes.flatten import flatten
from clew.passes.fold_runs import Called, folded, is_item
from clew.passes.nest import Chain, Nest, nest
from clew.runtime.function import GraphFunction
from clew.runtime.module import _DERIVED, OWN_ATTRIBUTES, GraphModule, _restore
from clew.runtime.parts import CapturedPart, check_assignment
from clew.runtime.torch_captured import CapturedModule

# ---- the nested form -------------------------------------------------------------------------------------------------

_TABLES = ("_parameters", "_buffers", "_modules")
_HOLDER = "_holder_class"
"""The attribute of a module of a nested form that names the class which stands for it in a flat capture."""


@dataclass(frozen=True)
class MadeOf:
    """What a nested form knows of the flat capture that it was made of."""

    before: Graph
    origins: dict[Chain, dict[str, str]]
    moved: dict[str, str]
    """Constants of the root by the places where modules hold them."""
    paths: dict[str, str]
    """Paths of the flat graph by those that the pieces have for the same things."""


class _Numbered:
    """A module whose parts can be reached by number, as those of a ``Sequential`` are."""

    _modules: dict[str, Any]

    def __getitem__(self, number: int) -> Any:
        return self._modules[str(number)]

    __iter__ = None


class Piece(_Numbered, GraphModule):
    """A module of a nested form: its parts, and the graph of what it does. Equal ones share the graph."""

    @property
    def _self(self) -> Piece:
        """What the graph means by this module itself."""
        return self

    @property
    def graphs(self) -> list[Graph]:
        """The graphs of ``forward``, ``forward_2`` and so on: one for each way in which the module is called."""
        return [self.graph, *(way.graph for way in _ways(self).values())]

    def __setattr__(self, name: str, value: Any) -> None:
        check_assignment(self, name, value)
        super().__setattr__(name, value)

    def _get_name(self) -> str:
        return type(self).__name__


_RESERVED = frozenset(dir(Piece)).difference(dir(torch.nn.Module)) | OWN_ATTRIBUTES
"""Names that a piece has no place for among those of its parts."""


class _Nested(_Numbered):
    """What nested forms of captured and of symbolically traced modules have in common."""

    graph: Graph
    _made_of: MadeOf

    @property
    def pieces(self) -> dict[str, Any]:
        """The modules that have a graph, by path; further ways to call one are ``path.forward_2`` and so on."""
        found: dict[str, Any] = {}
        for path, module in self.named_modules():  # type: ignore[attr-defined]
            if path and isinstance(module, Piece):
                found[path] = module
                found.update((f"{path}.{name}", way) for name, way in _ways(module).items())
        return found

    def split(self, path: str) -> Any:
        """Give the piece at a path a graph of its own, which it no longer shares; gives the piece."""
        pieces = self.pieces
        if path not in pieces:
            raise GraphError(
                f"there is no piece {path!r} in this nested form",
                fixes=[f"one of {', '.join(sorted(pieces)[:8]) or 'none'}"],
            )
        piece = pieces[path]
        piece.graph = copy.deepcopy(piece.graph)
        return piece

    @property
    def code(self) -> str:
        """One class for each group of equal modules, inner ones first, with the functions that their graphs are."""
        return code_of(self)

    def _piece_at(self, path: str) -> tuple[str, Graph] | None:
        found = resolve(self, path)
        if isinstance(found, Piece):
            return path, found.graph
        if isinstance(found, GraphFunction) and isinstance(found.root, Piece):
            return path.rpartition(".")[0], found.graph
        return None

    def _flat_graph(self) -> Graph:
        made_of = self._made_of
        return flatten(self.graph, self._piece_at, made_of.before, made_of.origins, made_of.paths)


class NestedModule(_Nested, GraphModule):
    """The nested form of a graph module."""


class NestedCapture(_Nested, CapturedModule):
    """The nested form of a captured module."""

    def _plans(self) -> tuple[Plan | None, bool]:
        """What the flat graph may do before its last guard: guards and effects of all pieces count."""
        known = self.__dict__.get("_early")
        if known is None or known[0] is not self.recompile():
            whole = self._flat_graph()
            whole.owning_module = self
            plan = _moved_plan(plan_of(whole), self._made_of.moved)
            known = self.__dict__["_early"] = (self.recompile(), (plan, writes_late(whole)))
            this = weakref.ref(self)
            for piece in self.pieces.values():
                piece.graph.on_change(lambda: _forget_plan(this))
        return known[1]  # type: ignore[no-any-return]


def _moved_plan(plan: Plan | None, moved: dict[str, str]) -> Plan | None:
    """A plan with the paths at which modules hold constants of the root."""
    if plan is None or not moved:
        return plan
    places = {name: place for place, name in moved.items()}
    numpy = None if plan.numpy is None else tuple(places.get(path, path) for path in plan.numpy)
    return plan._replace(attributes=tuple(places.get(path, path) for path in plan.attributes), numpy=numpy)


def _forget_plan(reference: weakref.ref[NestedCapture]) -> None:
    module = reference()
    if module is not None:
        module.__dict__.update({"_early": None, "_running": None})


def nested(captured: GraphModule) -> Any:
    """The nested form of a captured or symbolically traced module; parameters, buffers and leaf modules are shared."""
    if isinstance(captured, _Nested):
        return captured
    if not isinstance(captured, GraphModule):
        raise GraphError(
            f"{a_or_an(captured)} has no nested form",
            why="it has no modules with paths of their own",
            fixes=["capture a torch.nn.Module: clew.trace(model, args)"],
        )
    graph = captured.graph
    reach = _Reach(captured)
    constants = {name for name in _names_of(captured) if name.startswith("_constant")} - _guarded(graph)
    found = nest(graph, reach.relative, reach.may_be_piece, constants)
    found.root._chosen_codegen = copy.deepcopy(graph._chosen_codegen)
    return _module(captured, found, {**reach.aliases, **found.moved})


def _guarded(graph: Graph) -> set[str]:
    """The attributes that assumptions beside a graph speak of."""
    found: set[str] = set()

    def note(leaf: Any) -> Any:
        found.add(str(getattr(leaf, "path", "")))
        return leaf

    for guard in vars(graph).get("_guards", ()):
        guard.mapped(note)
    return found


def flat(nested: Any) -> Any:
    """The flat capture of a nested form; equal to the one it was made of if nothing was edited."""
    if not isinstance(nested, (NestedModule, NestedCapture)):
        raise GraphError(f"{a_or_an(nested)} is no nested form", fixes=["clew.nested(captured) makes one"])
    graph = nested._flat_graph()
    graph._chosen_codegen = copy.deepcopy(nested.graph._chosen_codegen)
    kind = CapturedModule if isinstance(nested, NestedCapture) else GraphModule
    state = _state_of(nested, lambda child, name: _unnested(child))
    module = _restore(kind.__new__(kind), state, graph, type(nested).__name__)
    for place, name in nested._made_of.moved.items():
        holder, _, local = place.rpartition(".")
        _move(resolve(module, holder), local, module, name)
    return module


class _Reach:
    """Which paths of a module can be reached from which of its parts, and which parts can be pieces."""

    def __init__(self, captured: GraphModule) -> None:
        self.captured = captured
        self.aliases: dict[str, str] = {}
        """The paths by which pieces reach what the flat graph knows by another path."""
        self._found: dict[tuple[str, str], str | None] = {}
        self._inside: dict[str, dict[int, str]] = {}
        self._leaves = {str(node.target) for node in all_nodes(captured.graph) if node.op == "call_module"}

    def may_be_piece(self, path: str) -> bool:
        """Whether there can be a graph for the module at a path: not if it, or one around it, is called as a whole."""
        atoms = path.split(".")
        if self._leaves.intersection(".".join(atoms[: end + 1]) for end in range(len(atoms))):
            return False
        holder = resolve(self.captured, path)
        return holder is None or (isinstance(holder, torch.nn.Module) and _RESERVED.isdisjoint(_names_of(holder)))

    def relative(self, path: str, target: str) -> str | None:
        """The path, seen from the module at ``path``, of what the root has at ``target``."""
        if not path or target == path or target.startswith(f"{path}."):
            return target if not path else "_self" if target == path else target[len(path) + 1 :]
        if (path, target) not in self._found:
            found = self._found[path, target] = self._alias(path, resolve(self.captured, target))
            if found is not None:
                self.aliases[f"{path}.{found}"] = target
        return self._found[path, target]

    def _alias(self, path: str, thing: Any) -> str | None:
        """Another name, inside of the module at ``path``, of a shared module or a tied parameter."""
        if not isinstance(thing, (torch.nn.Module, torch.nn.Parameter)):
            return None
        if path not in self._inside:
            holder = resolve(self.captured, path)
            modules = [] if holder is None else [*holder.named_modules(remove_duplicate=False)]
            tensors = [] if holder is None else [*holder.named_parameters(remove_duplicate=False)]
            self._inside[path] = {id(found): name for name, found in (*modules, *tensors)}
        return self._inside[path].get(id(thing)) or None


def _names_of(module: torch.nn.Module) -> set[str]:
    """The names of all that a module holds."""
    own = vars(module).keys() - OWN - OWN_ATTRIBUTES
    return {*own, *(name for table in _TABLES for name in vars(module)[table])}


# ---- modules -------------------------------------------------------------------------------------------------------


def _module(captured: GraphModule, found: Nest, paths: dict[str, str]) -> Any:
    """A module over the pieces, with the parts of the capture."""
    around = {path[:end] for path in found.pieces for end in (*_dots(path), len(path))}
    made: dict[int, Any] = {}
    state = _state_of(captured, lambda child, name: _twin(child, name, found, around, made))
    state["_made_of"] = MadeOf(copy.deepcopy(captured.graph), found.origins, found.moved, paths)
    kind = NestedCapture if isinstance(captured, CapturedModule) else NestedModule
    module = _restore(kind.__new__(kind), state, found.root, type(captured).__name__)
    for path in sorted(around):
        if resolve(module, path) is None:  # a module that holds nothing
            holder, _, name = path.rpartition(".")
            outer = resolve(module, holder) if holder else module
            outer.add_module(name, _twin(torch.nn.Module(), path, found, around, made))
    for place, name in found.moved.items():
        holder, _, local = place.rpartition(".")
        _move(module, name, resolve(module, holder), local)
    return module


def _dots(path: str) -> list[int]:
    return [place for place, character in enumerate(path) if character == "."]


def _state_of(module: torch.nn.Module, child_of: Callable[[Any, str], Any]) -> dict[str, Any]:
    """What a module holds, in tables of its own; ``child_of`` gives what stands for a child, by its name."""
    left_out = {*_DERIVED, "_made_of", _HOLDER, *_ways(module)}
    state = {key: value for key, value in vars(module).items() if key not in left_out}
    for table in ("_parameters", "_buffers", "_non_persistent_buffers_set"):
        state[table] = copy.copy(state[table])
    state["_modules"] = {name: child_of(child, name) for name, child in state["_modules"].items()}
    return state


def _twin(holder: Any, path: str, found: Nest, around: set[str], made: dict[int, Any]) -> Any:
    """What stands in the nested form for a part of the capture: itself, unless it is a piece or holds one."""
    if path not in around or not isinstance(holder, torch.nn.Module):
        return holder
    if id(holder) in made:
        return made[id(holder)]
    state = _state_of(holder, lambda child, name: _twin(child, f"{path}.{name}", found, around, made))
    state.update({key: value for key, value in vars(torch.nn.Module()).items() if "hooks" in key})
    state[_HOLDER] = type(holder) if type(holder) in (CapturedPart, torch.nn.Module) else CapturedPart
    graphs = found.pieces.get(path, [])
    if graphs:
        state.update({"meta": {}, "_watchers": Watchers(), "_deepcopy_hooks": []})
        twin: Any = _restore(Piece.__new__(Piece), state, graphs[0], found.kinds[path])
        for number, graph in enumerate(graphs[1:], 2):
            vars(twin)[f"forward_{number}"] = GraphFunction(twin, graph, f"forward_{number}")
    else:
        twin = _holder(torch.nn.ModuleList if _is_list(state) else type(holder), state)
    made[id(holder)] = twin
    return twin


def _is_list(state: dict[str, Any]) -> bool:
    """Whether a module holds nothing but modules that are numbered."""
    is_numbered = [*state["_modules"]] == [str(place) for place in range(len(state["_modules"]))]
    return is_numbered and not state["_parameters"] and not state["_buffers"]


def _holder(kind: type[torch.nn.Module], state: dict[str, Any]) -> torch.nn.Module:
    holder = torch.nn.Module.__new__(kind)
    torch.nn.Module.__init__(holder)
    vars(holder).update(state)
    return holder


def _unnested(module: Any) -> Any:
    """What stands in a flat capture for a part of the nested form."""
    kind = vars(module).get(_HOLDER) if isinstance(module, torch.nn.Module) else None
    if kind is None:
        return module
    state = _state_of(module, lambda child, name: _unnested(child))
    return _holder(kind, {key: value for key, value in state.items() if key not in OWN_ATTRIBUTES})


def _ways(module: torch.nn.Module) -> dict[str, GraphFunction]:
    """The further ways in which a piece is called, by name."""
    return {name: value for name, value in vars(module).items() if _is_way(name, value)}


def _is_way(name: str, value: Any) -> bool:
    return isinstance(value, GraphFunction) and name.startswith("forward_")


def _move(source: Any, name: str, target: Any, new_name: str) -> None:
    """Let another module hold a constant, in the same kind of place."""
    if name in vars(source)["_buffers"]:
        is_passing = name in source._non_persistent_buffers_set
        value = source._buffers.pop(name)
        source._non_persistent_buffers_set.discard(name)
        target.register_buffer(new_name, value, persistent=not is_passing)
    else:
        vars(target)[new_name] = vars(source).pop(name)


# ---- code ------------------------------------------------------------------------------------------------------------

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
        imports = [line for line in self._by_name.values() if line.startswith(("import ", "from "))]
        return [*import_lines(imports), *(line for line in self._by_name.values() if line not in imports)]

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
