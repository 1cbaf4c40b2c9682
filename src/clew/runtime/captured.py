"""From a capture to a callable: a module for a module, a function for a function, with the original's signature.

Both list the assumptions of the capture as ``guards``. A guard that fails leaves no mark: where the graph acts before
its last guard, what it had done is undone before the error is raised.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import Any

import torch

from clew.capture.example.contents import contents, follows, refill
from clew.capture.example.writes import refused_when_raising
from clew.codegen.python import CodeGen, PythonCode
from clew.frameworks.torch.closures import ClosedOver
from clew.frameworks.torch.protection import Plan, plan_of, protected, writes_late
from clew.ir.graph import Graph
from clew.ir.guards import confirm, referred_paths
from clew.runtime.bound import Bound, bind, body_of, may_bind
from clew.runtime.compiler import ALIVE, Way, is_compiling, look, outside, prepared
from clew.runtime.direct import Body
from clew.runtime.function import STEPS, GraphFunction, Protection
from clew.runtime.module import OWN_ATTRIBUTES, GraphModule
from clew.runtime.parts import Part, check_assignment, mark_parts
from clew.runtime.renaming import add_parts, keep_state_names, renamed
from clew.runtime.saved_parts import saved_parts
from clew.runtime.standing import Standing
from clew.runtime.switched import switch_others
from clew.runtime.whole_state import complete


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
        code = self.recompile()  # type: ignore[attr-defined]
        known = self.__dict__.get("_early")
        if known is None or known[0] is not code:
            known = self.__dict__["_early"] = (code, (plan_of(self.graph), writes_late(self.graph)))
        return known[1]  # type: ignore[no-any-return]

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

    def _parts_to_save(self) -> dict[str, Any]:
        return saved_parts(self, referred_paths(self.graph))

    def train(self, mode: bool = True) -> Any:
        """Switch the module, and those parts that the original would switch with it."""
        return switch_others(super().train(mode), mode)


_NEEDED = frozenset(dir(CapturedModule)).difference(dir(torch.nn.Module), {"_self"}) | OWN_ATTRIBUTES
"""Names that a captured module has no place for among those of its parts."""


class CapturedFunction(Guarded, GraphFunction):
    """A function captured from an example."""

    _standing: Standing | None = None
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
        if self._standing is not None:
            self._standing.check()
        return super().__call__(*args, **kwargs)

    def _rely_on(self, standing: Standing) -> bool:
        if not standing.is_free and self._standing is not standing:
            self._standing = standing
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
        if body is None or self._standing is None:
            return body
        unless = f"{body.unless} or not {_STANDS}()" if body.unless else f"not {_STANDS}()"
        return body._replace(unless=unless, names=body.names | {_STANDS: self._standing.holds})


_STANDS = "_clew_stands"
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
    before = vars(source).copy()
    try:
        for path, value in constants.items():
            object.__setattr__(source, path, value)
        add_parts(source, names)
        module = CapturedModule(source, graph, name)
    finally:
        vars(source).clear()
        vars(source).update(before)
    give_state(source, module, state)
    complete(source, module, _NEEDED, names)
    keep_state_names(module, names)
    mark_parts(source, module)
    return module


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
    if isinstance(value, (torch.Tensor, torch.nn.Module)) or not follows(value):
        return value
    twin = copies[id(value)] = copy.copy(value)
    refill(twin, {key: copied(part, copies) for key, part in contents(value).items()})
    return twin
