"""Modules whose class has a ``train`` of its own, which leaves a norm in evaluation, say: captured, they do the same.

The original comes in; a twin of it, made of the same tensors, is switched both ways. Out come the parts that are not in
the mode that was asked for then. A captured module, which has no such method, puts these into the other mode after all
have been switched.
"""

from __future__ import annotations

from typing import Any

import torch

from clew.errors import CaptureError

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
    modes = [(vars(part), part.training) for part in original.modules()]  # which its code may reach past the twin
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
    if part not in made:
        twin = made[part] = object.__new__(type(part))
        vars(twin).update(vars(part))
        for name in ("_parameters", "_buffers"):
            vars(twin)[name] = dict(vars(part)[name])
        parts = vars(part)["_modules"].items()
        vars(twin)["_modules"] = {name: None if child is None else _twin(child, made) for name, child in parts}
    return made[part]
