"""The guest of NumPy: answers the questions of the rooms by calling the files beside this one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy

from clew.codegen.guards import by_equality
from clew.frameworks.numpy import effects, names, types
from clew.frameworks.numpy.capture import capture
from clew.ir.guests import Guest


class NumpyGuest(Guest):
    """What the rooms may ask about NumPy."""

    package = "numpy"
    array_class = numpy.ndarray
    stream_classes = (numpy.random.Generator, numpy.random.RandomState)
    plain_modules = frozenset({"numpy.dtypes"})
    constant_classes = (numpy.dtype, numpy.generic)
    capture = staticmethod(capture)
    function_effect = staticmethod(effects.function_effect)
    method_effect = staticmethod(effects.method_effect)
    qualified_name = staticmethod(names.qualified_name)
    spell = staticmethod(types.spell)
    type_of = staticmethod(types.type_of)
    same_value = staticmethod(types.same_value)

    def prepare(self) -> None:
        """Guards compare the classes of dtypes by equality."""
        by_equality.update(kind for kind in vars(numpy.dtypes).values() if isinstance(kind, type))

    def owns(self, value: Any) -> bool:
        """Whether an argument is an array, a number or a generator of NumPy's."""
        return isinstance(value, (numpy.ndarray, numpy.generic, numpy.ufunc, *self.stream_classes))

    def memory_of(self, value: Any) -> tuple[Any, int] | None:
        """The array that owns the memory of an array, and its size."""
        if not isinstance(value, (numpy.ndarray, numpy.generic)):
            return None
        owner: Any = value
        while isinstance(getattr(owner, "base", None), numpy.ndarray):
            owner = owner.base
        return id(owner), int(owner.nbytes)

    def bytes_of(self, value: Any) -> int:
        """How many bytes the elements of an array take; those that were broadcast count once."""
        sizes = zip(value.shape, value.strides, strict=True)
        return int(value.itemsize * math.prod(size for size, stride in sizes if stride))

    def copy_of(self, value: Any) -> Any:
        """A copy of an array."""
        return value.copy()

    def random_state(self) -> Callable[[], None]:
        """The function that puts NumPy's own stream of random numbers back."""
        return functools.partial(numpy.random.set_state, numpy.random.get_state())

    def as_numpy(self, value: Any) -> Any:
        """The array itself."""
        return value
