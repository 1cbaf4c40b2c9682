"""What torch does with real tensors while a symbolic trace runs.

In comes every call of torch that the traced program makes. Calls on values that the graph changes are recorded, so
that state is written when the graph runs and not when it is made; a constant that the program writes into is copied
first, so that every run starts from it afresh. Random numbers and values of buffers that would be frozen are warned of.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._C._functorch import peek_interpreter_stack
from torch.overrides import TorchFunctionMode

from clew.capture.symbolic.proxy import Proxy
from clew.capture.symbolic.watch import warn
from clew.frameworks.torch.effects import function_effect
from clew.frameworks.torch.regions import Regions, install
from clew.frameworks.torch.state import ModuleState, warn_of_calls_around
from clew.ir.arguments import leaves, map_aggregate
from clew.ir.guests import Effect

_INTO_PYTHON = frozenset("__bool__ __int__ __float__ __index__ __complex__ item tolist numpy __array__".split())


class TensorWatch(TorchFunctionMode):
    """Sees all calls of torch during one trace."""

    def __init__(self, tracer: Any, regions: Regions) -> None:
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
def watch_torch(tracer: Any, patches: Any) -> Iterator[None]:
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


def _state_of(tracer: Any) -> dict[int, str]:
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
