"""Where a torch program keeps its state: the attributes and buffers of modules, objects around it, classes, variables.

Every part of the captured module that is entered is watched by its path; the inside of a module that stays one call is
that call's own affair. What a graph cannot do again, a module put into another or a mode switched, is refused.
"""

from __future__ import annotations

import keyword
import operator
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from types import FunctionType
from typing import Any, NamedTuple

import torch

from clew.capture.current_capture import original_of
from clew.capture.guards.function_equality import FunctionFingerprint
from clew.capture.state.containers import SIMPLE, follows
from clew.capture.state.reachable import behind, global_names
from clew.capture.state.state import State
from clew.capture.state.surroundings import functions_of, names_of_class
from clew.errors import CaptureError
from clew.frameworks.torch.modules.hooks import hook_tables, shared_hooks
from clew.frameworks.torch.modules.scripted import CompiledAttributes, holders_of
from clew.frameworks.torch.scalars import MODE
from clew.ir.effects import pure
from clew.ir.source import is_installed

OWN = frozenset(vars(torch.nn.Module()))
"""The attributes that every module has for itself."""
KEPT_BY_CLEW = frozenset("_graph _python_code _early _example _running _calls _watchers _deepcopy_hooks meta".split())
"""The attributes that a captured module has for itself."""
_BESIDE_MODE = OWN - {MODE}


def check_entered(module: torch.nn.Module) -> None:
    """A compiled module has no inside in Python, and hooks on gradients belong to the call, not to what is inside."""
    if isinstance(module, torch.jit.ScriptModule):
        raise CaptureError(
            f"a {module.original_name} is compiled by torch.jit, so its inside cannot be captured",
            fixes=(
                "capture a function that calls it, where it stays one call: clew.trace(lambda x: module(x), ...)",
                "capture the module that it was compiled from",
                "read its graph: clew.from_torchscript(module)",
            ),
        )
    if module._backward_hooks or module._backward_pre_hooks:
        raise CaptureError(
            f"a {type(module).__name__} has hooks on the gradients that pass it",
            why="its inside is captured, not the call that the hooks belong to",
            fixes=("keep it as one call: leaves=", "put the hooks on tensors"),
        )


