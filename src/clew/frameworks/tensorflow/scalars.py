"""Numbers of Python and arrays of NumPy while TensorFlow traces: what the graph computes by Python itself.

A size that is not known yet, a number among the arguments, ``float(x)``, ``x.numpy()``: a ``Traced`` value stands for
each of them. Python's arithmetic with it makes operations of the function graph that name functions of Python
(``Notes`` keeps which), so branches and loops of TensorFlow carry them, and the graph of Clew runs them as Python does.
Always holds: a plain value is asked for only where nothing else will do. Then what it follows from must be known when
the program is traced: ``NeedsKnown`` ends this run, and the next one sees the plain value, which is guarded.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
import tensorflow as tf
from tensorflow.python.ops import gen_script_ops

from clew.capture.recording.numbers import BINARY, operator_methods
from clew.errors import GuardError
from clew.ir.effects import pure

if TYPE_CHECKING:
    from clew.frameworks.tensorflow.tracing import Tracing

NUMBERS = (int, float, bool)
_DTYPES = {int: tf.int64, float: tf.float64, bool: tf.bool}
TOKEN = "clew:"
ALL = -1
"""Stands for all sizes of an argument."""


class NeedsKnown(BaseException):
    """These arguments, or sizes of arguments, must be known when the program is traced."""

    def __init__(self, sources: set[tuple[int, int]]) -> None:
        self.sources = sources


class PythonCall(NamedTuple):
    """A call of Python in a function graph; ``Operand``s stand for the operation's inputs."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Operand(NamedTuple):
    """An input of the operation, by its place."""

    place: int


@pure
def size_of(tensor: Any, axis: int) -> int:
    """A size of a tensor."""
    found: int = tensor.shape[axis]
    return found


@pure
def numpy_of(tensor: Any) -> Any:
    """The array, or number, of NumPy that a tensor holds."""
    return tensor.numpy()


@pure
def tensor_of_int(number: int) -> Any:
    """The tensor that TensorFlow makes of an int, which is of int32 for all that fit."""
    made = tf.constant(number)
    if made.dtype != tf.int32:
        raise GuardError(f"the graph assumed that {number} fits into int32", fixes=("capture again with this input",))
    return made


@pure
def method_of(value: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """The result of a method."""
    return getattr(value, name)(*args, **kwargs)


@pure
def itself(value: Any) -> Any:
    """A plain value, as it is."""
    return value


def is_symbolic(value: Any) -> bool:
    """Whether a value is a tensor of a graph that is being made."""
    return isinstance(value, tf.Tensor) and hasattr(value, "graph")


def dtype_of(sample: Any) -> Any:
    """The dtype that the symbolic tensor has which stands for such a value."""
    return _DTYPES[type(sample)] if type(sample) in _DTYPES else tf.as_dtype(numpy.asarray(sample).dtype)


def python_call(
    tracing: Tracing, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: Any, shape: Any = ()
) -> Any:
    """An operation that calls a function of Python with these arguments, traced values and tensors among them."""
    inputs: list[Any] = []

    def operand(value: Any) -> Any:
        if type(value) in (tuple, list):
            return type(value)(map(operand, value))
        if type(value) is slice:
            return slice(*map(operand, (value.start, value.stop, value.step)))
        tensor = value.tensor if isinstance(value, Traced) else value
        if not is_symbolic(tensor):
            return tensor
        inputs.append(tensor)
        return Operand(len(inputs) - 1)

    call = PythonCall(function, tuple(map(operand, args)), {name: operand(value) for name, value in kwargs.items()})
    tracing.notes.python_calls.append(call)
    token = f"{TOKEN}{len(tracing.notes.python_calls) - 1}"
    (made,) = gen_script_ops.py_func_stateless(input=inputs, token=token, Tout=[dtype])
    made.set_shape(shape)
    return made


def traced_call(tracing: Tracing, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], sample: Any) -> Traced:
    """A call of Python whose result is such a value as ``sample``."""
    shape = () if isinstance(sample, NUMBERS) else _unknown_where_open(sample)
    return Traced(tracing, python_call(tracing, function, args, kwargs, dtype_of(sample), shape), sample)


def _unknown_where_open(sample: Any) -> Any:
    return [None] * numpy.ndim(sample)


def _is_numpy(value: Any) -> bool:
    return isinstance(value, (numpy.ndarray, numpy.generic))


