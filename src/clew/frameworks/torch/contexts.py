"""Modes that a captured program switches for a while: gradients, inference mode, autocast.

Making, entering and leaving such a context manager are nodes, so that the graph computes under the same modes as the
program; code generation writes them as ``with`` blocks. What was on before is found out when the graph runs, so that a
block ends in the mode of the caller, whichever that is. A decorator does nothing else than enter and leave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from clew.capture.example.islands import CannotFollow
from clew.capture.example.recorder import Scalar
from clew.capture.symbolic.patches import Patches
from clew.errors import CaptureError
from clew.frameworks.torch.refusals import refusal
from clew.ir.node import Node

Current = Callable[[], Any]

_MANAGERS = (torch.no_grad, torch.enable_grad, torch.set_grad_enabled, torch.inference_mode, torch.autocast)


def install(patches: Patches, current: Current) -> None:
    """Let the context managers of torch report to the capture that ``current`` names, if one is recording."""
    for kind in _MANAGERS:
        patches.on_class(kind, "__enter__", lambda original: _entering(original, current))
        patches.on_class(kind, "__exit__", lambda original: _leaving(original, current))
    patches.on_class(torch.autocast, "__init__", lambda original: _making(original, current))
    patches.on_class(torch.set_grad_enabled, "__init__", lambda original: _switching(original, current))
    patches.on_class(torch.set_grad_enabled, "__call__", lambda original: _decorating(original, current))


def _entering(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def __enter__(self: Any) -> Any:
        recorder = current()
        node = None if recorder is None else _manager(recorder, self)
        if node is None:
            return original(self)
        with recorder.paused():
            result = original(self)
        recorder._create("call_method", "__enter__", (node,), {}, never_fails=True)
        return result

    return __enter__


def _leaving(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def __exit__(self: Any, *error: Any) -> Any:
        recorder = current()
        try:
            entered = None if recorder is None else _entered(recorder, self)
        except CaptureError:
            with recorder.paused():  # the block ends all the same
                original(self, *error)
            raise
        if not entered:
            return original(self, *error)
        recorder._create("call_method", "__exit__", (entered.pop(), None, None, None), {}, never_fails=True)
        with recorder.paused():
            return original(self, *error)

    return __exit__


def _making(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """An ``autocast`` for a device or dtype that the program has read is made for the one that the graph reads."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        recorder = current()
        if recorder is None or type(self) is not torch.autocast:
            return original(self, *args, **kwargs)
        plain_args, plain_kwargs = recorder.concrete((args, kwargs))
        with recorder.paused():
            original(self, *plain_args, **plain_kwargs)
        if any(issubclass(type(value), Scalar) for value in (*args, *kwargs.values())):
            recorder.made_managers[id(self)] = (self, (recorder.argument(args), recorder.argument(kwargs)))

    return __init__


def _switching(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """``set_grad_enabled`` switches when it is made, and is often used without entering it."""

    def __init__(self: Any, mode: Any) -> None:
        recorder = current()
        if recorder is None:
            return original(self, mode)
        node = recorder._create("call_function", type(self), (recorder.argument(mode),), {}, never_fails=True)
        with recorder.paused():
            original(self, recorder.concrete(mode))
        recorder.managers[id(self)] = (self, [node])

    return __init__


def _decorating(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """Used as a decorator, ``set_grad_enabled`` first takes back what it switched when it was made."""

    def __call__(self: Any, function: Any) -> Any:
        recorder = current()
        made = None if recorder is None else _entered(recorder, self)
        if not made:
            return original(self, function)
        recorder._create("call_method", "__exit__", (made.pop(), None, None, None), {}, never_fails=True)
        with recorder.paused():
            return original(self, function)

    return __call__


def _entered(recorder: Any, manager: Any) -> list[Node]:
    """The nodes under which this run has made or entered a manager, the last one last.

    A block may be entered before a branch and left inside it: what the branch leaves is a value from outside of it.
    """
    _, found = recorder.managers.get(id(manager), (manager, []))
    if found and not recorder.bodies.is_open(found[-1].graph):
        raise refusal("a block that begins in one part of the program and ends in another", kind=CannotFollow)
    return found


def _manager(recorder: Any, manager: Any) -> Node | None:
    """The node of a manager that is about to be entered; None if only its single switches can be recorded."""
    entered = _entered(recorder, manager)
    if isinstance(manager, torch.set_grad_enabled):
        # One made outside of the program leaves to the mode of that time, which no new one would.
        return entered[-1] if entered else None
    if not entered:
        _, (args, kwargs) = recorder.made_managers.get(id(manager)) or (manager, _arguments(manager))
        node = recorder._create("call_function", type(manager), args, kwargs, never_fails=True)
    else:
        node = entered[-1]  # entered again before it was left, which is the same object
    recorder.managers[id(manager)] = (manager, [*entered, node])
    return node


def _arguments(manager: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments that make a context manager like this one."""
    if isinstance(manager, (torch.no_grad, torch.enable_grad)):
        return (), {}
    if isinstance(manager, torch.inference_mode):
        return (manager.mode,), {}
    options = {"dtype": manager.fast_dtype, "enabled": manager._enabled, "cache_enabled": manager._cache_enabled}
    return ((manager.device,), options) if type(manager) is torch.autocast else ((), options)
