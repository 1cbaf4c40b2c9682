"""The state of a module shared with a module made from it: whatever the one has, the other has too.

A graph module takes over only what its graph refers to, and makes tensors that are no parameters into buffers. Here
the rest follows: parts that the graph does not use, the order and kind of registration, plain attributes, notes and
hooks. Nothing is copied but the registers themselves; empty modules that only hold a path stay separate.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.runtime.parts import HOLDERS

_FRESH = frozenset(vars(torch.nn.Module()))
_HOOKS = tuple(name for name in _FRESH if "hooks" in name)
# What a graph module keeps for itself, ours or torch's.
_OWN = frozenset({"_graph", "_code", "_python_code", "_in_spec", "_out_spec", "_tracer_cls", "_tracer_extras", "meta"})


def share_rest(source: torch.nn.Module, target: torch.nn.Module) -> None:
    """Give ``target``, made from ``source``, everything that it did not take over."""
    share_registers(source, target)
    target.training = source.training
    for name in _HOOKS:
        getattr(target, name).update(getattr(source, name))
    target.meta = dict(getattr(source, "meta", {}))  # type: ignore[assignment]
    for name, value in vars(source).items():
        if name not in _FRESH and name not in _OWN and not name.startswith("_"):
            target.__dict__[name] = value


def share_registers(source: torch.nn.Module, target: torch.nn.Module) -> None:
    """Register parameters, buffers and submodules in ``target`` as they are in ``source``, in the same order."""
    for register in ("_parameters", "_buffers"):
        theirs = getattr(source, register)
        mine = {name: value for name, value in getattr(target, register).items() if name not in theirs}
        _replace(getattr(target, register), {**theirs, **mine})
    _unregister_plain_tensors(source, target)
    target._non_persistent_buffers_set = set(source._non_persistent_buffers_set)
    children = {name: _shared_child(child, target._modules.get(name)) for name, child in source._modules.items()}
    extra = {name: child for name, child in target._modules.items() if name not in children}
    _replace(target._modules, {**children, **extra})


def _replace(register: dict[str, Any], content: dict[str, Any]) -> None:
    register.clear()
    register.update(content)


def _unregister_plain_tensors(source: torch.nn.Module, target: torch.nn.Module) -> None:
    """A tensor that is a plain attribute of the source stays one."""
    for name in [name for name in target._buffers if name in vars(source)]:
        target.__dict__[name] = target._buffers.pop(name)


def _shared_child(child: Any, mine: Any) -> Any:
    """The child itself; where it only holds a path, a module of its own that holds the same."""
    if child is None or type(child) not in HOLDERS:
        return child
    if mine is None or mine is child:
        mine = torch.nn.Module()
    share_registers(child, mine)
    mine.__dict__.update({name: value for name, value in vars(child).items() if name not in _FRESH})
    return mine