class Traced:
    """A number or array that is known when the graph runs. ``sample`` is a value of the same type, dtype and rank."""

    __slots__ = ("is_open", "sample", "tensor", "tracing")

    def __init__(self, tracing: Tracing, tensor: Any, sample: Any, is_open: bool = False) -> None:
        self.tracing = tracing
        self.tensor = tensor
        self.sample = sample
        self.is_open = is_open
        """Whether it may be an int or a float."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        if type(self.sample) in NUMBERS and self.tracing.is_named_by_program():
            self.tracing.rely_on_type(self)
        return type(self.sample)

    # ---- what needs a plain value --------------------------------------------------------------------------------

    def _plain(self) -> Any:
        """The plain value: TensorFlow is told that there is none, a program is traced again with it."""
        raise self.tracing.needs_known(self)

    def __bool__(self) -> bool:
        return bool(self._plain())

    def __index__(self) -> int:
        return int(self._plain())

    def __int__(self) -> int:
        return int(self._plain())

    def __float__(self) -> float:
        return float(self._plain())

    def __complex__(self) -> complex:
        return complex(self._plain())

    def __hash__(self) -> int:
        return hash(self._plain())

    def __str__(self) -> str:
        return str(self._plain())

    def __format__(self, text: str) -> str:
        return format(self._plain(), text)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._plain()

    def __repr__(self) -> str:
        return repr(self._plain())

    # ---- arithmetic ----------------------------------------------------------------------------------------------

    def apply(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Call a function of Python on traced values when the graph runs."""
        kwargs = kwargs or {}
        if function in (operator.pow, pow) and _is_whole(args[0]) and isinstance(args[1], Traced):
            args[1]._plain()
        try:
            sample = function(*sampled(args), **sampled(kwargs))
        except Exception as error:
            raise self.tracing.refuse(
                f"what {getattr(function, '__name__', function)} gives is known only when the graph runs",
                f"for a sample it raises {type(error).__name__}: {error}",
            ) from error
        return self._result(function, args, kwargs, sample)

    def _result(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], sample: Any) -> Any:
        if sample is NotImplemented:
            return sample
        if type(sample) in NUMBERS or _is_numpy(sample):
            made = traced_call(self.tracing, function, args, kwargs, sample)
            made.is_open = any(isinstance(one, Traced) and one.is_open for one in args) and type(sample) is not bool
            return made
        raise self.tracing.refuse(
            f"the program makes a {type(sample).__name__} of a value that is known only when the graph runs",
            "such values cannot be followed",
            "stay with tensors, numbers and arrays",
        )

    def __getitem__(self, index: Any) -> Any:
        return self.apply(operator.getitem, (self, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise self.tracing.refuse("the program writes to an array of NumPy that a tensor gave")

    def __len__(self) -> int:
        if not _is_numpy(self.sample):
            raise TypeError(f"object of type '{type(self.sample).__name__}' has no len()")
        return int(self._plain())

    def __iter__(self) -> Any:
        if not numpy.ndim(self.sample):
            raise TypeError(f"'{type(self.sample).__name__}' object is not iterable")
        return iter(self._plain())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(self.sample, name):
            raise AttributeError(f"'{type(self.sample).__name__}' object has no attribute '{name}'")
        if name in ("dtype", "ndim"):
            return getattr(self.sample, name)
        if name == "shape":
            return tuple(self.apply(_size, (self, axis)) for axis in range(self.sample.ndim))
        if not callable(getattr(self.sample, name)):
            return self.apply(getattr, (self, name))
        if name in _WRITING:
            raise self.tracing.refuse(f"the program calls .{name} of an array of NumPy that a tensor gave")
        return functools.partial(self._method, name)

    def _method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.apply(method_of, (self, name, *args), kwargs)

    def __array_ufunc__(self, function: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if any(is_symbolic(one) for one in args) or kwargs.get("out") is not None:
            return NotImplemented
        return self.apply(function if method == "__call__" else getattr(function, method), args, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self.apply(function, args, kwargs)


_WRITING = frozenset("fill itemset partition put resize setfield setflags sort byteswap".split())


@pure
def _size(array: Any, axis: int) -> int:
    found: int = array.shape[axis]
    return found


def _is_whole(value: Any) -> bool:
    sample = value.sample if isinstance(value, Traced) else value
    return isinstance(sample, int)


def sampled(values: Any) -> Any:
    """The same with samples in the place of traced values."""
    if isinstance(values, Traced):
        return values.sample
    if type(values) in (tuple, list):
        return type(values)(map(sampled, values))
    if type(values) is slice:
        return slice(*map(sampled, (values.start, values.stop, values.step)))
    if type(values) is dict:
        return {key: sampled(value) for key, value in values.items()}
    return values


def has_traced(values: Any) -> bool:
    """Whether a traced value is among some values, in tuples, lists and slices too."""
    return any(isinstance(one, Traced) for one in _leaves(values))


def _leaves(values: Any) -> Iterator[Any]:
    if type(values) in (tuple, list):
        for one in values:
            yield from _leaves(one)
    elif type(values) is slice:
        yield from (values.start, values.stop, values.step)
    else:
        yield values


def _may_join(one: Any) -> bool:
    return isinstance(one, (Traced, *NUMBERS)) or _is_numpy(one)


def _binary(function: Any, is_swapped: bool = False) -> Callable[[Traced, Any], Any]:
    def apply(self: Traced, other: Any) -> Any:
        if not _may_join(other):
            return NotImplemented
        return self.apply(function, (other, self) if is_swapped else (self, other))

    return apply


def _unary(function: Any) -> Callable[..., Any]:
    def apply(self: Traced, *args: Any) -> Any:
        return self.apply(function, (self, *args))

    return apply


def _in_place(function: Any) -> Callable[[Traced, Any], Any]:
    def apply(self: Traced, other: Any) -> Any:
        if isinstance(self.sample, numpy.ndarray):
            raise self.tracing.refuse("the program writes to an array of NumPy that a tensor gave")
        return function(self, other)

    return apply


for _name, _function in operator_methods(_binary, _unary).items():
    setattr(Traced, _name, _function)
for _name in BINARY:
    setattr(Traced, f"__i{_name.strip('_')}__", _in_place(getattr(operator, _name)))


class TracedShape(tf.TensorShape):  # type: ignore[misc]
    """The shape of a symbolic tensor as a program sees it: sizes that are not known yet are traced numbers."""

    def __init__(self, tensor: Any, shape: Any, tracing: Tracing) -> None:
        super().__init__(shape)
        self.tensor, self.tracing = tensor, tracing

    def size(self, axis: int) -> Any:
        """One size."""
        known = tf.TensorShape.__getitem__(self, axis)
        if known is not None:
            return known
        place = axis if axis >= 0 else axis + self.rank
        return traced_call(self.tracing, size_of, (self.tensor, place), {}, 2)

    def sizes(self) -> list[Any]:
        """All sizes."""
        return [self.size(axis) for axis in range(self.rank)]

    def __getitem__(self, key: Any) -> Any:
        if self.rank is None or self.tracing.is_inside_library():
            return super().__getitem__(key)
        if isinstance(key, slice):
            sizes = self.sizes()[key]
            return Sizes(sizes) if has_traced(sizes) else tf.TensorShape(sizes)
        return self.size(key)

    def __iter__(self) -> Any:
        if self.rank is None or self.tracing.is_inside_library():
            return super().__iter__()
        return iter(self.sizes())

    def as_list(self) -> list[Any]:
        """All sizes."""
        return super().as_list() if self.rank is None or self.tracing.is_inside_library() else self.sizes()

    def num_elements(self) -> Any:
        """The product of all sizes."""
        if self.tracing.is_inside_library():
            return super().num_elements()
        return functools.reduce(operator.mul, self.sizes(), 1)

    def __eq__(self, other: Any) -> Any:
        return super().__eq__(other) if self.tracing.is_inside_library() else self._same(other)

    def __ne__(self, other: Any) -> Any:
        return super().__ne__(other) if self.tracing.is_inside_library() else not self._same(other)

    __hash__ = tf.TensorShape.__hash__

    def _same(self, other: Any) -> bool:
        """Whether two shapes are the same: their ranks may tell, and otherwise all sizes are needed."""
        sizes = list(other.sizes() if isinstance(other, TracedShape) else other) if _is_sized(other) else None
        if sizes is None or len(sizes) != self.rank:
            return False
        pairs = zip(self.sizes(), sizes, strict=True)
        return all(type(one) is not int or type(size) is not int or one == size for one, size in pairs) and all(
            map(operator.eq, self.sizes(), sizes)
        )

    def __add__(self, other: Any) -> Any:
        return super().__add__(other) if self.tracing.is_inside_library() else Sizes([*self.sizes(), *other])

    def __radd__(self, other: Any) -> Any:
        return super().__radd__(other) if self.tracing.is_inside_library() else Sizes([*other, *self.sizes()])

    def is_fully_defined(self) -> bool:
        """Whether all sizes are numbers, which they are for a program that runs eagerly."""
        return super().is_fully_defined() if self.tracing.is_inside_library() else True

    def __str__(self) -> str:
        if self.tracing.is_inside_library():
            return str(super().__str__())
        raise self.tracing.needs_known_shape(self.tensor)

    def __repr__(self) -> str:
        return str(self) if not self.tracing.is_inside_library() else super().__repr__()


def _is_sized(value: Any) -> bool:
    return isinstance(value, (list, tuple, tf.TensorShape)) and getattr(value, "rank", 0) is not None


class Sizes(list[Any]):
    """Some sizes out of a shape, or more than those, where a program would have a shape again."""

    @property
    def rank(self) -> int:
        """How many sizes."""
        return len(self)

    def as_list(self) -> list[Any]:
        """All sizes."""
        return list(self)

    def num_elements(self) -> Any:
        """The product of all sizes."""
        return functools.reduce(operator.mul, self, 1)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Sizes(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        return Sizes([*self, *other])

    def __eq__(self, other: Any) -> bool:
        sizes = list(other) if isinstance(other, (tuple, list, tf.TensorShape)) else other
        return isinstance(sizes, list) and len(sizes) == len(self) and all(map(operator.eq, self, sizes))

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]
