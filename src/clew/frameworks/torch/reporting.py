"""What torch's own classes report to a capture besides calls: functions that are compiled, or have a gradient of their
own, hashes of tensors, attributes of modules that are set.

Each is replaced in its class for the time of a capture, and is the original for all who are not recording.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from clew.capture.symbolic.patches import Patches
from clew.frameworks.torch import functions
from clew.ir.arguments import leaves

Current = Callable[[], Any]


def install(patches: Patches, current: Current) -> None:
    """Let all of it report to the capture that ``current`` names, if one is recording."""
    patches.on_method(torch.nn.Module, "__setattr__", functools.partial(_set, current=current))
    patches.on_method(torch.Tensor, "__hash__", functools.partial(_hash, current=current))
    patches.on_class(torch.autograd.Function, "apply", functools.partial(_apply, current=current))
    patches.on_class(torch.jit.ScriptFunction, "__call__", functools.partial(_script, current=current))


def _script(original: Any, current: Current) -> Any:
    """A function compiled by torch.jit stays one call."""

    def __call__(function: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        call = original.__get__(function, type(function))
        if recorder is None:
            return call(*args, **kwargs)
        why = "it is compiled by torch.jit"
        return recorder.whole("call_function", function, call, args, kwargs, leaves((args, kwargs)), why)

    return __call__


def _apply(original: Any, current: Current) -> Any:
    """``Function.apply`` may stay one call."""

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        function = original.__get__(None, cls)
        if recorder is None:
            return function(*args, **kwargs)
        return functions.apply(recorder, cls, function, args, kwargs)

    return classmethod(apply)


def _hash(original: Callable[[Any], int], current: Current) -> Callable[[Any], int]:
    """A tensor is asked for its hash: the program may put it into a set, which tells objects apart."""

    def __hash__(tensor: Any) -> int:
        recorder = current()
        if recorder is not None and recorder.running and not recorder.hashed:
            frame: Any = sys._getframe(1)
            if frame.f_code.co_name == "__hash__":  # the method itself, which leads here
                frame = frame.f_back
            home = frame.f_globals.get("__name__", "")
            recorder.hashed = home.partition(".")[0] not in ("torch", "clew", "weakref")
        return original(tensor)

    return __hash__


def _set(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """The program sets an attribute of a module, its mode say: from then on its inside is followed."""

    def __setattr__(module: Any, name: str, value: Any) -> None:
        recorder = current()
        if recorder is not None and recorder.running:
            recorder.touched.add(id(module))
        original(module, name, value)

    return __setattr__
