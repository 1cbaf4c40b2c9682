"""Public functions of JAX, and jitted ones, led to the recorder for the time of a capture.

``jax.numpy.sin`` in a program is replaced in ``jax.numpy`` and where the program has imported it by name, so that the
node is what the user wrote. Functions that were kept elsewhere, in tables or partials, are met where all jitted calls
go through; what is not jitted comes to the trace as primitives.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, TypeAlias

import jax
import numpy

from clew.capture.patches import Patches
from clew.capture.python import imported_names
from clew.capture.python.imported_names import noted
from clew.frameworks.jax import names, private
from clew.frameworks.jax.recorder import JaxRecorder

Current: TypeAlias = Callable[[], "JaxRecorder | None"]

_PLACES = (
    "jax.numpy", "jax.lax", "jax.nn", "jax.random", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax.linalg",
    "jax.scipy.special", "jax.scipy.linalg", "jax.scipy.signal", "jax.scipy.stats", "jax.scipy.fft",
    "jax.scipy.ndimage", "jax.scipy.integrate", "jax.scipy.interpolate", "jax.scipy.spatial.transform", "jax.image",
    "jax.ops",
)  # fmt: skip
_OF_JAX = frozenset("device_put device_get".split())
_PLAIN = frozenset(
    "issubdtype promote_types iscomplexobj isrealobj isscalar finfo iinfo dtype result_type canonicalize_dtype "
    "set_printoptions get_printoptions printoptions isdtype can_cast iterable ndim shape size "
    "save load savez fromfile key_impl default_prng_impl".split()
)
"""Functions of dtypes and settings, which run as they are."""


def install(patches: Patches, current: Current, surroundings: Any) -> None:
    """Let these functions report to the recorder that ``current`` names, if it is recording."""
    names.qualified_name(jax.numpy.sin)  # so that all names are known before they are replaced
    for home in _PLACES:
        module = sys.modules.get(home)
        for name, value in list(vars(module).items()) if isinstance(module, ModuleType) else ():
            if is_recorded(name, value):
                patches.in_dict(vars(module), name, noted(functools.partial(_recording, current=current)))
    for name in _OF_JAX:
        patches.in_dict(vars(jax), name, noted(functools.partial(_recording, current=current)))
    patches.in_dict(private.JIT_MODULE, private.INFER, functools.partial(_inferring, current=current))
    patches.in_dict(private.JIT_MODULE, private.RUN, _running)
    functions = surroundings.functions
    spaces = {id(one.__globals__): one.__globals__ for one in functions}
    cells = [cell for one in functions for cell in one.__closure__ or ()]
    imported_names.replace_in(patches, spaces.values(), cells)
    imported_names.replace_in_defaults(patches, functions)


def is_recorded(name: str, value: Any) -> bool:
    """Whether a public name is that of a function that computes something."""
    if name.startswith("_") or name in _PLAIN or isinstance(value, (type, ModuleType)) or not callable(value):
        return False
    home = str(getattr(value, "__module__", None) or type(value).__module__)
    return home.partition(".")[0] in ("jax", "jaxlib") and not isinstance(value, numpy.dtype)


@functools.cache
def _recording(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or not recorder.open or recorder.depth:
            return original(*args, **kwargs)
        return recorder.public(original, args, kwargs)

    functools.update_wrapper(call, original)
    call.__clew_original__ = original  # type: ignore[attr-defined]
    return call


# ---- jitted functions, wherever they were kept -----------------------------------------------------------------------


class _Met:
    """A jitted call that the recorder makes."""

    def __init__(self, recorder: JaxRecorder, info: Any) -> None:
        self.recorder = recorder
        self.info = info


@functools.cache
def _inferring(original: Callable[..., Any], current: Current) -> Callable[..., Any]:
    def infer(fun: Any, info: Any, args: Any, kwargs: Any) -> Any:
        recorder = current()
        if recorder is None or not recorder.is_recording():
            return original(fun, info, args, kwargs)
        return _Met(recorder, info), None

    return infer


@functools.cache
def _running(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(p: Any, args_flat: Any, fun: Any, args: Any, kwargs: Any) -> Any:
        if type(p) is not _Met:
            return original(p, args_flat, fun, args, kwargs)
        outs = jitted(p.recorder, fun, p.info, args, kwargs)
        return outs, None, None, None, SimpleNamespace(effects=(), consts=()), None, None, None

    return run


def jitted(recorder: JaxRecorder, fun: Any, info: Any, args: Any, kwargs: Any) -> Any:
    """A call of a jitted function: one of a public function by its name, or traced by JAX."""
    known = names.public_jitted(fun)
    if known is not None:
        return recorder.public(known, args, kwargs)
    return recorder.staged(jax.jit(fun, **private.options_in(info)), args, kwargs)


