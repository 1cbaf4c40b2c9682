"""What Clew uses of JAX and that JAX does not promise to keep: traces, tracers, and what a jitted call goes through.

Everything else of this folder takes these names from here. ``jax._src`` moves from version to version; a new one is
met in this file alone.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import CellType
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax._src import core, linear_util, pjit, source_info_util, tree_util
from jax._src.interpreters import partial_eval
from jax._src.lax import lax as internal_lax
from jax._src.lib import jax_jit

from clew.frameworks.jax.types import spec_of_aval

Configuration: Any = type(jax.config)
"""The class of ``jax.config``."""
Trace = core.Trace
Tracer = core.Tracer
ScalarMaker: Any = type(jnp.float32)
"""The class of ``jax.numpy.float32`` and its like, which make arrays when they are called."""
JIT_MODULE: dict[str, Any] = vars(pjit)
_Jitted: Any = type(jax.jit(lambda: None))
INFER, RUN, CALLER = "_infer_params", "_run_python_pjit", "cache_miss"
"""The two functions in ``JIT_MODULE`` that every jitted call goes through that is not compiled, and their caller."""


STAGING_RULES: Any = partial_eval.custom_staging_rules
"""How primitives are traced, by primitive, where that is not as usual."""
JIT_PRIMITIVE: Any = pjit.jit_p
DynamicTrace = partial_eval.DynamicJaxprTrace
WrappedFunction = linear_util.WrappedFun
transformation = linear_util.transformation2


def is_compiling() -> bool:
    """Whether ``jax.jit`` or another function of JAX's traces what runs now, so that arrays have no values; under
    ``jax.grad`` alone they have."""
    trace = core.trace_ctx.trace
    while not isinstance(trace, DynamicTrace) and getattr(trace, "parent_trace", None) is not None:
        trace = trace.parent_trace
    return isinstance(trace, DynamicTrace)


def user_frames(traceback: Any) -> Any:
    """The frames of the user's own code in a traceback of JAX's."""
    return source_info_util.user_frames(traceback)


def converted(value: Any, dtype: Any) -> Any:
    """An array of another dtype, of weak type."""
    return internal_lax._convert_element_type(value, dtype, weak_type=True)


def current_trace() -> Any:
    """The trace that primitives are given to now."""
    return core.trace_ctx.trace


def using(trace: Any) -> AbstractContextManager[None]:
    """A block inside of which primitives are given to a trace."""
    return core.set_current_trace(trace)  # type: ignore[no-any-return]


def options_in(info: Any) -> dict[str, Any]:
    """What was asked of ``jax.jit``, as far as it changes what is computed."""
    names = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames")
    options = {name: getattr(info, name) for name in names if getattr(info, name)}
    if info.keep_unused:
        options["keep_unused"] = True
    return options


def compiled_body(function: Any, info: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What JAX has traced of a jitted function at an earlier call with such arguments, and goes on to use: its text and
    its constants; None if there was no such call."""
    static = info.static_argnums, info.static_argnames
    names, values = tuple(kwargs), tuple(kwargs.values())
    signature, dynamic = jax_jit.parse_arguments(args, values, names, *static, tree_util.tracing_registry)
    avals = pjit._infer_input_type(function, lambda: None, dynamic)  # type: ignore[arg-type, return-value]
    mesh = pjit.get_ctx_mesh(info.use_resource_env)
    known = pjit._infer_params_cached(function, info, signature, avals, mesh).pjit_params
    return None if known is None else _described(known)


def compilations(function: Any) -> int:
    """For how many kinds of arguments JAX has traced a jitted function, and goes on to use what it has traced."""
    held = [key[0] for key in pjit._infer_params_cached.cache_keys()]
    return sum(one() is function for one in held)


def traced_body(function: Any, info: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same of a function that was never called: what JAX traces now."""
    return _described(pjit._infer_params(function, info, args, kwargs)[0])


def traces_of(function: Any, trace: Any) -> Iterator[tuple[Any, Any]]:
    """What JAX has traced of a function, or of one of its own that calls it, and what it would trace now, under a
    trace."""
    known: Any = getattr(partial_eval, "trace_to_jaxpr", None)
    for held, _, args, options in known.cache_keys() if hasattr(known, "cache_keys") else ():
        kept = held()
        if kept is None or (kept is not function and function not in _called_by(kept)):
            continue
        given = args[0].unflatten()
        positional, named = given if _is_pair(given) else (given, {})
        specs = jax.tree_util.tree_map(spec_of_aval, (positional, named))
        with using(trace):
            anew = jax.make_jaxpr(functools.partial(_called, kept))(*specs[0], **specs[1])
            yield _text_of(known(kept, *args, **options)[0]), _text_of(anew)


def traced_kinds(function: Any) -> set[str]:
    """For which kinds of arguments JAX has traced a function, or one of its own that calls it."""
    known: Any = getattr(partial_eval, "trace_to_jaxpr", None)
    found = []
    for held, context, args, options in known.cache_keys() if hasattr(known, "cache_keys") else ():
        kept = held()
        if kept is not None and (kept is function or function in _called_by(kept)):
            found.append(f"{args[0]} {options} {context} {kept.__name__ if kept is not function else ''}")
    return set(found)


def jitted_with(info: Any) -> Any:
    """The jitted function that has this description; None if nobody holds it."""
    return next((one for one in gc.get_objects() if type(one) is _Jitted and one._jit_info is info), None)


def _called(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _is_pair(given: Any) -> bool:
    return len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict)


def _called_by(function: Any) -> list[Any]:
    held = [cell.cell_contents for cell in getattr(function, "__closure__", None) or () if cell != CellType()]
    return [one() if isinstance(one, weakref.ref) else one for one in held]


def _text_of(closed: Any) -> Any:
    return str(closed), [contents_of(one) for one in closed.consts]


def _described(traced: Any) -> Any:
    body = traced.params["jaxpr"]
    return str(body), [contents_of(one) for one in (*traced.consts, *body.consts)]


def contents_of(constant: Any) -> tuple[str, bytes]:
    """All that an array is, to be compared."""
    is_key = jnp.issubdtype(core.typeof(constant).dtype, jax.dtypes.prng_key)
    return str(core.typeof(constant)), numpy.asarray(jax.random.key_data(constant) if is_key else constant).tobytes()


def is_special(info: Any) -> bool:
    """Whether a jitted function was given shardings, layouts, a device or options of the compiler."""
    held = (*info.in_shardings_leaves, *info.out_shardings_leaves, *info.in_layouts_leaves, *info.out_layouts_leaves)
    told = any(type(one).__name__ != "UnspecifiedValue" and one is not None for one in held)
    return told or bool(info.compiler_options_kvs) or info.device is not None or info.backend is not None


def aval_of(value: Any) -> Any:
    """The abstract value of an array."""
    return core.typeof(value)
