"""The modules inside of a captured module: those on the way to its parts, and how all are switched and saved.

``Part`` holds parts and is never called itself. What a user does to it as if it were the original would have no effect
on the graph (a hook, another ``forward``, another value of an attribute that the capture has read), and is refused. A
module whose class has a ``train`` of its own, which keeps a norm in evaluation, say, is switched as the original is.
Saved, a part that the graph neither calls nor reads needs no class of its own, so that a captured module loads where
the source of the original is not. Importing this file imports torch.
"""

from __future__ import annotations

import copy
import functools
import weakref
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from functools import partial
from types import MethodType
from typing import Any, NoReturn

import torch

from clew.capture.state.containers import CODE, SIMPLE, attributes_of
from clew.capture.state.reachable import attribute_names, methods_of
from clew.capture.state.surroundings import names_of_class
from clew.errors import CaptureError
from clew.frameworks.torch.modules.state import KEPT_BY_CLEW, OWN
from clew.ir.pickling import is_sure
from clew.runtime.fast.module_fingerprint import HOOKS

# ---- parts -----------------------------------------------------------------------------------------------------------

BAKED = "_baked"
_WALKED = "_walked"
"""Marks what stands for modules that are called one after the other, or walked through."""
_WALKED_CLASSES = (torch.nn.Sequential, torch.nn.ModuleList)


def _refuse(what: str) -> NoReturn:
    raise CaptureError(
        what,
        why="the graph holds what was inside of it during the capture, and would not notice",
        fixes=("do it to the original, and capture again", "keep the part as one call: leaves="),
    )


def check_assignment(part: torch.nn.Module, name: str) -> None:
    """Raise if an attribute is set that the original has, and of which the graph knows only the value."""
    if name in part.__dict__.get(BAKED, ()):
        _refuse(f"{name!r} is set in a captured module, whose graph has the value of the capture")


class _Table(dict[str, Any]):
    """A dict that is asked before something is put into it or taken out."""

    def __setitem__(self, name: str, value: Any) -> None:
        self._check(name, value)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        self._check(name, None)
        super().__delitem__(name)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Put in several things."""
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Put in what is not there."""
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str, *default: Any) -> Any:
        """Take something out."""
        if name in self:
            self._check(name, None)
        return super().pop(name, *default)

    def clear(self) -> None:
        """Take everything out."""
        for name in [*self]:
            del self[name]

    def _check(self, name: str, value: Any) -> None:
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class _Attributes(_Table):
    """What a captured module holds, into which nothing comes that the graph would not notice."""

    def _check(self, name: str, value: Any) -> None:
        if name in self.get(BAKED, ()):
            _refuse(f"{name!r} is set in a captured module, whose graph has the value of the capture")


class _AttributesOfPart(_Attributes):
    """What a part holds that the graph does not call."""

    def _check(self, name: str, value: Any) -> None:
        super()._check(name, value)
        if name == "forward":
            _refuse("a part of a captured module that the graph does not call gets another forward")


class _Modules(_Table):
    """The parts of a part: none takes the place of one whose inside is in the graph, nor comes to those, or leaves
    those, that the original walks through."""

    is_walked = False

    def _check(self, name: str, value: Any) -> None:
        known = self.get(name)
        if type(known) is CapturedPart and value is not known:
            _refuse(f"{name!r}, a part of a captured module that the graph does not call, is replaced")
        if self.is_walked and name.isdigit():
            if known is None:
                _refuse(f"a part {name!r} is added to modules that the program walks through")
            if value is None:
                _refuse("a part is taken away from modules that the program walks through")


class _NoHooks(OrderedDict[int, Any]):
    """The hooks of a part that the graph does not call."""

    def __setitem__(self, key: int, hook: Any) -> None:
        _refuse("a hook is put on a part of a captured module that the graph does not call")

    def __reduce__(self) -> Any:
        return OrderedDict, ()


class Part(torch.nn.Module):
    """Holds modules and tensors under the names that the original has for them; numbered ones by their numbers too, as
    a list of modules does, and named ones by their names, as a dict does."""

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self._listed()[place]
        if isinstance(place, str):
            return self._modules[place]
        found = self._modules.get(str(int(place)))
        return self._listed()[place] if found is None else found

    def __iter__(self) -> Iterator[torch.nn.Module]:
        return iter(self._listed())

    def __len__(self) -> int:
        return len(self._listed())

    def __bool__(self) -> bool:
        return True

    def _listed(self) -> list[torch.nn.Module]:
        """The numbered parts, in the order of their numbers."""
        numbers = sorted(int(name) for name in self._modules if name.isdigit())
        return [part for part in (self._modules[str(number)] for number in numbers) if part is not None]

    def _get_name(self) -> str:
        return "Module"


HOLDERS = frozenset({torch.nn.Module, Part})
"""Classes of modules that only hold others."""


