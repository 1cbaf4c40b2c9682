"""Methods of torch's classes that report to a capture for its time: functions compiled by torch.jit, custom autograd
functions, and the hash of a tensor.

Each takes the original method and a function that names the recorder of the capture under way; if there is none, the
original is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from clew.frameworks.torch import functions
from clew.ir.arguments import leaves

Current = Callable[[], Any]


def scripting(original: Any, current: Current) -> Any:
    """A function compiled by torch.jit stays one call."""

    def __call__(function: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        call = original.__get__(function, type(function))
        if recorder is None:
            return call(*args, **kwargs)
        why = "it is compiled by torch.jit"
        return recorder.whole("call_function", function, call, args, kwargs, leaves((args, kwargs)), why)

    return __call__


def applying(original: Any, current: Current) -> Any:
    """``Function.apply`` may stay one call."""

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = current()
        function = original.__get__(None, cls)
        if recorder is None:
            return function(*args, **kwargs)
        return functions.apply(recorder, cls, function, args, kwargs)

    return classmethod(apply)


def hashing(original: Callable[[Any], int], current: Current) -> Callable[[Any], int]:
    """A tensor is asked for its hash: the program may put it into a set, which tells objects apart."""

    def __hash__(tensor: Any) -> int:
        recorder = current()
        if recorder is not None and recorder.running and not recorder.hashed:
            home = sys._getframe(1).f_globals.get("__name__", "")
            recorder.hashed = home.partition(".")[0] not in ("torch", "clew", "weakref")
        return original(tensor)

    return __hash__
