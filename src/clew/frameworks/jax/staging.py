"""Calls of jitted functions stay calls while a program is traced.

JAX compiles a function such as ``jax.numpy.mean`` as a whole when it is called on values, but takes it apart when it is
traced, which can change the last bit of a result. During a capture such calls of the program itself are kept whole;
bodies that are compiled as a whole anyway are traced as always.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jax._src import core, pjit
from jax._src.interpreters import partial_eval

from clew.capture.symbolic.patches import Patches

_outermost: contextvars.ContextVar[Any] = contextvars.ContextVar("clew_jax_trace", default=None)


@contextmanager
def whole_calls() -> Iterator[None]:
    """Inside of this, traces that say ``this_trace`` keep calls of jitted functions whole."""
    rules: Any = partial_eval.custom_staging_rules
    token = _outermost.set(None)
    try:
        with Patches() as patches:
            patches.in_dict(rules, pjit.jit_p, _keeping)  # type: ignore[arg-type]
            yield
    finally:
        _outermost.reset(token)


def this_trace() -> None:
    """The trace that is running now is the one of the program."""
    _outermost.set(core.trace_ctx.trace)


def _keeping(original: Callable[..., Any]) -> Callable[..., Any]:
    def stage(trace: Any, source_info: Any, *args: Any, **params: Any) -> Any:
        if params["inline"] and trace is _outermost.get() and len(params["jaxpr"].jaxpr.eqns) > 1:
            params["inline"] = False
        return original(trace, source_info, *args, **params)

    return stage
