"""The tools that are measured beside Clew: how each captures a program, and the callable that it gives.

A function of this file takes a program and its arguments and gives a callable. What a tool needs reset before each
capture is in ``resets``. Dynamo captures at the first call, so its functions make that call.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

import clew

Tool = Callable[[Callable[..., Any], tuple[Any, ...]], Any]


class Wrapped(torch.nn.Module):
    """A function as a module, for a tool that takes nothing else."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class Recorder(TorchFunctionMode):
    """The floor of a capture: it keeps every call with its result, and checks nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Any] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        self.calls.append((function, args, kwargs, result))
        return result


def with_eager(program: Any, args: tuple[Any, ...]) -> Any:
    """The call itself."""
    return program(*args)


def with_recorder(program: Any, args: tuple[Any, ...]) -> Any:
    """Record while executing, nothing more."""
    with Recorder() as recorder:
        program(*args)
    return recorder.calls


def with_clew(program: Any, args: tuple[Any, ...]) -> Any:
    """Clew from an example, the generated code included."""
    captured = clew.trace(program, args=args)
    captured.recompile()
    return captured


def with_clew_symbolic(program: Any, args: tuple[Any, ...]) -> Any:
    """Clew without an example, the generated code included."""
    captured = clew.symbolic_trace(program)
    captured.recompile()
    return captured


def with_jit_trace(program: Any, args: tuple[Any, ...]) -> Any:
    """torch.jit.trace without the runs that only check it."""
    return torch.jit.trace(program, args, check_trace=False, strict=False)


def with_jit_frozen(program: Any, args: tuple[Any, ...]) -> Any:
    """The same, with the parameters frozen into it."""
    if not isinstance(program, torch.nn.Module):
        program = Wrapped(program).eval()
    return torch.jit.freeze(with_jit_trace(program, args))


def with_fx(program: Any, args: tuple[Any, ...]) -> Any:
    """torch.fx, without an example."""
    return torch.fx.symbolic_trace(program)


def with_make_fx(program: Any, args: tuple[Any, ...]) -> Any:
    """make_fx, down to ATen."""
    return make_fx(program)(*args)


def with_export(program: Any, args: tuple[Any, ...]) -> Any:
    """torch.export, as a module that runs."""
    module = program if isinstance(program, torch.nn.Module) else Wrapped(program)
    return torch.export.export(module, args).module()


def with_dynamo(program: Any, args: tuple[Any, ...]) -> Any:
    """torch.compile with a back end that runs the graph as it is."""
    compiled = torch.compile(program, backend="eager")
    compiled(*args)
    return compiled


def with_inductor(program: Any, args: tuple[Any, ...]) -> Any:
    """torch.compile with its own back end, which needs a C++ compiler."""
    if shutil.which("c++") is None and shutil.which("g++") is None and shutil.which("clang++") is None:
        raise RuntimeError("no C++ compiler on this machine")
    compiled = torch.compile(program)
    compiled(*args)
    return compiled


def reset_dynamo() -> None:
    """Forget what Dynamo has compiled."""
    torch._dynamo.reset()


RESETS: dict[Tool, Callable[[], None]] = {with_dynamo: reset_dynamo, with_inductor: reset_dynamo}
"""What has to be forgotten before a tool captures a program again."""
