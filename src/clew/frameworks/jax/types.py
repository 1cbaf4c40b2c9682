"""What JAX's values are: their types in the IR, their kinds as short texts, and when two constants are the same.

Comes in: an array, a tracer or an abstract value. Goes out: an IR type, or a text such as ``float32[2,3]``. Guards
compare these texts, and bodies are traced with what they say.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy

from clew.ir.effects import pure
from clew.ir.types import ArrayType, ObjectType, Type

# ---- kinds of arrays as short texts ----------------------------------------------------------------------------------
#
# Kinds of JAX arrays as short texts: ``float32[2,3]``, ``float32[] weak``, ``key<fry>[4]``. A jaxpr holds for one
# shape, dtype and weak type of each of its inputs, so these texts are what the guards of a capture compare, and what
# bodies are traced with. Tracers have a kind too: a captured function can itself be transformed.


_WEAK = " weak"


@functools.lru_cache(maxsize=4096)
def kind_of_aval(aval: Any) -> str:
    """The kind of an abstract value."""
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        return str(aval)
    sizes = ",".join(map(str, aval.shape))
    return f"{aval.dtype.name}[{sizes}]{_WEAK if getattr(aval, 'weak_type', False) else ''}"


@pure
def kind_of(value: Any) -> str:
    """The kind of a value: of an array of JAX its own, of one of NumPy with that word before it, else the class."""
    if isinstance(value, jax.Array):
        return kind_of_aval(jax.typeof(value))
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        sizes = ",".join(map(str, value.shape))
        return f"{type(value).__module__}.{type(value).__name__} {value.dtype.name}[{sizes}]"
    return type(value).__name__


@pure
def number_kind(value: Any) -> str:
    """The class of a number; inside a transformation a weak array of no dimension stands for one."""
    if isinstance(value, jax.core.Tracer) and value.weak_type and not value.shape:
        return {"b": "bool", "i": "int", "f": "float"}.get(value.dtype.kind, "array")
    return type(value).__name__


def spec_of(kind: str) -> jax.ShapeDtypeStruct:
    """The kind as JAX's own description of an array without data."""
    name, _, rest = kind.removesuffix(_WEAK).partition("[")
    shape = tuple(int(size) for size in rest.rstrip("]").split(",") if size)
    return jax.ShapeDtypeStruct(shape, dtype_of(name), weak_type=kind.endswith(_WEAK))


def dtype_of(name: str) -> Any:
    """The dtype of this name, those of random keys included."""
    if not name.startswith("key<"):
        return numpy.dtype(getattr(jnp, name))
    return next(dtype for dtype in map(key_dtype, PRNG_NAMES) if dtype.name == name)


PRNG_NAMES = ("threefry2x32", "rbg", "unsafe_rbg")


@functools.cache
def key_dtype(implementation: str) -> Any:
    """The dtype of the random keys of an implementation."""
    with jax.ensure_compile_time_eval():
        return jax.random.key(0, impl=implementation).dtype


def spec_of_aval(aval: Any) -> jax.ShapeDtypeStruct:
    """An abstract value as JAX's own description of an array without data."""
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


@functools.lru_cache(maxsize=4096)
def type_of_aval(aval: Any) -> Type:
    """The type of an abstract value for the node that has it."""
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        return ObjectType(f"{type(aval).__module__}.{type(aval).__qualname__}")
    return ArrayType(aval.dtype.name, tuple(int(size) for size in aval.shape))


@pure
def class_kind(value: Any) -> str:
    """The dtype, weak type and rank of an array of JAX, ``float32[:,:]``; of any other value its class."""
    if not isinstance(value, jax.Array):
        return type(value).__name__
    aval = jax.typeof(value)
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        return str(aval)
    sizes = ",".join(":" * len(aval.shape))
    return f"{aval.dtype.name}[{sizes}]{_WEAK if getattr(aval, 'weak_type', False) else ''}"


@pure
def array_kind(value: Any) -> str:
    """Whether a value is an array of JAX, of numbers or of random keys; of any other value its class."""
    return "an array of JAX" if isinstance(value, jax.Array) else type(value).__name__


@pure
def ranked_kind(value: Any) -> str:
    """The same with the number of axes."""
    if not isinstance(value, jax.Array):
        return type(value).__name__
    kind = "an array of keys" if jnp.issubdtype(value.dtype, jax.dtypes.extended) else "an array of JAX"
    return f"{kind} with {value.ndim} axes"


# ---- types and constants ---------------------------------------------------------------------------------------------


def type_of(value: Any) -> Type | None:
    """The type of an array of JAX; None for other objects, which the IR names by their class."""
    if not isinstance(value, jax.Array):
        return None
    found = type_of_aval(jax.typeof(value))
    platform = _platform(value)
    if isinstance(found, ArrayType) and platform != "cpu":
        return ArrayType(found.dtype, found.shape, platform)
    return found


def _platform(value: jax.Array) -> str:
    if isinstance(value, jax.core.Tracer):
        return "cpu"
    return next(iter(value.devices())).platform


def same_value(left: Any, right: Any) -> bool | None:
    """Whether two arrays are the same constant, bit by bit; None when they are not JAX's."""
    if not isinstance(left, jax.Array) and not isinstance(right, jax.Array):
        return None
    if left is right:
        return True
    if not isinstance(left, jax.Array) or not isinstance(right, jax.Array) or kind_of(left) != kind_of(right):
        return False
    if jax.dtypes.issubdtype(left.dtype, jax.dtypes.prng_key):
        left, right = jax.random.key_data(left), jax.random.key_data(right)
    return numpy.asarray(left).tobytes() == numpy.asarray(right).tobytes()
