"""The guest of NumPy: answers the questions of the rooms by calling the files beside this one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from clew.frameworks.numpy import effects, names, types
from clew.frameworks.numpy.capture import capture
from clew.ir.guests import Effect, Guest


class NumpyGuest(Guest):
    """What the rooms may ask about NumPy."""

    package = "numpy"
    array_class = numpy.ndarray
    constant_classes = (numpy.dtype, numpy.generic)

    def owns(self, value: Any) -> bool:
        """Whether an argument is an array, a number or a generator of NumPy's."""
        streams = (numpy.random.Generator, numpy.random.RandomState)
        return isinstance(value, (numpy.ndarray, numpy.generic, numpy.ufunc, *streams))

    def capture(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: Any) -> Any:
        """Run ``fn`` on an example and record it."""
        return capture(fn, args, kwargs, options)

    def function_effect(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
        """The effect of calling a function of NumPy's; None for functions that nobody vouched for."""
        return effects.function_effect(target, args, kwargs)

    def method_effect(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Effect | None:
        """The effect of calling the method ``name`` of an array or generator."""
        return effects.method_effect(name, args, kwargs)

    def qualified_name(self, function: Any) -> str | None:
        """The public name of a function or class of NumPy."""
        return names.qualified_name(function)

    def spell(self, value: Any, name_of: Callable[[Any], str]) -> str | None:
        """The expression of a dtype or number; None for arrays."""
        return types.spell(value, name_of)

    def type_of(self, value: Any) -> Any:
        """The IR type of an array or another value of NumPy's."""
        return types.type_of(value)

    def same_value(self, left: Any, right: Any) -> bool | None:
        """Whether two arrays, or two plain values of NumPy's, are the same constant."""
        return types.same_value(left, right)

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

    def as_numpy(self, value: Any) -> Any:
        """The array itself."""
        return value
