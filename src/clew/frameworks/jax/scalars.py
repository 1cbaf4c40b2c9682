"""Stand-ins for what comes into a JAX program and is no array of JAX: numbers of Python, arrays of NumPy.

Arithmetic on numbers stays Python's and is recorded as such; where a number or a NumPy array meets JAX, it becomes an
input of the jaxpr. Wherever Python forces a number into a plain value, a guard is recorded. What NumPy itself would
do with a NumPy array is refused: it would not be done by JAX, and not in JAX's dtypes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import jax
import jax.numpy as jnp
import numpy
from jax._src import core, dtypes

from clew.capture.recording.recorder import Scalar
from clew.errors import CaptureError
from clew.ir.source import user_source

if TYPE_CHECKING:
    from clew.frameworks.jax.recorder import JaxRecorder

_BINARY = "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor"
_COMPARING = "lt le gt ge eq ne"
_UNARY = "neg abs pos invert"


class Standing:
    """The mark of a stand-in: it has a place in the graph, and becomes a tracer where JAX takes it."""

    __slots__ = ()
    place: Any
    recorder: JaxRecorder
    serial: int
    plain: Any

    def __jax_array__(self) -> Any:
        return self.recorder.tracer_of(self)


def number(value: Any, place: Any, recorder: JaxRecorder) -> Any:
    """The stand-in of a number; other results of arithmetic are themselves."""
    cls = _NUMBERS.get(type(value))
    return value if cls is None else _made(cls, value, place, recorder)


def host_array(value: Any, place: Any, recorder: JaxRecorder) -> Any:
    """The stand-in of an array of NumPy."""
    return _made(HostArray, value, place, recorder)


def _made(cls: type, value: Any, place: Any, recorder: JaxRecorder) -> Any:
    made: Any = object.__new__(cls)
    made.plain, made.place, made.recorder, made.serial = value, place, recorder, recorder.next_serial()
    recorder.standing.append(made)
    return made


def _plain(value: Any) -> Any:
    return value.plain if issubclass(type(value), Scalar) else value


def _compute(recorder: JaxRecorder, function: Callable[..., Any], *values: Any) -> Any:
    result = function(*map(_plain, values))
    if not recorder.open:
        return result
    node = recorder.create(function, tuple(recorder.argument(value) for value in values))
    return number(result, node, recorder)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, bool, complex) or issubclass(type(value), Scalar)


def _binary(function: Callable[..., Any], reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not _is_number(other):
            return NotImplemented
        left, right = (other, self) if reflected else (self, other)
        return _compute(self.recorder, function, left, right)

    return method


def _unary(function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda self: _compute(self.recorder, function, self)


def _forced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Python wants the plain value: the capture relies on it from now on."""

    def method(self: Any, *rest: Any) -> Any:
        self.recorder.guard(self.place, self.plain)
        return function(self.plain, *rest)

    return method


def _truth(self: Any) -> bool:
    answer = bool(self.plain)
    if self.recorder.open:
        is_bool = type(self.plain) is bool
        self.recorder.guard(
            self.place if is_bool else self.recorder.create(bool, (self.recorder.argument(self),)), answer
        )
    return answer


def _members(spoofed: type) -> dict[str, Any]:
    members: dict[str, Any] = {"__class__": property(lambda self: spoofed), "__slots__": _SLOTS}
    for name in _BINARY.split():
        function = getattr(operator, name)
        members[f"__{name.strip('_')}__"] = _binary(function, False)
        members[f"__r{name.strip('_')}__"] = _binary(function, True)
    members |= {f"__{name}__": _binary(getattr(operator, name), False) for name in _COMPARING.split()}
    members |= {f"__{name}__": _unary(getattr(operator, name)) for name in _UNARY.split()}
    members |= {f"__{name}__": _unary(getattr(math, name)) for name in ("ceil", "floor", "trunc")}
    forced: dict[str, Callable[..., Any]] = {"index": operator.index, "int": int, "float": float, "hash": hash}
    forced |= {"complex": complex, "round": round, "divmod": divmod, "repr": repr, "str": str, "format": format}
    members |= {f"__{name}__": _forced(function) for name, function in forced.items()}
    members["__array__"] = _forced(lambda value, *rest: numpy.asarray(value))
    members["__bool__"] = _truth
    members |= {"__deepcopy__": lambda self, memo: self, "__copy__": lambda self: self}
    members["real"] = property(lambda self: self)
    members["is_integer"] = _forced(lambda value: float(value).is_integer())
    return members


_SLOTS = ("place", "plain", "recorder", "serial")
TracedInt = type("TracedInt", (Standing, Scalar), _members(int))
TracedFloat = type("TracedFloat", (Standing, Scalar), _members(float))
TracedBool = type("TracedBool", (Standing, Scalar), _members(bool))
_NUMBERS = {int: TracedInt, float: TracedFloat, bool: TracedBool}


def _of_numpy(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    source = user_source()
    raise CaptureError(
        "the program does something with an array of NumPy that NumPy would do, not JAX",
        where="" if source is None else source.describe(),
        why="the graph is made of calls of JAX, whose dtypes and results are others",
        fixes=("pass an array of JAX: jax.numpy.asarray(x)", "call jax.numpy's function on it"),
    )


def _meets(name: str) -> Callable[[Any, Any], Any]:
    """An operator that is JAX's only if the other side is."""

    def method(self: Any, other: Any) -> Any:
        return NotImplemented if isinstance(other, jax.Array) else _of_numpy(self)

    return method


_FACTS = ("shape", "dtype", "ndim", "size", "nbytes", "itemsize")
_TWO_SIDED = [name.strip("_") for name in f"{_BINARY} {_COMPARING} matmul divmod".split()]
_host: dict[str, Any] = {f"__{side}{name}__": _meets(name) for name in _TWO_SIDED for side in ("", "r")}
_host |= {name: property(operator.attrgetter(f"plain.{name}")) for name in _FACTS}
_host |= {
    f"__{name}__": _of_numpy
    for name in "neg abs pos invert bool int float complex index getitem setitem iter contains array array_ufunc "
    "array_function iadd isub imul itruediv reduce_ex copy deepcopy repr str format round".split()
}
_host["__len__"] = lambda self: len(self.plain)
_host["__class__"] = property(lambda self: type(self.plain))
_host["__getattr__"] = _of_numpy
_host["__hash__"] = _of_numpy
_host["__slots__"] = (*_SLOTS, "__weakref__")
HostArray = type("HostArray", (Standing,), _host)

STANDING = (TracedInt, TracedFloat, TracedBool, HostArray)


def teach_jax() -> None:
    """Tell JAX how our stand-ins become arrays, as it knows it of its own classes."""
    for kind in STANDING:
        dtypes.canonicalize_value_handlers[kind] = _array_of
        core.pytype_aval_mappings[kind] = _aval_of


def _array_of(value: Any) -> Any:
    return value.__jax_array__()


def _aval_of(value: Any) -> Any:
    return jax.typeof(value.__jax_array__())


def as_constant(value: Any) -> Any:
    """What a stand-in is in a run that only finds out that it becomes an array."""
    return jnp.asarray(value.plain)
