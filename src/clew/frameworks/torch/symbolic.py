"""Modes of torch that a traced program switches: gradients on or off, inference mode, autocast.

Entering and leaving become nodes, so that the graph computes under the same modes as the program. What was on before
is asked when the graph runs, so that a region ends in the mode of the caller, whichever that is.
"""

from __future__ import annotations

import contextvars
import copy
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.fx
from torch._C._functorch import peek_interpreter_stack
from torch._subclasses.fake_tensor import FakeCopyMode
from torch.amp import autocast_mode
from torch.autograd import grad_mode
from torch.overrides import TorchFunctionMode, is_tensor_method_or_property

from clew.capture.patches import Patches
from clew.capture.symbolic.proxy import Proxy
from clew.capture.symbolic.tracer import Tracer, warn
from clew.frameworks.torch.effects import function_effect
from clew.frameworks.torch.signatures import check_for_mutable_operation
from clew.ir.arguments import leaves, map_aggregate
from clew.ir.guests import Effect, Guest
from clew.ir.source import SourceLine

_HOME = grad_mode.__file__
_ENTER_INFERENCE = grad_mode._enter_inference_mode
_EXIT_INFERENCE = grad_mode._exit_inference_mode


class Regions:
    """The regions that one trace is in."""

    def __init__(self, tracer: Tracer) -> None:
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


def install(patches: Patches, regions_of: Callable[[], Regions | None]) -> None:
    """Let context managers that no function mode sees report; ``regions_of`` gives those of the current trace."""
    for manager, enters, exits in (
        (torch.amp.autocast, _enters_autocast, autocast_mode._exit_autocast),
        (torch.inference_mode, _enters_inference, _EXIT_INFERENCE),
    ):
        patches.on_class(manager, "__enter__", _reporting_enter(enters, regions_of))
        patches.on_class(manager, "__exit__", _reporting_exit(exits, regions_of))
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


def _reporting_exit(exits: Callable[..., Any], regions_of: Callable[[], Regions | None]) -> Any:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def __exit__(region: Any, *error: Any) -> Any:
            regions = regions_of()
            if regions is not None:
                regions.leave(region, exits)
            return original(region, *error)

        return __exit__

    return make


_GONE = object()


class ModuleState:
    """The plain attributes and buffers of all modules of a root, as they were."""

    def __init__(self, modules: dict[Any, str]) -> None:
        kinds = {kind: not _keeps_code(kind) for kind in set(map(type, modules))}
        self._noted = [
            (path, names, dict(names), [*map(id, names.values())])
            for module, path in modules.items()
            if kinds[type(module)]
            for names in (vars(module), module._buffers)
            if names and type(names) is dict
        ]

    def put_back(self, place: SourceLine | None) -> None:
        """Undo what the trace rebound, and warn of each attribute."""
        for path, names, before, values in self._noted:
            if [*map(id, names.values())] == values:
                continue
            for name in [key for key in names if key not in before and isinstance(names[key], Proxy)]:
                self._restore(path, names, name, _GONE, place)
            for name, value in before.items():
                if names.get(name, _GONE) is not value:
                    self._restore(path, names, name, value, place)

    @staticmethod
    def _restore(path: str, names: dict[str, Any], name: str, value: Any, place: SourceLine | None) -> None:
        if value is _GONE:
            del names[name]
        else:
            names[name] = value
        attribute = f"{path}.{name}" if path else name
        warn(
            f"the attribute {attribute!r} was assigned while tracing: the graph will not do so",
            "an assignment to an attribute of a module is no operation on a value; it has been undone",
            "update a buffer in place, self.buffer.add_(1) or self.buffer.copy_(value), which is recorded",
            place=place,
        )


def _keeps_code(kind: type) -> bool:
    """True for graph modules, which generate their code when they first run, and for scripted ones."""
    homes = ("clew.runtime", "torch.fx", "torch.jit")
    return any(base.__module__.startswith(homes) for base in kind.__mro__)


