"""Modes of torch that a traced program switches: gradients on or off, inference mode, autocast.

Entering and leaving become nodes, so that the graph computes under the same modes as the program. What was on before
is asked when the graph runs, so that a region ends in the mode of the caller, whichever that is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.amp import autocast_mode
from torch.autograd import grad_mode

_HOME = grad_mode.__file__
_ENTER_INFERENCE = grad_mode._enter_inference_mode
_EXIT_INFERENCE = grad_mode._exit_inference_mode


class Regions:
    """The regions that one trace is in."""

    def __init__(self, tracer: Any) -> None:
        self.tracer = tracer
        self._before: list[Any] = []
        self._switch: Any = None
        self._entered: dict[int, Any] = {}

    def set_grad_enabled(self, mode: bool) -> Any:
        """Record a switch of gradients, and make it."""
        place, switch = _switch_of_gradients()
        if place == "__exit__" and self._before:
            before = self._before.pop()
            self.tracer.create_proxy("call_method", "__exit__", (before, None, None, None), {})
        elif place != "__enter__" or switch is not self._switch:
            self._before.append(self._record(torch.set_grad_enabled, mode))
        self._switch = switch
        return torch._C._set_grad_enabled(mode)

    def enter(self, region: Any, function: Callable[..., Any], *options: Any) -> None:
        """Record that ``region`` was entered, by a call whose result is needed to leave it."""
        self._entered[id(region)] = self._record(function, *options)

    def leave(self, region: Any, function: Callable[..., Any]) -> None:
        """Record that ``region`` was left."""
        entered = self._entered.pop(id(region), None)
        if entered is not None:
            self._record(function, entered)

    def _record(self, function: Callable[..., Any], *args: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, args, {})


def _switch_of_gradients() -> tuple[str, Any]:
    """The method of torch's context managers that switches gradients now, and the manager; ``__exit__`` if one is left.

    ``set_grad_enabled`` switches when it is made, and again when it is entered: that is one region, of one manager.
    """
    frame = sys._getframe(3)
    place, switch = frame.f_code.co_name, frame.f_locals.get("self")
    while frame is not None and frame.f_code.co_filename == _HOME:
        if frame.f_code.co_name == "__exit__":
            return "__exit__", None
        frame = frame.f_back  # type: ignore[assignment]
    return place, switch


def _enters_autocast(region: Any) -> tuple[Any, ...]:
    options = (region.device, region.fast_dtype, region._enabled, region._cache_enabled)
    return autocast_mode._enter_autocast, *options


def _enters_inference(region: Any) -> tuple[Any, ...]:
    return _ENTER_INFERENCE, region.mode


def install(patches: Any, regions_of: Callable[[], Regions | None]) -> None:
    """Let context managers that no function mode sees report; ``regions_of`` gives those of the current trace."""
    for manager, enters, leaves in (
        (torch.amp.autocast, _enters_autocast, autocast_mode._exit_autocast),
        (torch.inference_mode, _enters_inference, _EXIT_INFERENCE),
    ):
        patches.on_class(manager, "__enter__", _reporting_enter(enters, regions_of))
        patches.on_class(manager, "__exit__", _reporting_exit(leaves, regions_of))
    patches.in_dict(vars(grad_mode), _ENTER_INFERENCE.__name__, _reporting_start(regions_of))
    patches.in_dict(vars(grad_mode), _EXIT_INFERENCE.__name__, _reporting_exit(_EXIT_INFERENCE, regions_of))


def _reporting_enter(enters: Callable[[Any], tuple[Any, ...]], regions_of: Callable[[], Regions | None]) -> Any:
    def make(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def __enter__(region: Any) -> Any:
            regions = regions_of()
            if regions is not None:
                regions.enter(region, *enters(region))
            return original(region)

        return __enter__

    return make


def _reporting_start(regions_of: Callable[[], Regions | None]) -> Any:
    """For the function by which generated code enters inference mode, so that it can be traced again."""

    def make(original: Callable[[bool], Any]) -> Callable[[bool], Any]:
        def start(mode: bool) -> Any:
            region = original(mode)
            regions = regions_of()
            if regions is not None:
                regions.enter(region, original, mode)
            return region

        return start

    return make


def _reporting_exit(leaves: Callable[..., Any], regions_of: Callable[[], Regions | None]) -> Any:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def __exit__(region: Any, *error: Any) -> Any:
            regions = regions_of()
            if regions is not None:
                regions.leave(region, leaves)
            return original(region, *error)

        return __exit__

    return make