class Modules:
    """The modules of one capture and what must not change in them."""

    def __init__(
        self,
        module: torch.nn.Module,
        places: Iterable[tuple[str, torch.nn.Module]],
        is_leaf: Callable[[Any, str], bool],
        held: Mapping[torch.nn.Module, list[tuple[str, torch.Tensor]]],
    ) -> None:
        self.tensors: list[torch.Tensor] = []
        self.entered: list[tuple[str, torch.nn.Module]] = []
        self._layers: list[tuple[str, torch.nn.Module]] = []
        self._modes: list[tuple[torch.nn.Module, bool, dict[str, Any]]] = []
        self.inner: list[torch.nn.Module] = []
        self._passing: list[tuple[torch.nn.Module, set[str]]] = []
        seen: set[int] = set()
        calls: tuple[str, ...] = ()
        first: dict[torch.nn.Module, str] = {}
        for path, part in places:
            first.setdefault(part, path)
        for part, path in first.items():
            if path.startswith(calls):
                self.inner.append(part)
            elif part is module or not is_leaf(part, path):
                check_entered(part)
                self.entered.append((path, part))
            else:
                self.inner.append(part)
                calls = (*calls, f"{path}.") if part._modules else calls
                if _sets_nothing_itself(part):
                    self._layers.append((path, part))
            self._passing.append((part, set(part._non_persistent_buffers_set)))
            children: Any = part._modules  # a compiled module has a table of its own, and always the same parts
            self._modes.append((part, part.training, dict(children) if isinstance(children, dict) else children))
            for _, value in held[part]:
                if id(value) not in seen:
                    seen.add(id(value))
                    self.tensors.append(value)

    def watch(self, state: State) -> None:
        """Remember the state of all parts that are entered, and what the program may keep on torch's own layers."""
        for path, part in self._layers:
            state.watch(part, vars(part), path, skip=_BESIDE_MODE)
        for path, part in self.entered:
            if type(part).__module__.startswith("clew."):  # a captured module keeps count of its calls
                state.watch(part, vars(part), path, skip=_BESIDE_MODE | KEPT_BY_CLEW)
                state.watch(part, vars(part), skip=frozenset(vars(part)) - KEPT_BY_CLEW, is_inner=True)
            else:
                state.watch(part, vars(part), path, skip=_BESIDE_MODE)
            for holder in holders_of(part):
                if isinstance(holder, CompiledAttributes):
                    state.watch(part, holder, is_inner=True)
                else:
                    state.watch(part, holder, path)
        for part in self.inner:
            if not type(part).__module__.startswith("torch.nn.modules"):
                for holder in (vars(part), *holders_of(part)):
                    state.watch(part, holder, skip=OWN, is_inner=True)

    def must_enter(self, parts: list[torch.nn.Module], touched: set[int]) -> bool:
        """Whether a layer has attributes that the program has set by now, its mode say: a call of the graph would find
        those of before. ``parts`` are the layer and what is in it."""
        found = [part for part in parts if id(part) in touched]
        if not found or (found == parts[:1] and any(part is parts[0] for _, part in self._layers)):
            return bool(found)
        switched = [part for part, mode, _ in self._modes if vars(part).get(MODE, mode) is not mode]
        if any(part in switched for part in found) or type(parts[0]).__module__.startswith("torch."):
            raise CaptureError(
                f"the program sets attributes in a {type(parts[0]).__name__}, and calls it then",
                why="the call stays one of the graph, which would not set them before it",
                fixes=("set them before the capture", "let its inside be captured: leaves="),
            )
        return False

    def followed(self) -> set[torch.nn.Module]:
        """The parts whose modes the graph can set."""
        return {part for _, part in (*self._layers, *self.entered)}

    def check(self) -> None:
        """Raise if the program switched the mode of a module, or put another module into one."""
        followed = self.followed()
        for part, mode, children in self._modes:
            is_switched = part.training is not mode and part not in followed
            what = "switches the mode" if is_switched else "changes the parts"
            if is_switched or part._modules != children:
                raise CaptureError(
                    f"the program {what} of a {type(part).__name__}",
                    why="the graph was captured for the module as it was",
                    fixes=("do it before the capture",),
                )

    def put_back(self) -> None:
        """Let modes and parts be as they were."""
        for part, passing in self._passing:
            if part._non_persistent_buffers_set != passing:
                part._non_persistent_buffers_set = passing
        for part, mode, children in self._modes:
            if part.training is not mode:
                part.training = mode
            if part._modules != children:
                part._modules.clear()
                part._modules.update(children)


