"""From a capture to a callable: a module for a module, a function for a function, with the original's signature.

Both list the assumptions of the capture as ``guards``. A guard that fails leaves no mark: where the graph acts before
its last guard, what it had done is undone before the error is raised. A captured module has all parameters and buffers
of the original under the same names and in the same order, also those that its graph does not name, so that state
dicts, optimizers and checkpoints of one fit the other. A part whose name the captured module needs for itself
(``graph``, ``code``) gets another one, in the graph too. Several methods of one module become one module that they
share. Importing this file imports torch.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Container, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import Any

import torch

from clew.capture.captured import Captured
from clew.capture.interrupts import DeferredSignals
from clew.capture.state.containers import AMBIENT, contents, follows, refill
from clew.capture.state.slots import ROOT
from clew.capture.state.writes import refused_when_raising
from clew.codegen.python import CodeGen, PythonCode
from clew.errors import CaptureError
from clew.frameworks.torch.modules.state import ClosedOver
from clew.frameworks.torch.protection import Plan, plan_of, protected, writes_late
from clew.ir.arguments import all_nodes, leaves
from clew.ir.graph import Graph
from clew.ir.guards import attribute_paths, confirm, leaves_of, referred_paths, rename_attributes
from clew.ir.node import Node
from clew.runtime.fast.bound import Bound, bind, body_of, may_bind
from clew.runtime.fast.direct import Body
from clew.runtime.fast.module_fingerprint import Fingerprint
from clew.runtime.function import STEPS, GraphFunction, Protection
from clew.runtime.module import OWN_ATTRIBUTES, GraphModule, take_over
from clew.runtime.parts import (
    OWNED,
    Part,
    check_assignment,
    held_among,
    mark_parts,
    protect,
    refuse_alike,
    saved_parts,
    switch_others,
)
from clew.runtime.torch_compile import ALIVE, Way, is_compiling, look, outside, prepared

# ---- captured modules and functions ----------------------------------------------------------------------------------


class Guarded:
    """What captured modules and captured functions have in common."""

    graph: Graph
    _inlines = True

    @property
    def _self(self) -> Any:
        """The object that the graph writes its state to."""
        return self

    def _plan(self) -> Plan | None:
        """What the graph as it is now may do before its last guard."""
        return self._plans()[0]

    def _plans(self) -> tuple[Plan | None, bool]:
        """That plan, and whether the graph writes state only at its end; worked out once for each state of the code."""
        if "_kept_plans" in self.__dict__:
            return self.__dict__["_kept_plans"]  # type: ignore[no-any-return]
        code = self.recompile()  # type: ignore[attr-defined]
        known = self.__dict__.get("_early")
        if known is None or known[0] is not code:
            known = self.__dict__["_early"] = (code, (plan_of(self.graph), writes_late(self.graph)))
        return known[1]  # type: ignore[no-any-return]

    def keep_plans(self) -> None:
        self.__dict__["_kept_plans"] = (plan_of(self.graph), writes_late(self.graph))  # type: ignore[attr-defined]

    def protection(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractContextManager[None]:
        """What surrounds a call, so that one whose guard fails leaves no mark."""
        if torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
            return nullcontext()  # a CUDA graph only notes what is to be done, and copies would be noted with it
        plan, late = self._plans()
        if plan is not None:
            root = self.root if isinstance(self, GraphFunction) else self
            return protected(plan, root, args, kwargs)
        return refused_when_raising() if late else nullcontext()

    def confirm(self) -> None:
        """Raise the error of a guard that did not hold in a call that could not wait for it, since a CUDA graph was
        being recorded. After a run of such a graph, and before its results count: it tells of the latest run."""
        confirm(self.graph)

    def _protection(self) -> Protection | None:
        """The same, where a call needs it at all."""
        return None if self._plans() == (None, False) else self.protection


class CapturedModule(Guarded, GraphModule):
    """A module captured from an example."""

    _all_buffers = False

    def __setattr__(self, name: str, value: Any) -> None:
        check_assignment(self, name)
        super().__setattr__(name, value)

    def _restored(self) -> None:
        protect(self)

    def _parts_to_save(self) -> dict[str, Any]:
        return saved_parts(self, referred_paths(self.graph))

    def __copy__(self) -> GraphModule:
        twin = super().__copy__()
        vars(twin).update({name: value for name, value in vars(self).items() if name not in vars(twin)})
        parts = {name: part for name, part in self._modules.items() if part is not None}
        vars(twin)["_modules"].update(parts)  # the very same, which hold what both of them change
        return twin

    def _with_graph(self, graph: Graph) -> CapturedFunction:
        return CapturedFunction(self, graph, type(self).__name__)

    def _part(self, graph: Graph, name: str) -> GraphModule:
        made = super()._part(graph, name)
        refuse_alike(self, made)
        return made

    def __str__(self) -> str:
        return f"{type(self).__name__}: {self.graph}"

    def train(self, mode: bool = True) -> Any:
        """Switch the module, and those parts that the original would switch with it."""
        return switch_others(super().train(mode), mode)


_NEEDED = frozenset(dir(CapturedModule)).difference(dir(torch.nn.Module), {"_self"}) | OWN_ATTRIBUTES
"""Names that a captured module has no place for among those of its parts."""


class CapturedFunction(Guarded, GraphFunction):
    """A function captured from an example."""

    framework = "torch"

    _fingerprint: Fingerprint | None = None
    """What it relies on of the original, if it works on that."""

    def __init__(self, root: Any, graph: Graph, name: str = "graph") -> None:
        super().__init__(root, graph, name)
        ALIVE[id(self)] = self

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        ALIVE[id(self)] = self

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            way = prepared(id(self))
            if way == Way.LEAVE:
                return outside(self, *args, **kwargs)
            if way == Way.LOOK:
                look(self)
            if way == Way.READ_INSIDE:
                return self._read_by_compiler(self.root, *args, **kwargs)  # type: ignore[misc]
            return self._compiled[1](self.root, *args, **kwargs)  # type: ignore[index]
        if self._fingerprint is not None:
            self._fingerprint.check()
        return super().__call__(*args, **kwargs)

    def _with_graph(self, graph: Graph) -> GraphFunction:
        twin = super()._with_graph(graph)
        if self._fingerprint is not None:
            twin._rely_on(self._fingerprint)
        return twin

    def _rely_on(self, fingerprint: Fingerprint) -> bool:
        if not fingerprint.is_free and self._fingerprint is not fingerprint:
            self._fingerprint = fingerprint
            self._forget()
        return True

    def _may_bind(self) -> bool:
        return may_bind()

    def _bind(self, code: PythonCode, function: FunctionType) -> Bound | None:
        if isinstance(self.root, Live):
            return bind(self._graph, code, function, self.root._self, vars(self.root))
        return bind(self._graph, code, function, self.root, {})

    def _body(self, code: PythonCode, function: FunctionType, bound: Bound | None) -> Body | None:
        body = body_of(code, function, bound) if type(self._graph._codegen) is CodeGen else None
        if body is None or self._fingerprint is None:
            return body
        unless = f"{body.unless} or not {_IS_UNCHANGED}()" if body.unless else f"not {_IS_UNCHANGED}()"
        return body._replace(unless=unless, names=body.names | {_IS_UNCHANGED: self._fingerprint.holds})


_IS_UNCHANGED = "_clew_is_unchanged"
STEPS.add(CapturedFunction.__call__)


class Live:
    """The root of a capture that works on the original itself: its attributes, and the constants of the capture.

    Attributes in ``state`` are set and deleted on the original too; all else that is set stays here.
    """

    def __init__(self, source: Any, constants: dict[str, Any], state: Sequence[str]) -> None:
        vars(self).update(constants)
        vars(self)["_self"] = source
        vars(self)["_state"] = frozenset(state)

    def __getattr__(self, name: str) -> Any:
        if "_self" not in vars(self):  # while it is being copied or loaded
            raise AttributeError(name)
        return getattr(vars(self)["_self"], name)

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def needed_by(self, graph: Graph) -> Any:
        """What a graph needs of the original: the parts and settings that it names, under the class that holds any, so
        that nobody needs the classes around them; all of it where the graph takes it as a whole."""
        source, paths = self._self, [path for path in referred_paths(graph) if path not in vars(self)]
        if not isinstance(source, torch.nn.Module) or ROOT in paths:
            return source
        holder = ClosedOver({}) if isinstance(source, ClosedOver) else torch.nn.Module()
        holder.training = source.training
        take_over(source, holder, paths, as_buffers=False)
        return holder

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._state:
            setattr(self._self, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name in self._state:
            delattr(self._self, name)
        else:
            super().__delattr__(name)


def callable_of(
    source: Any, constants: dict[str, Any], graph: Graph, name: str, state: Sequence[str], live: bool
) -> Any:
    """A module over the parts of ``source``, or a function if there is none, and the constants that were used.

    ``state`` lists the attributes that the graph changes: the module gets its own. With ``live`` the graph works on
    the source instead, and changes that.
    """
    if source is None or live or isinstance(source, ClosedOver):
        root = Live(torch.nn.Module() if source is None else source, constants, state)
        return CapturedFunction(root, graph, name)
    names = renamed(source, graph, state, _NEEDED)
    with DeferredSignals():
        before = vars(source).copy()
        try:
            for path, value in constants.items():
                object.__setattr__(source, path, value)
            add_parts(source, names)
            module = CapturedModule(source, graph, name)
        finally:
            vars(source).clear()
            vars(source).update(before)
    owned = held_among([*constants.values(), *_objects_in(graph)], source)
    if owned:
        vars(module)[OWNED] = owned
    give_state(source, module, state)
    complete(source, module, _NEEDED, names)
    keep_state_names(module, names)
    mark_parts(source, module, state)
    return module


def _objects_in(graph: Graph) -> list[Any]:
    """What the calls of a graph are given besides values of nodes, and what its guards look at."""
    given = (leaf for node in all_nodes(graph) for leaf in leaves((node.args, node.kwargs)))
    return [leaf for leaf in given if not isinstance(leaf, Node)] + [
        leaf for guard in graph._guards for leaf in leaves_of(guard.subject)
    ]


def give_state(source: torch.nn.Module, module: torch.nn.Module, paths: Iterable[str]) -> None:
    """Give a captured module state of its own at these paths, as the original has it."""
    copies: dict[int, Any] = {}
    for path in paths:
        _give(source, module, path, copies)


def _give(source: torch.nn.Module, module: torch.nn.Module, path: str, copies: dict[int, Any]) -> None:
    """Give the captured module a copy of what the original keeps at ``path``, in the same kind of place."""
    owner, _, name = path.rpartition(".")
    holder: Any = module
    original: Any = source
    for atom in owner.split(".") if owner else ():
        original = original._modules[atom]
        if atom not in holder._modules:
            holder.add_module(atom, Part())
            holder._modules[atom].training = original.training
        holder = holder._modules[atom]
    if holder is original:  # a module that stays one call belongs to both
        return
    vars(holder).pop(name, None)
    for kind in ("_parameters", "_buffers"):
        vars(holder)[kind].pop(name, None)
        if name in vars(original)[kind]:
            vars(holder)[kind][name] = vars(original)[kind][name]
    if name in vars(original)["_buffers"] and name in original._non_persistent_buffers_set:
        holder._non_persistent_buffers_set.add(name)
    if name in vars(original):
        vars(holder)[name] = copied(vars(original)[name], copies)


def copied(value: Any, copies: dict[int, Any]) -> Any:
    """A copy of a container or object and of those in it; arrays, modules and all else are shared."""
    if id(value) in copies:
        return copies[id(value)]
    if type(value) is tuple:
        return tuple(copied(item, copies) for item in value)
    if isinstance(value, (torch.Tensor, torch.nn.Module, *AMBIENT)) or not follows(value):
        return value
    twin = copies[id(value)] = copy.copy(value)
    refill(twin, {key: copied(part, copies) for key, part in contents(value).items()})
    return twin


# ---- several methods of one module -----------------------------------------------------------------------------------


class CapturedMethods(torch.nn.Module):
    """A module whose methods were captured from examples. ``methods`` lists them by name."""

    def __init__(self, source: torch.nn.Module, graphs: dict[str, Graph], constants: dict[str, Any]) -> None:
        super().__init__()
        self.training = source.training
        paths = dict.fromkeys(path for graph in graphs.values() for path in referred_paths(graph))
        vars(self).update({path: constants[path] for path in paths if path in constants})
        taken = [path for path in paths if path not in constants and path not in (ROOT, "training")]
        take_over(source, self, taken, as_buffers=False)
        self._names = tuple(graphs)
        self._class_name = type(source).__name__
        for name, graph in graphs.items():
            self.__dict__[name] = CapturedFunction(self, graph, name)

    @property
    def _self(self) -> Any:
        """The object that the graphs write their state to."""
        return self

    @property
    def methods(self) -> dict[str, CapturedFunction]:
        """The captured methods by name."""
        return {name: self.__dict__[name] for name in self._names}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Stands where no forward was captured."""
        raise CaptureError(
            "this module has no captured forward",
            why=f"its captured methods are {', '.join(self._names)}",
            fixes=('give an example for it: clew.trace_module(module, {"forward": args, ...})',),
        )

    def __copy__(self) -> CapturedMethods:
        graphs = {name: method.graph for name, method in self.methods.items()}
        twin = CapturedMethods(self, graphs, {})
        twin._class_name = self._class_name
        return twin

    def _get_name(self) -> str:
        return self._class_name


