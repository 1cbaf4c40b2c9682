"""What a shared program may call: the same few names for each framework, and how its arrays are made and compared.

A ``Space`` imports its framework when it is first asked for something, so that listing the tests imports none.
"""

from __future__ import annotations

import functools
import importlib
import random
from collections.abc import Callable
from typing import Any

import numpy

_NUMPY = (
    "exp sin tanh sqrt abs where sum max mean matmul stack reshape cumsum sort argmax minimum einsum zeros transpose"
)
_TENSORFLOW = {
    "sum": "reduce_sum", "max": "reduce_max", "mean": "reduce_mean", "concat": "concat", "cast": "cast",
}  # fmt: skip
_TORCH = {"max": "amax", "concat": "concat", "transpose": "t"}
WIDE = {"numpy": "float64", "torch": "float32", "jax": "float32", "tensorflow": "float32"}


class Space:
    """The functions of one framework by the names that shared programs use."""

    def __init__(self, name: str) -> None:
        self.name = name

    @functools.cached_property
    def package(self) -> Any:
        """The namespace of the framework's functions."""
        return importlib.import_module("jax.numpy" if self.name == "jax" else self.name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        own = {"tensorflow": _TENSORFLOW, "torch": _TORCH}.get(self.name, {}).get(name, name)
        if self.name == "tensorflow" and name == "reshape":
            return self.package.reshape
        if own == "cast" and self.name != "tensorflow":
            return self._cast
        if own == "concat" and self.name in ("numpy", "jax"):
            own = "concatenate"
        return getattr(self.package, own)

    def _cast(self, array: Any, dtype: Any) -> Any:
        return array.to(dtype) if self.name == "torch" else array.astype(dtype)

    def array(self, values: Any, dtype: str = "") -> Any:
        """An array of the framework."""
        made = numpy.asarray(values)
        made = made.astype(dtype or (WIDE[self.name] if made.dtype.kind == "f" else "int32"))
        if self.name == "numpy":
            return made
        maker = {"torch": "from_numpy", "jax": "asarray", "tensorflow": "constant"}[self.name]
        return getattr(self.package, maker)(made)

    def uniform(self, count: int) -> Any:
        """Random numbers from the stream of the framework that everybody shares."""
        if self.name == "tensorflow":
            return self.package.random.uniform([count])
        return self.package.rand(count) if self.name == "torch" else self.package.random.rand(count)

    def seed(self, number: int) -> None:
        """Let all streams of random numbers start anew."""
        random.seed(number)
        numpy.random.seed(number)
        if self.name == "torch":
            self.package.manual_seed(number)
        if self.name == "tensorflow":
            self.package.random.set_seed(number)

    def is_array(self, value: Any) -> bool:
        """True for arrays of the framework and NumPy's numbers."""
        if isinstance(value, (numpy.ndarray, numpy.generic)):
            return True
        kinds = {"torch": "Tensor", "tensorflow": "Tensor", "jax": "ndarray", "numpy": "ndarray"}
        return isinstance(value, getattr(self.package, kinds[self.name]))

    def difference(self, wanted: Any, got: Any) -> str:
        """What differs between two nests, in words; empty if nothing does."""
        if type(wanted) is not type(got):
            return f"a {type(got).__name__} instead of a {type(wanted).__name__}"
        if self.is_array(wanted):
            left, right = numpy.asarray(wanted), numpy.asarray(got)
            is_same = left.dtype == right.dtype and left.shape == right.shape
            is_same = is_same and numpy.array_equal(left, right, equal_nan=left.dtype.kind in "fc")
            return "" if is_same else f"{got} instead of {wanted}"
        if isinstance(wanted, (dict, list, tuple)):
            if len(wanted) != len(got) or (isinstance(wanted, dict) and list(wanted) != list(got)):
                return f"{got} instead of {wanted}"
            pairs = zip(*(one.values() if isinstance(one, dict) else one for one in (wanted, got)), strict=True)
            return next((told for pair in pairs if (told := self.difference(*pair))), "")
        if hasattr(wanted, "__dict__") and not callable(wanted):
            return self.difference(vars(wanted), vars(got))
        return "" if wanted is got or wanted == got else f"{got} instead of {wanted}"

    def copied(self, value: Any) -> Any:
        """A nest of its own, with arrays of its own where they can be written to."""
        if isinstance(value, tuple):
            items = [self.copied(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
        if isinstance(value, list):
            return [self.copied(item) for item in value]
        if isinstance(value, dict):
            return {key: self.copied(item) for key, item in value.items()}
        if self.name == "torch" and self.is_array(value):
            return value.clone()
        return value.copy() if isinstance(value, numpy.ndarray) else value


SPACES: dict[str, Space] = {name: Space(name) for name in ("numpy", "torch", "jax", "tensorflow")}
Make = Callable[[Space, Any], Callable[..., Any]]
