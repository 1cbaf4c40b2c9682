"""What NumPy's functions and methods do besides computing their result.

Functions of arrays are pure unless an ``out`` is given or they are listed here; those that draw random numbers, read
files or call a function of the user's are listed too. ``with_named_out`` gives an ``out`` that was passed by position
its name, so that everybody sees it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy

from clew.ir.guests import Effect
from clew.ir.types import ArrayType, ObjectType

Asking = Callable[[dict[str, Any]], bool]


def _always(kwargs: dict[str, Any]) -> bool:
    return True


FIRST_WRITTEN: dict[str, Asking] = {
    **dict.fromkeys("copyto put place putmask put_along_axis fill_diagonal shuffle".split(), _always),
    "nan_to_num": lambda kwargs: kwargs.get("copy", True) is not True,
    **dict.fromkeys(
        "median percentile quantile nanmedian nanpercentile nanquantile".split(),
        lambda kwargs: kwargs.get("overwrite_input", False) is not False,
    ),
}
"""Functions that write to their first argument, and when."""

WRITING_METHODS: dict[str, Asking] = {
    **dict.fromkeys("sort fill put partition setfield".split(), _always),
    "byteswap": lambda kwargs: kwargs.get("inplace", False) is not False,
}
"""Methods that write to their array, and when."""

_CALLING = frozenset("apply_along_axis apply_over_axes piecewise fromfunction frompyfunc vectorize".split())
_TALKING = frozenset(
    "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile fromregex tofile dump seterr seterrcall "
    "setbufsize set_printoptions info show_config test".split()
)
_TEXTS = getattr(numpy, "strings", numpy.char)  # numpy.strings came with NumPy 2
_HOMES = (numpy, numpy.linalg, numpy.fft, numpy.lib.stride_tricks, numpy.emath, _TEXTS, numpy.char, numpy.lib)
_STATE = frozenset("seed set_state shuffle get_state set_bit_generator get_bit_generator".split())


def _pure_functions() -> frozenset[Any]:
    """The public functions of NumPy that only compute, as long as their arguments do not ask for more."""
    members = [item for home in _HOMES for item in vars(home).items()]
    known = [value for name, value in members if not name.startswith("_") and name not in _CALLING | _TALKING]
    return frozenset(value for value in known if callable(value))


_PURE = _pure_functions()


_LEAVING = frozenset("tolist item tobytes tofile dump dumps resize setflags getfield view".split())
_CALLED = [name for name in dir(numpy.ndarray) if callable(getattr(numpy.ndarray, name)) and not name.startswith("_")]
METHODS = frozenset(_CALLED) - _LEAVING - WRITING_METHODS.keys()
"""Methods of arrays that give arrays, or numbers of NumPy's, and do nothing else."""


def is_function(value: Any) -> bool:
    """Whether a value is a function of NumPy's that only computes."""
    is_one = isinstance(value, (FunctionType, BuiltinFunctionType, numpy.ufunc)) or hasattr(value, "__wrapped__")
    return is_one and value in _PURE and value.__name__ not in FIRST_WRITTEN


def function_effect(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
    """The effect of calling a function of NumPy's; None when nobody vouches for it."""
    owner = getattr(target, "__self__", None)
    if isinstance(owner, numpy.random.RandomState):
        return Effect.WRITE if target.__name__ in _STATE else Effect.RANDOM
    if isinstance(owner, numpy.ufunc):
        written = target.__name__ == "at" or kwargs.get("out") is not None
        return (Effect.WRITE if written else Effect.NONE) if owner in _PURE else None
    try:
        if target not in _PURE:
            return None
    except TypeError:  # without a hash it was never listed
        return None
    asking = FIRST_WRITTEN.get(target.__name__)
    return Effect.WRITE if kwargs.get("out") is not None or (asking and asking(kwargs)) else Effect.NONE


def computes(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call of a function of NumPy's or of Python's operators, or of a method of an array, only computes."""
    if isinstance(target, str):
        is_array = isinstance(args[0], (numpy.ndarray, numpy.generic))
        return is_array and target not in _TALKING and target not in WRITING_METHODS and "out" not in kwargs
    return getattr(target, "__module__", "") == "_operator" or function_effect(target, args, kwargs) is Effect.NONE


def method_effect(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
    """The effect of a method of an array or generator; None unless the receiver is known to be one."""
    receiver = getattr(args[0], "value_type", None) if args else None
    if isinstance(receiver, ObjectType) and receiver.name.startswith("numpy.random."):
        return Effect.WRITE if name in ("shuffle", "spawn") or kwargs.get("out") is not None else Effect.RANDOM
    if not isinstance(receiver, ArrayType) or not hasattr(numpy.ndarray, name) or name in _TALKING:
        return None
    asking = WRITING_METHODS.get(name)
    if kwargs.get("out") is not None or (asking and asking(kwargs)) or name in ("resize", "setflags"):
        return Effect.WRITE
    return None if name.startswith("__") else Effect.NONE


def with_named_out(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_method: bool = False
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same arguments with ``out``, and what follows it, by name."""
    names = _names_from_out(function, is_method)
    if names is None or len(args) <= names[0]:
        return args, kwargs
    place, given = names[0], dict(zip(names[1], args[names[0] :], strict=False))
    if len(args) - place > len(names[1]):
        return args, kwargs
    return args[:place], {**given, **kwargs}


@functools.lru_cache(maxsize=1024)
def _names_from_out(function: Any, is_method: bool) -> tuple[int, tuple[str, ...]] | None:
    """The place of ``out`` among the positional parameters, and the names from there on."""
    if isinstance(function, numpy.ufunc):
        return (function.nin, ("out",)) if function.nout == 1 else None
    try:
        parameters = list(inspect.signature(function).parameters.values())[int(is_method) :]
    except (TypeError, ValueError):  # some functions in C tell nothing
        return None
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    for wanted in ("out", "overwrite_input", "inplace"):
        if wanted in names:
            return names.index(wanted), tuple(names[names.index(wanted) :])
    return None