class CapturedPart(Part):
    """Holds parts of a captured module."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "__class__":
            _refuse("a part of a captured module that the graph does not call gets another class")
        check_assignment(self, name)
        if name == "forward":
            _refuse("a part of a captured module that the graph does not call gets another forward")
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        protect(self)

    def __setitem__(self, place: int, module: torch.nn.Module) -> None:
        setattr(self, [*self._modules][place], module)

    def __delitem__(self, place: int) -> NoReturn:
        _refuse("a part is taken away from modules that the program walks through")

    def train(self, mode: bool = True) -> Any:
        """Switch this part, and those that the original would switch with it."""
        return switch_others(super().train(mode), mode)


def protect(part: torch.nn.Module) -> None:
    """Let a captured module, or a part of one, hold its parts and attributes in tables that refuse others where the
    graph would not notice them; a part also its hooks."""
    modules = part.__dict__["_modules"]
    if type(modules) is not _Modules:
        modules = part.__dict__["_modules"] = _Modules(modules)
    modules.is_walked = bool(part.__dict__.get(_WALKED))
    if isinstance(part.__dict__, _Attributes):
        return
    kind = _Attributes
    if type(part) is CapturedPart:
        kind = _AttributesOfPart
        part.__dict__.update({name: _NoHooks() for name in HOOKS})
    object.__setattr__(part, "__dict__", kind(part.__dict__))


def mark_parts(source: torch.nn.Module, module: torch.nn.Module, state: Iterable[str]) -> None:
    """Let a captured module, and the modules that merely hold its parts, refuse what would have no effect; the graph
    sets the attributes at the paths ``state`` itself."""
    written = set(state)
    waiting: list[tuple[str, torch.nn.Module, torch.nn.Module]] = [("", source, module)]
    while waiting:
        path, original, part = waiting.pop()
        kind: Any = type(original)
        note_others(original, part)
        if isinstance(original, _WALKED_CLASSES) or original.__dict__.get(_WALKED):
            part.__dict__[_WALKED] = True
        held = {*original.__dict__, *original.__dict__.get(BAKED, ()), *_methods_used(kind)}
        held = {name for name in held if path + name not in written}
        part.__dict__[BAKED] = held - OWN - KEPT_BY_CLEW - part.__dict__.keys() - _FORWARD
        for name, child in part._modules.items():
            twin = original._modules.get(name)
            if child is not None and type(child) in HOLDERS and twin is not None and twin is not child:
                object.__setattr__(child, "__class__", CapturedPart)
                waiting.append((f"{path}{name}.", twin, child))
        protect(part)


@functools.lru_cache(maxsize=1024)
def _methods_used(kind: type) -> frozenset[str]:
    """What a class holds that its ``forward`` names, or a method that this names."""
    methods, held = dict(methods_of(kind)), names_of_class(kind)
    found, waiting = {"forward"}, ["forward"]
    while waiting:
        names = {name for function in methods.get(waiting.pop(), ()) for name in attribute_names(function.__code__)}
        waiting += names & held - found
        found |= names & held
    return frozenset(found) - _FORWARD


def refuse_alike(captured: torch.nn.Module, part: torch.nn.Module) -> None:
    """Let what was cut out of a captured module refuse and switch as the modules of that do."""
    waiting = [(captured, part)]
    while waiting:
        known, twin = waiting.pop()
        vars(twin).update({key: vars(known)[key] for key in (BAKED, _SWITCHED, _WALKED) if key in vars(known)})
        for name, child in twin._modules.items():
            other = known._modules.get(name)
            if child is not None and type(child) in HOLDERS and other is not None and other is not child:
                object.__setattr__(child, "__class__", CapturedPart if type(other) is CapturedPart else type(child))
                waiting.append((other, child))
        if twin is part or type(twin) is CapturedPart:
            protect(twin)


# ---- what belongs to a module besides its parts ----------------------------------------------------------------------

OWNED = "_owned"
"""Of a captured module: the objects of its graph that the original holds, which a deep copy has for itself."""


def held_among(objects: Iterable[Any], module: torch.nn.Module) -> tuple[Any, ...]:
    """Those of some objects that a deep copy of a module would copy: optimizers, generators and arrays in its
    attributes, and not those that it finds in variables."""
    wanted = {id(one): one for one in objects if not isinstance(one, _NEVER_COPIED)}
    found, seen, waiting = [], set[int](), [vars(module)] if wanted else []
    while waiting and wanted:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, _NEVER_COPIED):
            continue
        seen.add(id(value))
        if id(value) in wanted:
            found.append(wanted.pop(id(value)))
        waiting += _copied_with(value)
    return tuple(found)


def _copied_with(value: Any) -> Iterable[Any]:
    """What is copied with a value."""
    if isinstance(value, MethodType):
        return (value.__self__,)
    if isinstance(value, partial):
        return (*value.args, *value.keywords.values())
    if isinstance(value, dict):  # past what a class of the user's makes of them
        return (*dict.keys(value), *dict.values(value), *getattr(value, "__dict__", {}).values())
    for kind in _ROWS:
        if isinstance(value, kind):
            return tuple(kind.__iter__(value))
    return () if isinstance(value, torch.Tensor) else attributes_of(value).values()


_ROWS: tuple[Any, ...] = (list, tuple, set, frozenset, deque)
_NEVER_COPIED = (*CODE, *SIMPLE, weakref.ref, torch.dtype, torch.device, torch.Size)


# ---- training modes that a class sets itself -------------------------------------------------------------------------

_SWITCHED = "_switched_otherwise"
Others = dict[bool, tuple[str, ...]]


def note_others(original: torch.nn.Module, part: torch.nn.Module) -> None:
    """Note on what stands for a module in a capture which parts its class switches otherwise."""
    kind: Any = type(original)
    if kind.train is torch.nn.Module.train and kind.eval is torch.nn.Module.eval:
        return
    found = {mode: _others(original, mode) for mode in (True, False)}
    if any(others is None or others for others in found.values()):
        part.__dict__[_SWITCHED] = found


def switch_others(part: Any, mode: bool) -> Any:
    """After a module that stands for another was switched: the parts that the other would have left alone."""
    others = part.__dict__.get(_SWITCHED, {}).get(bool(mode), ())
    if others is None:
        raise CaptureError(
            "a captured module is switched that cannot be: the original's own train() raised an error in the capture",
            fixes=("switch the parts one by one", "switch the original, and capture it again"),
        )
    for path in others:
        found: Any = part
        for name in path.split(".") if path else ():
            found = None if found is None else found._modules.get(name)
        if found is not None:
            found.training = not mode
    return part


def _others(original: torch.nn.Module, mode: bool) -> tuple[str, ...] | None:
    """The paths of the parts that are in the other mode after a module was switched to this one; None if it raises."""
    twin = _twin(original, {})
    parts = [part for part in original.modules() if not isinstance(part, torch.jit.ScriptModule)]
    modes = [(vars(part), part.training) for part in parts]  # which its code may reach past the twin
    flags = [(parameter, parameter.requires_grad) for parameter in original.parameters()]
    try:
        (twin.train if mode else twin.eval)()  # type: ignore[operator]
        return tuple(path for path, part in twin.named_modules() if part.training is not mode)
    except Exception:  # it is told when somebody switches the captured module
        return None
    finally:
        for holder, before in modes:
            if holder["training"] is not before:
                holder["training"] = before
        for parameter, flag in flags:
            if parameter.requires_grad is not flag:
                parameter.requires_grad_(flag)


def _twin(part: torch.nn.Module, made: dict[torch.nn.Module, torch.nn.Module]) -> torch.nn.Module:
    """A module of the same class with the same tensors and attributes, whose parts are such modules too."""
    if isinstance(part, torch.jit.ScriptModule):
        return torch.nn.Module()
    if part not in made:
        twin = made[part] = object.__new__(type(part))
        vars(twin).update(vars(part))
        for name in ("_parameters", "_buffers"):
            vars(twin)[name] = dict(vars(part)[name])
        parts = vars(part)["_modules"].items()
        vars(twin)["_modules"] = {name: None if child is None else _twin(child, made) for name, child in parts}
    return made[part]


# ---- saving ----------------------------------------------------------------------------------------------------------

_FORWARD = {"forward"}


_HELD = ("_parameters", "_buffers", "_non_persistent_buffers_set", "training")


def saved_parts(module: torch.nn.Module, paths: Iterable[str]) -> dict[str, Any]:
    """The children of a module under their names, as they are saved."""
    needed: set[int] = set()
    for path in paths:
        _need(module, path.split("."), needed)
    made: dict[int, Any] = {}
    return {name: _saved(child, needed, made) for name, child in module._modules.items()}


def _need(module: Any, names: list[str], needed: set[int]) -> None:
    """Note the part that a path leads to with all that is below it, or the one whose attribute it is."""
    for name in names:
        child = getattr(module, "_modules", {}).get(name)
        if child is None:
            needed.add(id(module))
            return
        module = child
    needed.update(map(id, module.modules()))


def _saved(part: Any, needed: set[int], made: dict[int, Any]) -> Any:
    if part is None or id(part) in made:
        return made.get(id(part))
    children = {name: _saved(child, needed, made) for name, child in part._modules.items()}
    is_own = type(part).__module__.partition(".")[0] in ("torch", "clew") and is_sure(type(part))
    if is_own or id(part) in needed:
        twin = part
        if any(child is not part._modules[name] for name, child in children.items()):
            twin = copy.copy(part)
            twin.__dict__["_modules"] = children
    else:
        twin = CapturedPart()
        twin.__dict__.update({key: part.__dict__[key] for key in _HELD}, _modules=children)
    made[id(part)] = twin
    return twin
