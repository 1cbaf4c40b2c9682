"""Calls of jitted functions stay calls while a program is traced.

JAX compiles a function such as ``jax.numpy.mean`` as a whole when it is called on values, but takes it apart when it is
traced, which can change the last bit of a result. During a capture such calls of the program itself are kept whole;
bodies that are compiled as a whole anyway are traced as always. A function with a derivative of its own is called like
any other, so its inside counts as the program.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from clew.capture.patches import Patches
from clew.frameworks.jax import private

_outermost: contextvars.ContextVar[Any] = contextvars.ContextVar("clew_jax_trace", default=None)


@contextmanager
def whole_calls() -> Iterator[None]:
    """Inside of this, traces that say ``this_trace`` keep calls of jitted functions whole."""
    token = _outermost.set(None)
    try:
        with Patches() as patches:
            patches.in_dict(private.STAGING_RULES, private.JIT_PRIMITIVE, _keeping)
            for name in ("process_custom_jvp_call", "process_custom_vjp_call"):
                patches.on_class(private.DynamicTrace, name, _entering)
            yield
    finally:
        _outermost.reset(token)


def this_trace() -> None:
    """The trace that is running now is the one of the program."""
    _outermost.set(private.current_trace())


def _keeping(original: Callable[..., Any]) -> Callable[..., Any]:
    def stage(trace: Any, source_info: Any, *args: Any, **params: Any) -> Any:
        if params["inline"] and trace is _outermost.get() and len(params["jaxpr"].jaxpr.eqns) > 1:
            params["inline"] = False
        return original(trace, source_info, *args, **params)

    return stage


@private.transformation
def _as_program(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run what is traced here as a part of the program."""
    token = _outermost.set(private.current_trace())
    try:
        return function(*args, **kwargs)
    finally:
        _outermost.reset(token)


def _entering(original: Callable[..., Any]) -> Callable[..., Any]:
    def process(trace: Any, primitive: Any, *rest: Any, **options: Any) -> Any:
        if trace is _outermost.get():
            rest = tuple(_as_program(one) if isinstance(one, private.WrappedFunction) else one for one in rest)
        return original(trace, primitive, *rest, **options)

    return process
