"""The pipeline in one screen: read this first.

    callable -> capture -> Graph -> passes -> codegen -> callable

``symbolic_trace`` is the whole of it for symbolic capture: a tracer runs the program on proxies, what they record is
the graph, and the graph becomes a callable whose code is generated when it is first needed and follows every edit.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Iterable
from typing import Any

from clew.capture.symbolic import Tracer
from clew.errors import CaptureError
from clew.runtime.choose import framework_of, make_callable, make_captured
from clew.runtime.example import Example
from clew.runtime.lazy import LazyGraph


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """Capture a module or function without an example input.

    ``concrete_args`` fixes arguments by name (nests of them too, with ``PH`` where something stays an input), which
    makes control flow on them static. The result computes what ``root`` computes; its ``graph`` can be read and edited.
    """
    tracer = Tracer()
    try:
        graph = tracer.trace(root, concrete_args)
        is_module = tracer.root is root
        name = type(root).__name__ if is_module else getattr(root, "__name__", type(root).__name__)
        return make_callable(tracer.root, graph, name)
    finally:
        if tracer.root is root:
            tracer.clear_root()


def trace(
    fn: Any = None,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    leaves: Any = None,
    static: Iterable[str] = (),
    limit: int = 16,
    include_generators: bool = True,
    array_caching: bool = True,
    opaque: str = "call",
    control_flow: str = "capture",
    dynamic: bool = False,
) -> Any:
    """Capture a program from an example: it is run once on ``args`` and ``kwargs``, and what it does is recorded.

    The graph holds for other inputs as far as the program does not rely on the example's shapes or values; what it
    relied on is guarded. Without an example the result is a ``LazyGraph``, which captures when it is called; also a
    decorator.
    ``leaves`` says which modules stay calls: torch.nn's own by default; "none", classes, a path pattern or a predicate
    ``(module, path) -> bool`` otherwise. ``static`` names number arguments that are constants of the capture. A lazy
    graph makes at most ``limit`` captures. Random numbers are drawn anew at each call, or with
    ``include_generators=False`` once and for all, where they depend on no input. With ``array_caching`` what depends on
    constants alone is computed in the capture. Functions that the capture cannot look into (wrapped ones, those with a
    backward of their own, compiled ones) stay calls; ``opaque="error"`` refuses them. Branches and loops on data are
    captured; with ``control_flow="guard"`` the graph relies on the way of the example, with ``"error"`` there are none.
    With ``dynamic`` conditions on sizes and on number arguments are captured too, and loops over them stay loops.
    """
    if fn is None:
        return functools.partial(
            trace,
            args=args,
            kwargs=kwargs,
            leaves=leaves,
            static=static,
            limit=limit,
            include_generators=include_generators,
            array_caching=array_caching,
            opaque=opaque,
            control_flow=control_flow,
            dynamic=dynamic,
        )
    options: dict[str, Any] = {"static": frozenset(static), "leaves": leaves, "opaque": opaque}
    options |= {"control_flow": control_flow, "dynamic": dynamic}
    options |= {"include_generators": include_generators, "array_caching": array_caching}
    if args is None and kwargs is None:
        return LazyGraph(fn, lambda f, a, k, again: _capture_again(f, a, k, again, **options), limit)
    return _capture(fn, tuple(args or ()), dict(kwargs or {}), keep=False, **options)[0]


def _capture_again(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], again: bool, **options: Any) -> Any:
    """A capture for a lazy graph: from the second one on sizes are free, where that can be."""
    if again and not options["dynamic"] and options["control_flow"] == "capture":
        with contextlib.suppress(CaptureError):
            return _capture(fn, args, kwargs, keep=True, **(options | {"dynamic": True}))
    return _capture(fn, args, kwargs, keep=True, **options)


def _capture(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool, **options: Any) -> tuple[Any, ...]:
    """The captured callable, the result of the run that was captured, and the attributes that it relied on."""
    framework = framework_of(fn, args, kwargs)
    captured = framework.capture(fn, args, kwargs, keep=keep, **options)
    name = getattr(fn, "__name__", type(fn).__name__)
    made = make_captured(framework.package, captured, name, live=keep or inspect.ismethod(fn))
    vars(made)["_example"] = Example(args, kwargs)
    result = made(*args, **kwargs) if keep and captured.several_ways else captured.result
    return made, result, captured.pins