def methods_of(source: torch.nn.Module, captures: dict[str, Captured]) -> CapturedMethods:
    """One module with all these methods."""
    constants: dict[str, Any] = {}
    for captured in captures.values():
        _rename_constants(captured, constants)
    module = CapturedMethods(source, {name: captured.graph for name, captured in captures.items()}, constants)
    give_state(source, module, dict.fromkeys(path for captured in captures.values() for path in captured.state))
    if "forward" in captures:  # else it is a part of the original, with what that part needs
        complete(source, module, frozenset(dir(module)))
    return module


def _rename_constants(captured: Captured, constants: dict[str, Any]) -> None:
    """Give the constants of one capture names of their own; one that another capture has too is shared."""
    names = {path: _name_of(value, constants) for path, value in captured.constants.items()}
    rename_attributes(captured.graph, lambda path: names.get(path, path))


def _name_of(value: Any, constants: dict[str, Any]) -> str:
    for name, known in constants.items():
        if known is value:
            return name
    name = f"_constant{len(constants)}"
    constants[name] = value
    return name


# ---- parts whose names are taken -------------------------------------------------------------------------------------

_KINDS = ("_modules", "_parameters", "_buffers")


def renamed(source: torch.nn.Module, graph: Graph, state: Iterable[str], taken: frozenset[str]) -> dict[str, str]:
    """Give parts of ``source`` whose names are ``taken`` other ones in the graph; the new names by the old."""
    named = [node.target for node in all_nodes(graph) if node.op in ("get_attr", "call_module")]
    first = {path.partition(".")[0] for path in (*named, *attribute_paths(graph.guards.entry))}
    wanted = taken & (first | {path.partition(".")[0] for path in state})
    if not wanted:
        return {}
    names = {name: _free_name(source, name, taken) for name in sorted(wanted)}
    parts = {name for kind in _KINDS for name in vars(source)[kind]}
    for name in wanted.difference(parts).union(taken & {path.partition(".")[0] for path in state}):
        raise CaptureError(
            f"{type(source).__name__} has an attribute {name!r}, which a captured module needs for itself",
            fixes=[f"give the attribute another name, {names[name]!r} say"],
        )
    rename_attributes(graph, functools.partial(_with_new_head, names))
    return names