def all_places(module: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """A module and its parts, each under all its paths, in the order of ``named_modules``, which takes longer."""
    found, waiting = [], [("", module)]
    while waiting:
        path, part = place = waiting.pop()
        found.append(place)
        if part._modules:
            start = f"{path}." if path else ""
            inner = [(start + name, original_of(child)) for name, child in part._modules.items() if child is not None]
            waiting += reversed(inner)
    return found


def tensors_in(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """The tensors that a module itself holds, by name: parameters, buffers, and those in plain attributes."""
    held = vars(module)
    parameters, buffers = held.get("_parameters"), held.get("_buffers")
    holders: tuple[Any, ...] = (parameters or module._parameters, buffers or module._buffers, held)
    return [
        item
        for holder in holders
        for item in holder.items()
        if type(item[1]) not in _NO_TENSORS and isinstance(item[1], torch.Tensor)
    ]


def tensors_held(module: torch.nn.Module) -> list[tuple[str, int]]:
    """The names of a module's own parameters and buffers, and which tensors they are."""
    held = object.__getattribute__(module, "__dict__")  # past the watch on what the program reads
    if type(held.get("_parameters")) not in _TABLES:  # of what torch.jit has compiled nobody puts others there
        return []
    found = [(name, id(value)) for name, value in held["_parameters"].items()]
    return found + [(name, id(value)) for name, value in held["_buffers"].items()] if held["_buffers"] else found


_TABLES = frozenset({dict, OrderedDict})
_NO_TENSORS = frozenset({*SIMPLE, dict, set, OrderedDict, list, tuple})


def _sets_nothing_itself(module: torch.nn.Module) -> bool:
    """Whether a call of a module surely sets none of its plain attributes: one of torch's own, without hooks."""
    has_hooks = module._forward_hooks or module._forward_pre_hooks
    return type(module).__module__.startswith("torch.nn.modules.") and not has_hooks


def watch_classes(state: State, own: set[type], named: Iterable[type], is_stored: Callable[[str], bool]) -> None:
    """Remember the plain values and containers that users' classes hold; of those that are merely named, what the
    program sets somewhere, or can change in place."""
    found: list[tuple[type, str, Any]] = []
    for kind in {*own, *named}:
        if kind.__module__.partition(".")[0] not in ("torch", "builtins", "functools", "types"):
            held = _held_by_class(kind)
            state.watch_class(kind, held.names)
            found += held.containers
            found += held.plain if kind in own else [one for one in held.plain if is_stored(one[1])]
    state.watch_variables(found)


class _Held(NamedTuple):
    """What a class holds: everything, the names of that, and what of it are containers and plain values."""

    values: list[Any]
    names: frozenset[str]
    containers: list[tuple[type, str, Any]]
    plain: list[tuple[type, str, Any]]


_METHODS = frozenset({FunctionType, property, classmethod, staticmethod})
_classes: dict[type, _Held] = {}
_MOST_CLASSES = 1024


def _held_by_class(kind: type) -> _Held:
    """What a class holds besides methods; found once, as long as it holds the very same."""
    held, known = vars(kind), _classes.get(kind)
    if known is not None and held.keys() == known.names and all(map(operator.is_, held.values(), known.values)):
        return known
    if len(_classes) >= _MOST_CLASSES:
        _classes.clear()
    values = [(kind, name, one) for name, one in held.items() if type(one) not in _METHODS and name[:2] != "__"]
    plain = [one for one in values if type(one[2]) in SIMPLE]
    containers = [one for one in values if follows(one[2]) and not callable(one[2])]
    known = _classes[kind] = _Held([*held.values()], frozenset(held), containers, plain)
    return known


def watch_modules_around(state: State, parts: Iterable[torch.nn.Module], ends: Iterable[Any]) -> list[torch.nn.Module]:
    """Remember the attributes and buffers of modules among ``ends``, which the program reaches, that are no known
    ``parts``; these modules come out."""
    known = dict.fromkeys(parts)
    first = len(known)
    for module in [found for found in ends if isinstance(found, torch.nn.Module)]:
        for part in module.modules():
            if part not in known:
                known[part] = None
                if isinstance(part, torch.jit.ScriptModule):
                    state.watch(part, CompiledAttributes(part), is_inner=True)
                    continue
                state.watch(part, vars(part), skip=_BESIDE_MODE)
                for holder in (part._buffers, part._parameters, part._modules):
                    state.watch(None, holder)
    return [*known][first:]


class ModulesAround:
    """What modules around a program were when it was captured: their parts, classes, modes and hooks, and the settings
    of torch's own layers. What the program itself changes is left out: ``lifted`` holds the keys of those places.
    ``names`` are those of attributes that code names: no part may get one of its own where its class has one."""

    def __init__(
        self, module: torch.nn.Module, lifted: Collection[tuple[int, str]], names: frozenset[str] = frozenset()
    ) -> None:
        self._lifted = lifted
        self._names = names
        self._kept: list[tuple[Any, Any, Any]] = []
        self._parts = list(module.modules())
        self._holders = [vars(part) for part in self._parts]
        self._kinds = [*map(type, self._parts)]
        self._methods = [(kind, getattr(kind, "forward", None)) for kind in dict.fromkeys(self._kinds)]
        self._hooks = shared_hooks()
        for part in self._parts:
            self._hooks += hook_tables(part)
            children, parts = part._modules, list(part._modules.keys())
            if not any((id(children), name) in lifted for name in parts):
                self._kept.append((children, _items, _items(children)))
            else:
                self._keep(children, [name for name in parts if (id(children), name) not in lifted])
            settings = [MODE]
            if isinstance(part, torch.jit.ScriptModule):
                self._keep(CompiledAttributes(part), settings)
                continue
            if type(part).__module__.startswith("torch."):
                settings += [name for name, value in vars(part).items() if name not in OWN and type(value) in _SETTINGS]
            self._keep(vars(part), [name for name in settings if (id(part), name) not in lifted])
        self._free = [
            names & names_of_class(kind) - held.keys() for kind, held in zip(self._kinds, self._holders, strict=True)
        ]
        self._sizes = [*map(len, self._holders)]
        self._around = self._now()
        self._forwards = self._around[: len(self._holders)]
        self._hooked = self._functions()

    def _keep(self, holder: Any, names: list[str]) -> None:
        if names:
            read = operator.itemgetter(*names)
            self._kept.append((holder, read, read(holder)))

    def _now(self) -> list[Any]:
        """The hooks, and the methods that stand for those of a class."""
        own = map(operator.methodcaller("get", "forward"), self._holders)
        return [*own, *chain.from_iterable(self._hooks)]

    def _functions(self) -> list[list[Any]]:
        return [
            [FunctionFingerprint(hook, follows_owner=False).fingerprint for hook in table.values()]
            for table in self._hooks
        ]

    def _are_alike(self) -> bool:
        """Whether hooks and methods are unchanged, or hooks that do the same."""
        now = self._now()
        if now != self._around:
            if now[: len(self._holders)] != self._forwards or self._functions() != self._hooked:
                return False
            self._around = now
        return True

    def _shadow_nothing(self) -> bool:
        """Whether no part has got an attribute that stands before one of its class."""
        sizes = [*map(len, self._holders)]
        if sizes != self._sizes:
            if not all(free.isdisjoint(held) for free, held in zip(self._free, self._holders, strict=True)):
                return False
            self._sizes = sizes
        return True

    def is_as_before(self) -> bool:
        """Whether all of it is unchanged."""
        try:
            same = all(read(holder) == before for holder, read, before in self._kept) and self._are_alike()
        except KeyError:  # one of them is gone
            return False
        same = same and self._shadow_nothing() and all(map(operator.is_, map(vars, self._parts), self._holders))
        same = same and all(map(operator.is_, map(type, self._parts), self._kinds))
        return same and all(getattr(kind, "forward", None) is method for kind, method in self._methods)

    def __deepcopy__(self, memo: dict[int, Any]) -> ModulesAround:
        """A copy of a function uses the same modules; where these have been copied, their copies are meant."""
        module = memo.get(id(self._parts[0])) if self._parts else None
        if module is None:
            return self
        copies = {key: id(memo[key]) for key, _ in self._lifted if key in memo}
        lifted = {(copies[key], name) for key, name in self._lifted if key in copies}
        return ModulesAround(module, lifted, self._names)

    def __repr__(self) -> str:
        return "modules as they were"


def _items(modules: dict[str, Any]) -> list[Any]:
    return [*modules.keys(), *modules.values()]


_SETTINGS = frozenset({*SIMPLE, tuple})


@pure
def are_as_they_were(modules: ModulesAround) -> bool:
    """Whether modules around a program are unchanged."""
    return modules.is_as_before()


are_as_they_were.comes_first = True  # type: ignore[attr-defined]


_MOST_FUNCTIONS = 64


class ClosedOver(torch.nn.Module):
    """The modules of a function, by the names of the variables that hold them."""

    def __init__(self, modules: dict[str, torch.nn.Module]) -> None:
        super().__init__()
        self._modules.update(modules)

    @property
    def variables_of_function(self) -> tuple[str, ...]:
        """The names of the variables, by which code for people calls the modules."""
        return tuple(self._modules)

    def __deepcopy__(self, memo: dict[int, Any]) -> ClosedOver:
        return self  # a copy of a function is the function, too


def closed_over(fn: Any) -> ClosedOver | None:
    """The root of the capture of a function that names modules; None if it names none."""
    found: dict[str, torch.nn.Module] = {}
    for name, value in _variables(fn):
        if isinstance(value, torch.nn.Module) and not any(value is known for known in found.values()):
            found.setdefault(_free_name(name, found), value)
    return ClosedOver(found) if found else None


def _free_name(name: str, taken: dict[str, Any]) -> str:
    """A name for a part: that of the variable, unless a module has an attribute of that name, or another part."""
    while name in taken or hasattr(torch.nn.Module, name) or name in ("training", "self") or keyword.iskeyword(name):
        name += "_"
    return name


def _variables(fn: Any) -> Iterator[tuple[str, Any]]:
    """The variables that a function, and other functions of the user's that it names, close over or name."""
    waiting = [function for part in behind(fn) for function in functions_of(part)]
    seen: set[FunctionType] = set()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        function = waiting.pop()
        if function in seen or is_installed(function.__code__):
            continue
        seen.add(function)
        held = [*_cells(function), *_globals(function)]
        yield from held
        waiting += [value for _, value in held if type(value) is FunctionType]


def _cells(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it is not filled yet
            continue


def _globals(function: FunctionType) -> Iterator[tuple[str, Any]]:
    around = function.__globals__
    return ((name, around[name]) for name in global_names(function.__code__) if name in around)
