"""All that Clew uses of JAX and that JAX does not promise to keep: traces, tracers, and what a jitted call goes through.

Everything else of this folder takes these names from here. ``jax._src`` moves from version to version; a new one is
met in this file alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import core, dtypes, pjit

Trace = core.Trace
Tracer = core.Tracer
ShapedArray = core.ShapedArray
ScalarMaker: Any = type(jnp.float32)
"""The class of ``jax.numpy.float32`` and its like, which make arrays when they are called."""
JitFunction: Any = type(jax.jit(lambda: None))
"""The class of what ``jax.jit`` makes."""
JIT_MODULE: dict[str, Any] = vars(pjit)
INFER, RUN = "_infer_params", "_run_python_pjit"
"""The two functions in ``JIT_MODULE`` that every jitted call goes through that is not compiled yet."""


def current_trace() -> Any:
    """The trace that primitives are given to now."""
    return core.trace_ctx.trace


def using(trace: Any) -> AbstractContextManager[None]:
    """A block inside of which primitives are given to a trace."""
    return core.set_current_trace(trace)  # type: ignore[no-any-return]


def function_of(jitted: Any) -> Callable[..., Any]:
    """The function that was jitted."""
    return jitted._fun  # type: ignore[no-any-return]


def options_of(jitted: Any) -> dict[str, Any]:
    """What was asked of ``jax.jit``, as far as it changes what is computed."""
    return options_in(jitted._jit_info)


def options_in(info: Any) -> dict[str, Any]:
    """The same, from what JAX has noted about a jitted function."""
    names = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames")
    options = {name: getattr(info, name) for name in names if getattr(info, name)}
    if info.keep_unused:
        options["keep_unused"] = True
    return options


def is_special(info: Any) -> bool:
    """Whether a jitted function was given shardings, layouts, a device or options of the compiler."""
    held = (*info.in_shardings_leaves, *info.out_shardings_leaves, *info.in_layouts_leaves, *info.out_layouts_leaves)
    told = any(type(one).__name__ != "UnspecifiedValue" and one is not None for one in held)
    return told or bool(info.compiler_options_kvs) or info.device is not None or info.backend is not None


def aval_of(value: Any) -> Any:
    """The abstract value of an array."""
    return core.typeof(value)


def teach(kind: type, array_of: Callable[[Any], Any]) -> None:
    """Tell JAX how stand-ins of a class become arrays, as it knows it of its own classes."""
    dtypes.canonicalize_value_handlers[kind] = array_of
    core.pytype_aval_mappings[kind] = lambda value: core.typeof(array_of(value))


def donated(jitted: Any) -> bool:
    """Whether a jitted function frees some of its arguments."""
    return bool(jitted._jit_info.donate_argnums or jitted._jit_info.donate_argnames)


