"""The pipeline in one screen: read this first.

    callable -> capture -> Graph -> passes -> codegen -> callable

``symbolic_trace`` is the whole of it for symbolic capture: a tracer runs the program on proxies, what they record is
the graph, and the graph becomes a callable whose code is generated when it is first needed and follows every edit.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from clew.capture.captured import Example, Pins
from clew.capture.current_capture import LOCK, original_of
from clew.capture.interrupts import DeferredSignals
from clew.capture.options import Options, check_callable, given, stateful_objects, stateful_parts, static_names
from clew.capture.symbolic.tracer import Tracer
from clew.errors import CaptureError, a_or_an
from clew.ir.guests import Guest
from clew.runtime.choose import METHODS, capture_with, framework_of, make_callable, make_lazy, make_methods
from clew.runtime.fast.module_fingerprint import Fingerprint
from clew.runtime.framework_compilers import NativeFunction
from clew.runtime.lazy import copy_with

_TRANSLATION, _LAZY_TRANSLATION = "clew.translate.program", "clew.translate.lazy"
"""They wait until something is translated."""


def symbolic_trace(root: Any, concrete_args: Any = None) -> Any:
    """Capture a module or function without an example input.

    ``concrete_args`` fixes arguments by name (nests of them too, with ``PH`` where something stays an input), which
    makes control flow on them static. The result computes what ``root`` computes; its ``graph`` can be read and edited.
    """
    root = original_of(root)
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
    guards: str = "read",
    max_paths: int = 64,
) -> Any:
    """Capture a program from an example: it is run once on ``args`` and ``kwargs``, and what it does is recorded.

    The graph holds for other inputs as far as the program does not rely on the example's shapes or values; what it
    relied on is guarded. Without an example the result is a ``LazyGraph``, which captures when it is called; also a
    decorator.
    ``leaves`` says which modules stay calls: torch.nn's own by default; "none", a class, a path pattern, a predicate
    ``(module, path) -> bool``, or a list of these, in which None means those by default. ``static`` names number
    arguments that are constants of the capture. A lazy graph makes at most ``limit`` captures. Random numbers are drawn
    anew at each call, or with ``include_generators=False`` once and for all, where they depend on no input. With
    ``array_caching`` what depends on constants alone is computed in the capture. Functions that the capture cannot look
    into (wrapped ones, those with a backward of their own, compiled ones) stay calls; ``opaque="error"`` refuses them.
    Branches and loops on data are captured; with ``control_flow="guard"`` the graph relies on the way of the example,
    with ``"error"`` there are none.
    A line from which more than ``max_paths`` paths of the program follow is guarded, and a warning names it.
    With ``dynamic`` conditions on sizes and on number arguments are captured too, and loops over them stay loops, which
    those of PyTorch's programs do anyway. Of variables around the program the graph relies on what was read of them;
    with ``guards="all"`` on all that they hold, with ``"none"`` they are not looked at again.
    """
    if fn is None:
        return functools.partial(trace, **{key: value for key, value in locals().items() if key != "fn"})
    check_callable(fn)
    options = Options.of(
        leaves=leaves,
        static=static_names(fn, static),
        include_generators=include_generators,
        array_caching=array_caching,
        opaque=opaque,
        control_flow=control_flow,
        dynamic=dynamic,
        guards=guards,
        max_paths=max_paths,
    )
    if args is None and kwargs is None:
        return make_lazy(original_of(fn), functools.partial(_capture_again, options._replace(live=True)), limit)
    return _capture(fn, *given(args, kwargs), options)[0]


def _capture_again(
    options: Options, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], again: bool, keep: bool = True
) -> Any:
    """A capture for a lazy graph: from the second one on sizes are free, where that can be."""
    options = options._replace(keep=keep)
    if again and not options.dynamic and options.control_flow == "capture":
        with contextlib.suppress(CaptureError):
            return _capture(fn, args, kwargs, options._replace(dynamic=True))
    return _capture(fn, args, kwargs, options)


def trace_graph(
    *objs: Any,
    stateful: Sequence[Any] | None = None,
    arg_stateful_idxs: Sequence[Any] | None = None,
    kwarg_stateful_idxs: Sequence[Any] | None = None,
    to: str | None = None,
    include_generators: bool = True,
    array_caching: bool = True,
    return_backend_traced_fn: bool = False,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    args: tuple[Any, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    guards: str = "read",
) -> Any:
    """Capture callables in the words of ``ivy.trace_graph``: at once if ``args`` or ``kwargs`` are given, else lazily.

    Several objects give a tuple, no object a decorator, a Python module a copy whose functions trace themselves.
    Attributes of the objects that ``stateful`` lists, or that stand at these positions of the arguments (``[[0]]``,
    ``[["cache"]]``), are read and written by the graph. With ``to`` the result is a program of that framework (see
    ``translate``).
    ``return_backend_traced_fn`` puts the framework's own compiler on top: ``torch.compile``, ``jax.jit``,
    ``tf.function``. Arguments named by ``static_argnums`` or ``static_argnames`` are constants of the capture. What
    does not contribute to the result is not in the graph, even if it might raise for other inputs. The rest is as for
    ``trace``.
    """
    asked = {key: value for key, value in locals().items() if key != "objs"}
    if not objs:
        return functools.partial(trace_graph, **asked)
    if len(objs) > 1:
        return tuple(trace_graph(one, **asked) for one in objs)
    (fn,) = objs
    _check_wish(fn, to, args is not None or kwargs is not None)
    if isinstance(fn, ModuleType):
        return copy_with(fn, functools.partial(trace_graph, **asked))
    options = Options.of(
        static=static_names(fn, static_argnames, "static_argnames", static_argnums),
        include_generators=include_generators,
        array_caching=array_caching,
        guards=guards,
        keeps_unused=False,
        stateful=stateful_objects(stateful),
        live=args is None and kwargs is None,
    )

    wish = _Wish(options, arg_stateful_idxs, kwarg_stateful_idxs, to, return_backend_traced_fn)
    capture = functools.partial(_capture_graph, wish)
    if args is None and kwargs is None:
        source = framework_of(fn, (), {}, to).package
        if to is not None and to != source:
            here = functools.partial(_capture_graph, wish._replace(to=None, native=False))
            return importlib.import_module(_LAZY_TRANSLATION).LazyTranslation(original_of(fn), here, source, to)
        return make_lazy(original_of(fn), capture)
    return capture(fn, *given(args, kwargs), keep=False)[0]


class _Wish(NamedTuple):
    """What ``trace_graph`` was asked for: options, places of stateful arguments, the framework, its compiler on top."""

    options: Options
    in_args: Sequence[Any] | None
    in_kwargs: Sequence[Any] | None
    to: str | None
    native: bool


def _capture_graph(
    wish: _Wish,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    again: bool = False,
    keep: bool = True,
) -> tuple[Any, ...]:
    """A capture in the words of ivy: ``stateful`` parts of the arguments are looked up in this example."""
    inside = stateful_parts(args, wish.in_args, "arg_stateful_idxs")
    inside += stateful_parts(kwargs, wish.in_kwargs, "kwarg_stateful_idxs")
    found = wish.options._replace(keep=keep, stateful_arguments=tuple(inside))
    return _capture(fn, args, kwargs, found, wish.to, wish.native)


def _check_wish(fn: Any, to: str | None, has_example: bool) -> None:
    """Refuse what ``trace_graph`` cannot do, before anything is run."""
    if to is not None:
        importlib.import_module(_TRANSLATION).check_target(to)
    if isinstance(fn, ModuleType):
        if has_example:
            raise CaptureError(
                f"the module {fn.__name__} cannot be traced with an example",
                why="one example cannot fit all of its functions; each is traced when it is first called",
                fixes=("leave args and kwargs out",),
            )
    else:
        check_callable(fn)


def trace_module(
    module: Any,
    inputs: dict[str, Any],
    kwargs: dict[str, dict[str, Any]] | None = None,
    *,
    leaves: Any = None,
    static: Iterable[str] = (),
    include_generators: bool = True,
    array_caching: bool = True,
    opaque: str = "call",
    control_flow: str = "capture",
    guards: str = "read",
) -> Any:
    """Capture several methods of a module, each from an example: ``{"forward": args, "encode": args}``.

    The arguments of a method are a tuple, or a single value; named ones come in ``kwargs`` under the method's name. The
    result is one module: it has the original's parameters, state of its own that all its methods share, and the methods
    as attributes, each with its graph. The options are those of ``trace``.
    """
    lifted: dict[Any, Any] = {}
    options = Options.of(
        leaves=leaves,
        static=frozenset(static),
        include_generators=include_generators,
        array_caching=array_caching,
        opaque=opaque,
        control_flow=control_flow,
        guards=guards,
        lifted=lifted,
    )
    named = kwargs or {}
    framework = _check_methods(module, inputs, named)
    captures: dict[str, Any] = {}
    known: dict[str, int] = {}
    while any(known.get(name) != len(lifted) for name in inputs):  # what one method changes is an input of all
        for name, example in inputs.items():
            fn = module if name == "forward" else getattr(module, name)
            args = example if type(example) is tuple else (example,)
            with DeferredSignals(), LOCK:
                captured = framework.capture(fn, args, named.get(name, {}), options)
            captures[name], known[name] = captured._replace(pins=Pins()), len(lifted)
            del captured  # what it relied on shall be held by nobody else when the next method is captured
    with DeferredSignals(), LOCK:
        return make_methods(framework.package, module, captures)


def _check_methods(module: Any, inputs: dict[str, Any], kwargs: dict[str, Any]) -> Guest:
    """The framework of a module of which these methods are to be captured."""
    if not isinstance(inputs, Mapping) or not isinstance(kwargs, Mapping):
        wrong = kwargs if isinstance(inputs, Mapping) else inputs
        raise CaptureError(
            f"the examples are {a_or_an(wrong)}, not a dict from methods to arguments", fixes=('{"forward": args}',)
        )
    framework = framework_of(module, (), {})
    if framework.package not in METHODS or not framework.owns(module):
        raise CaptureError(
            f"trace_module takes a torch.nn.Module, and this is {a_or_an(module)}",
            fixes=("clew.trace(obj.method, args) captures one method of any object",),
        )
    unknown = [name for name in (*inputs, *kwargs) if not callable(getattr(module, name, None))]
    unknown += [name for name in kwargs if name not in inputs]
    if unknown or not inputs:
        what = f"{unknown[0]!r} is no method with an example" if unknown else "there is no example of any method"
        raise CaptureError(f"{what} of {type(module).__name__}", fixes=('give {"forward": args, "encode": args}',))
    return framework


def _capture(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    to: str | None = None,
    native: bool = False,
) -> tuple[Any, ...]:
    """The captured callable, the result of the run that was captured, and the attributes that it relied on."""
    fn = original_of(fn)
    framework = framework_of(fn, args, kwargs, to)
    name = getattr(fn, "__name__", type(fn).__name__)
    is_live = options.live or inspect.ismethod(fn)
    made, captured = capture_with(framework, fn, args, kwargs, options, name, is_live)
    vars(made)["_example"] = Example(args, kwargs)
    if captured.module is not None and inspect.ismethod(fn) and not options.live:
        made._rely_on(Fingerprint(fn, captured.pins))  # it works on the original, which may change
    result = made(*args, **kwargs) if options.keep and captured.several_paths else captured.result
    if to is not None and to != framework.package:
        made = translate(made, to)
    if native:
        made = NativeFunction(to or framework.package, made, options.static)
    return made, result, captured.pins


def translate(program: Any, to: str, *, dry_run: bool = False, check: bool = True) -> Any:
    """A captured program as one of the framework ``to``, whose functions its graph then calls.

    It is called like the original, with arrays of that framework, and holds copies of the weights. Operations that have
    no equal there are refused, all of them in one error; ``dry_run=True`` gives the list instead of an error or a
    program. With ``check`` the example of the capture, where it is still there, is run on both sides and compared.
    """
    return importlib.import_module(_TRANSLATION).translate(program, to, dry_run=dry_run, check=check)