def _with_new_head(names: dict[str, str], path: str) -> str:
    head, dot, rest = path.partition(".")
    return f"{names.get(head, head)}{dot}{rest}"


def _free_name(source: torch.nn.Module, name: str, taken: frozenset[str]) -> str:
    found = f"{name}_"
    while found in taken or hasattr(source, found):
        found += "_"
    return found


def add_parts(source: torch.nn.Module, names: dict[str, str]) -> None:
    """Let a module hold its parts under their new names too."""
    for old, new in names.items():
        for kind in _KINDS:
            if old in vars(source)[kind]:
                vars(source)[kind] = {**vars(source)[kind], new: vars(source)[kind][old]}
        if old in source._non_persistent_buffers_set:
            vars(source)["_non_persistent_buffers_set"] = {*source._non_persistent_buffers_set, new}


def keep_state_names(module: torch.nn.Module, names: dict[str, str]) -> None:
    """Let the state dict of a captured module have the names of the original."""
    if names:
        module.register_state_dict_post_hook(functools.partial(_name_back, names))
        module.register_load_state_dict_pre_hook(functools.partial(_name_anew, names))


def _name_back(names: dict[str, str], module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    back = {f"{prefix}{new}": f"{prefix}{old}" for old, new in names.items()}
    _rename(state, back)


def _name_anew(names: dict[str, str], module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    _rename(state, {f"{prefix}{old}": f"{prefix}{new}" for old, new in names.items()})


def _rename(state: dict[str, Any], names: dict[str, str]) -> None:
    """Rename the keys of a state dict that begin with these names, in place, and in the order that they have."""
    for key, value in list(state.items()):
        head = next((head for head in names if key == head or key.startswith(f"{head}.")), None)
        del state[key]
        state[key if head is None else names[head] + key[len(head) :]] = value


# ---- parameters and buffers that the graph does not name -------------------------------------------------------------


def complete(source: torch.nn.Module, module: torch.nn.Module, taken: Container[str] = (), names: Any = None) -> None:
    """Let ``module`` hold what ``source`` does; names that are ``taken`` are left out, others may be changed ones."""
    _complete(source, module, taken, names or {})


def _complete(source: torch.nn.Module, module: torch.nn.Module, taken: Container[str], names: dict[str, str]) -> None:
    ours, theirs = vars(module), vars(source)
    for kind in ("_parameters", "_buffers"):
        if theirs[kind] and not _are_alike(ours[kind], theirs[kind]):
            _merge(ours, theirs, kind, taken, names)
            if kind == "_buffers":
                passing = theirs["_non_persistent_buffers_set"]
                ours["_non_persistent_buffers_set"].update(names.get(one, one) for one in passing & ours[kind].keys())
    children = theirs["_modules"]
    if not _are_alike(ours["_modules"], children):
        _merge(ours, theirs, "_modules", taken, names)
    for name, child in children.items():
        twin = ours["_modules"].get(names.get(name, name))
        if twin is not child and twin is not None and child is not None:
            _complete(child, twin, (), {})


def _are_alike(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    return len(ours) == len(theirs) and [*ours] == [*theirs]


def _merge(ours: Any, theirs: Any, kind: str, taken: Container[str], names: dict[str, str]) -> None:
    """Put what is missing into one of the tables of a module, and all of it into the order of the original's."""
    table = ours[kind]
    found = {}
    for old, value in theirs[kind].items():
        name = names.get(old, old)
        if name in table:
            found[name] = table[name]
        elif name not in taken and name not in ours and not _is_elsewhere(ours, name):
            found[name] = _in_place_of(value) if kind == "_modules" else value
    rest = {name: value for name, value in table.items() if name not in found}
    table.clear()
    table.update(found)
    table.update(rest)


def _in_place_of(part: Any) -> Any:
    """What stands for a module that the graph does not call: of the user's classes a part that refuses what the graph
    would not notice, in place of one that belongs to the original; a module that keeps state of its own in a state dict
    stays itself."""
    kind: Any = type(part)
    if part is None or kind.__module__.partition(".")[0] == "torch" or any(kind.__dict__.keys() & _OWN_STATE):
        return part
    made = Part()
    made.training = part.training
    return made


_OWN_STATE = {"_save_to_state_dict", "_load_from_state_dict", "get_extra_state", "set_extra_state", "state_dict"}


def _is_elsewhere(ours: Any, name: str) -> bool:
    return any(name in ours[kind] for kind in ("_parameters", "_buffers", "_modules"))
