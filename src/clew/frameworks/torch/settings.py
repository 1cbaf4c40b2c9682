"""Settings of torch for the whole process, and facts of the machine: ``cudnn.benchmark``, the number of threads, GPUs.

What the program's own code asks of them is guarded; libraries ask to choose among ways to compute the same, and are let
be. What switches for all that follows, after the program too, is refused: a graph would not, and the capture would have
left it switched. Always holds: ``set_default_dtype`` alone is a call of the graph, and taken back after the capture.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import backends
from torch.distributions import Distribution

from clew.capture.patches import Patches
from clew.capture.python import settings as python_settings
from clew.capture.python import system
from clew.capture.recording.opaque_calls import CannotFollow
from clew.errors import CaptureError
from clew.frameworks.torch.refusals import where

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"

_SWITCHES = (
    "set_default_",
    "set_autocast_",
    "set_deterministic_",
    "use_deterministic_",
    "set_float32_",
    "set_num_",
    "set_flush_denormal",
    "set_warn_always",
    "set_printoptions",
)
"""Functions that switch for all that follows, after the program too."""
_BACKENDS = (
    "_set_sdp_",
    "_set_math_sdp_",
    "_set_mkldnn_",
    "_set_onednn_",
    "_set_nnpack_",
    "_set_qengine",
    "_set_fp32_",
    "_set_cudnn_",
    "_set_cublas_",
    "_set_blas_",
    "_set_linalg_",
)
"""How the switches begin that choose among ways to compute the same, not in the last digits."""
_QUESTIONS = {
    torch: (
        "get_num_threads",
        "get_num_interop_threads",
        "get_float32_matmul_precision",
        "are_deterministic_algorithms_enabled",
        "get_deterministic_debug_mode",
        "is_deterministic_algorithms_warn_only_enabled",
        "is_warn_always_enabled",
        "is_anomaly_enabled",
        "is_anomaly_check_nan_enabled",
    ),
    torch.__future__: ("get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion"),
    backends.mha: ("get_fastpath_enabled",),
    torch.cuda: ("is_available", "device_count"),
    torch.distributed: ("is_initialized", "get_rank", "get_world_size"),
    backends.mps: ("is_available",),
    backends.cuda: ("flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled", "cudnn_sdp_enabled"),
}
"""What programs ask torch of this process and this machine, without arguments."""


def _property_paths() -> Iterator[tuple[Any, str]]:
    """The settings that are attributes of modules below ``torch.backends``, with their full names."""
    for module in vars(backends).values():
        if isinstance(module, ModuleType):
            kept = [(name, value) for name, value in vars(type(module)).items() if type(value) is backends.ContextProp]
            yield from ((value, f"{module.__name__}.{name}") for name, value in kept)


_FILLING = "torch.utils.deterministic.fill_uninitialized_memory"
_PROPERTIES = {id(prop): path for prop, path in _property_paths()}


def _setting(path: str) -> Any:
    return functools.reduce(getattr, path.split(".")[1:], torch)


system.FACTS.update({path: functools.partial(_setting, path) for path in (*_PROPERTIES.values(), _FILLING)})


def install(patches: Patches, current: Current) -> None:
    """Let questions about settings report to the listener, and refuse what switches them."""
    patches.in_dict(vars(torch), "set_default_dtype", lambda original: _switching(original, current))
    for holder, name in _switches():
        patches.in_dict(vars(holder), name, lambda original: refusing_call(original, current))
    patches.on_method(backends.ContextProp, "__set__", lambda original: _refusing_assignment(original, current))
    patches.on_method(backends.ContextProp, "__get__", _reading)
    patches.on_method(type(torch.utils.deterministic), "fill_uninitialized_memory", _reading_property)
    system.install_questions(patches, _QUESTIONS)
    python_settings.compare_calls(patches, torch.autograd, _ANOMALIES)
    python_settings.refuse_calls(
        patches, torch.serialization, dict.fromkeys(_OF_FILES, "a change of how files are read")
    )
    patches.on_class(Distribution, "set_default_validate_args", _comparing_checks)


_ANOMALIES = python_settings.Compared(
    "a change of whether gradients are looked at for anomalies",
    ("set_detect_anomaly",),
    lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
    lambda kept: torch.set_anomaly_enabled(*kept),
)
_CHECKS = python_settings.Compared(
    "a change of whether distributions check their arguments",
    ("set_default_validate_args",),
    lambda: Distribution._validate_args,
    Distribution.set_default_validate_args,
)
_READ = "a change of how files are read"
_OF_FILES = ("add_safe_globals", "clear_safe_globals", "set_default_load_endianness", "set_default_mmap_options",
             "register_package")  # fmt: skip


def _comparing_checks(original: Any) -> Any:
    return staticmethod(python_settings.changing(original.__func__, _CHECKS))


def _switches() -> Iterator[tuple[Any, str]]:
    """The functions that switch, and where they are found."""
    yield from ((torch, name) for name in vars(torch) if name.startswith(_SWITCHES) and name != "set_default_dtype")
    yield from ((torch._C, name) for name in vars(torch._C) if name.startswith(_BACKENDS))


def _switching(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """``set_default_dtype`` is a call of the graph, and taken back after the capture."""

    @functools.wraps(original)
    def switch(d: Any) -> None:
        recorder = current()
        if recorder is not None:
            recorder.create(original, (recorder.argument(d),))
            d = recorder.concrete(d)
        original(d)

    return switch


def refusing_call(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    """The same function, refused while a program is recorded."""

    @functools.wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return original(*args, **kwargs)
        kind = CaptureError if original.__name__.startswith(_SWITCHES) else CannotFollow
        raise _hidden(original.__name__, kind)

    return refuse


def _refusing_assignment(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def __set__(self: Any, obj: Any, value: Any) -> None:
        if current() is not None:
            raise _hidden(f"setting {_PROPERTIES.get(id(self), 'torch')}", CannotFollow)
        original(self, obj, value)

    return __set__


def _hidden(what: str, kind: type[CaptureError]) -> CaptureError:
    fix = 'keep the function that calls it as one call: clew.wrap("its_name") at module level'
    why = "what it does is hidden from the capture"
    return kind(f"{what} inside the program cannot be captured yet", where=where(), why=why, fixes=(fix,))


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    def __get__(self: Any, obj: Any, objtype: Any) -> Any:
        path = _PROPERTIES.get(id(self))
        if path is not None:
            system.note_fact(path, f"{path} ==", sys._getframe(2))  # the first frame is that of the method itself
        return original(self, obj, objtype)

    return __get__


def _reading_property(original: property) -> property:
    def get(self: Any) -> Any:
        system.note_fact(_FILLING, f"{_FILLING} ==", sys._getframe(1))
        return original.__get__(self)

    return property(get, original.fset)