def warn_of_calls_around(root: Any) -> None:
    """Tell of what runs around the root's forward when the root is called, of which a trace of forward sees nothing."""
    if not isinstance(root, torch.nn.Module):
        return
    hooks = bool(root._forward_hooks or root._forward_pre_hooks)
    own = [kind for kind in type(root).__mro__ if "__call__" in vars(kind) and not _is_of_framework(kind)]
    if hooks or own:
        what = "forward hooks" if hooks else f"a __call__ of its own ({own[0].__name__}.__call__)"
        warn(
            f"the root, a {type(root).__name__}, has {what}, which the graph will not have: only forward is traced",
            "a graph is the program of the root's forward",
            "put it inside another module and trace that: hooks and __call__ of submodules are traced through",
        )


def _is_of_framework(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in ("torch", "clew", "builtins")


_INTO_PYTHON = frozenset("__bool__ __int__ __float__ __index__ __complex__ item tolist numpy __array__".split())


class TensorWatch(TorchFunctionMode):
    """Sees all calls of torch during one trace."""

    def __init__(self, tracer: Tracer, regions: Regions) -> None:
        super().__init__()
        self.tracer = tracer
        self.regions = regions
        self.state = _state_of(tracer)  # and, as the trace goes on, what was computed from these alone
        self.random_states: dict[torch.Generator, torch.Tensor] = {}
        self.aliases: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.made: dict[int, torch.Tensor] = {}
        self.written: dict[int, tuple[torch.Tensor, Proxy | None]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _regions.get() is not self.regions:  # another trace runs inside this one
            return func(*args, **kwargs)
        if func is torch._C._set_grad_enabled:
            return self.regions.set_grad_enabled(args[0])
        symbolic = any(issubclass(kind, Proxy) for kind in types)
        if symbolic and not self.written and not _has_tensor_to_write(args, kwargs):
            return func(*args, **kwargs)
        if peek_interpreter_stack() is not None:  # inside torch.func: its tensors are its own
            return func(*args, **kwargs)
        effect = function_effect(func, args, kwargs)
        target = _written_by(args, kwargs) if effect is Effect.WRITE else None
        if target is not None and (symbolic or not self._may_run(target)):
            self._let_graph_write(target)
        if self.written and any(self._base_is_written(leaf) for leaf in leaves((args, kwargs))):
            result = self._record(func, map_aggregate(args, self._in_graph), map_aggregate(kwargs, self._in_graph))
            return result if target is None or symbolic else target
        return func(*args, **kwargs) if symbolic else self._run(func, args, kwargs, effect)

    def _run(self, func: Any, args: Any, kwargs: Any, effect: Effect | None) -> Any:
        """Make the call for real: its result is a constant of the trace."""
        if effect is Effect.RANDOM:
            _warn_of_random(func)
            generator = kwargs.get("generator") or torch.default_generator
            self.random_states.setdefault(generator, generator.get_state())
        result = func(*args, **kwargs)
        read = self._state_read_by(args, kwargs)
        if read is not None and getattr(func, "__name__", "") in _INTO_PYTHON:
            _warn_of_frozen(read)
        older = [leaf for leaf in leaves((args, kwargs)) if not self._is_made(leaf)]
        for leaf in leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf._base is None:
                self._note_result(leaf, next((other for other in older if _share(leaf, other)), None), read)
        return result

    def _note_result(self, result: torch.Tensor, shares_with: torch.Tensor | None, read: str | None) -> None:
        if shares_with is None:
            self.made[id(result)] = result
            if read is not None:
                self.state[id(result)] = read
                self.tracer.frozen[id(result)] = (result, lambda: _warn_of_frozen(read))
        elif result is not shares_with and id(result) != id(self._base(shares_with)):
            self.aliases[id(result)] = (result, self._base(shares_with))

    @staticmethod
    def _record(func: Any, args: Any, kwargs: Any) -> Any:
        proxy = next(leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, Proxy))
        if func.__name__ == "__set__":
            return proxy.tracer.create_proxy("call_function", setattr, (args[0], func.__self__.__name__, args[1]), {})
        return type(proxy).__torch_function__(func, (type(proxy),), args, dict(kwargs))

    def _is_made(self, value: Any) -> bool:
        return not isinstance(value, torch.Tensor) or id(self._base(value)) in self.made

    def _may_run(self, target: torch.Tensor) -> bool:
        """True for a tensor that this trace has made and that no node has read yet."""
        base = self._base(target)
        known = self.tracer.tensor_attrs
        return id(base) in self.made and base not in known and target not in known

    def _let_graph_write(self, target: torch.Tensor) -> None:
        base = self._base(target)
        if id(base) not in self.written:
            own = None
            if id(base) in self.made:
                read = self.tracer.create_proxy("get_attr", self.tracer._path_of_constant(base), (), {})
                own = self.tracer.create_proxy("call_method", "clone", (read,), {})
                self.tracer.copies[id(base)] = (base, own.node)
            elif id(base) not in self.state:
                _warn_of_outsider()
            self.written[id(base)] = (base, own)

    def _base_is_written(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and id(self._base(value)) in self.written

    def _in_graph(self, value: Any) -> Any:
        """The proxy of a tensor that the graph writes; a view of one is taken again from the value as it is then."""
        if not self._base_is_written(value):
            return value
        base = self._base(value)
        proxy = self.written[id(base)][1]
        if proxy is None:
            proxy = self.tracer.proxy(self.tracer.create_arg(base))
        if value is base:
            return proxy
        place = (tuple(value.shape), value.stride(), value.storage_offset())
        return self.tracer.create_proxy("call_method", "as_strided", (proxy, *place), {})

    def _base(self, value: torch.Tensor) -> torch.Tensor:
        """The tensor that ``value`` is a view of, or an alias (``.data``, ``.detach()``); itself if it is none."""
        base = value if value._base is None else value._base
        return self.aliases[id(base)][1] if id(base) in self.aliases else base

    def _state_read_by(self, args: Any, kwargs: Any) -> str | None:
        for leaf in leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor):
                name = self.state.get(id(self._base(leaf)))
                if name is not None:
                    return name
        return None


_regions: contextvars.ContextVar[Regions | None] = contextvars.ContextVar("clew_torch_regions", default=None)


@contextmanager
def watch_torch(tracer: Tracer, patches: Patches) -> Iterator[None]:
    """See what torch does for the time of one trace; the modules of the root are left as they were."""
    regions = Regions(tracer)
    install(patches, _regions.get)
    state = ModuleState(tracer.submodule_paths or {})
    warn_of_calls_around(tracer.root)
    token = _regions.set(regions)
    watch = TensorWatch(tracer, regions)
    gradients = torch.is_grad_enabled()
    try:
        with watch:
            yield
    finally:
        _regions.reset(token)
        if torch.is_grad_enabled() is not gradients:
            torch._C._set_grad_enabled(gradients)
        for generator, before in watch.random_states.items():
            generator.set_state(before)
        state.put_back(tracer.defined_at)


def _state_of(tracer: Tracer) -> dict[int, str]:
    """The names of the root's buffers and other tensors, whose values may change between runs."""
    named = dict(tracer.root.named_buffers()) if isinstance(tracer.root, torch.nn.Module) else {}
    return {id(value): name for value, name in tracer.tensor_attrs.items()} | {id(b): name for name, b in named.items()}


def _share(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors are one, or hold the same memory."""
    if left is right:
        return True
    if left.layout is not torch.strided or right.layout is not torch.strided:
        return False
    return bool(left.untyped_storage()._cdata == right.untyped_storage()._cdata)


def _written_by(args: Any, kwargs: Any) -> torch.Tensor | None:
    """The real tensor that a writing call writes: ``out`` or the first argument."""
    target = kwargs.get("out", args[0] if args else kwargs.get("input"))
    return target if isinstance(target, torch.Tensor) else None


def _has_tensor_to_write(args: Any, kwargs: Any) -> bool:
    return (bool(args) and isinstance(args[0], torch.Tensor)) or "out" in kwargs or "input" in kwargs


def _warn_of_random(func: Any) -> None:
    warn(
        f"{getattr(func, '__name__', func)} drew random numbers while tracing: every run of the graph reuses them",
        "a call without symbolic arguments is made once, while tracing, and its result is a constant of the graph",
        "give the call a symbolic value: torch.rand_like(x), or torch.rand(x.shape[0], 3), is recorded",
        "draw them in a function of your own and clew.wrap it",
    )


def _warn_of_outsider() -> None:
    warn(
        "a tensor that is no part of the root is written: all runs of the graph write to this one tensor",
        "it was made before the trace, or by a call that torch does not report (torch.from_numpy, torch.Tensor(...))",
        "make it a buffer of the root if it is state; make it with torch.zeros, torch.tensor and the like if it is not",
    )


def _warn_of_frozen(name: str) -> None:
    warn(
        f"a value computed from {name!r} alone is a constant of the graph: later changes of {name!r} will not be seen",
        "a call without symbolic arguments is made once, while tracing",
        "trace with a Tracer whose proxy_buffer_attributes is True, so that buffers are symbolic",
        "compute it together with an input, or ahead of time in __init__",
    )


_LEAF_PACKAGES = ("torch.nn", "torch.ao.nn")


@functools.lru_cache(maxsize=4096)
def _method_name(function: Any) -> str | None:
    """Remembered, because torch's own answer takes longer than all the rest of recording a call."""
    return str(function.__name__) if is_tensor_method_or_property(function) else None


class TracingAnswers(Guest):
    """The part of torch's guest that symbolic tracing asks."""

    module_class = torch.nn.Module
    proxy_class = torch.fx.Proxy
    parameter_class = torch.nn.Parameter
    array_class = torch.Tensor
    constant_classes = (
        torch.Tensor,
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
        torch.Size,
        torch.Generator,
        torch.SymInt,
        torch.SymFloat,
        torch.SymBool,
        torch._ops.OpOverload,
        torch._ops.OpOverloadPacket,
        torch._ops.HigherOrderOperator,
    )
    attribute_classes = (torch.Tensor, torch.nn.Module, torch.ScriptObject)

    def new_root(self) -> torch.nn.Module:
        """An empty module, for graphs of plain functions."""
        return torch.nn.Module()

    def is_leaf_module(self, module: Any) -> bool:
        """True for torch's own layers; a Sequential is traced through."""
        return type(module).__module__.startswith(_LEAF_PACKAGES) and not isinstance(module, torch.nn.Sequential)

    def bound_script_method(self, function: Any) -> tuple[Any, str] | None:
        """The object and the name of a method of TorchScript's."""
        return (function.owner, function.name) if isinstance(function, torch._C.ScriptMethod) else None

    def method_name(self, function: Any) -> str | None:
        """The name of a tensor's method or property."""
        return _method_name(function)

    def assertion(self) -> Callable[..., Any]:
        """The assertion that takes symbolic conditions."""
        return torch._assert

    def faked(self, module: Any, mode: Any) -> Any:
        """A copy of a module whose parameters and buffers are fake tensors of ``mode``."""
        with FakeCopyMode(mode):
            return copy.deepcopy(module)

    def memory_format(self, value: Any) -> Any:
        """The first memory format in which a tensor is contiguous."""
        formats = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
        return next((found for found in formats if value.is_contiguous(memory_format=found)), None)

    def check_mutable(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Raise if the call changes one of its arguments."""
        check_for_mutable_operation(target, args, kwargs)
