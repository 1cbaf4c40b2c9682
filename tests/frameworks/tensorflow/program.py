"""A program of the corpus: what it is called, how it is called, and what may vary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import tensorflow as tf


@dataclass(frozen=True)
class Program:
    """``arguments(generator, size)`` makes the arguments of a call; with ``specs`` the size may vary."""

    function: Any
    arguments: Callable[[Any, int], tuple[Any, ...]]
    specs: tuple[Any, ...] | None = None
    variables: tuple[Any, ...] = ()
    name: str = ""
    alone: bool = True
    """Whether text and attributes are all it takes to run it in another process."""

    @property
    def label(self) -> str:
        """The name of the test."""
        return self.name or self.function.__name__

    def call(self, seed: int, size: int = 4) -> tuple[Any, ...]:
        """The arguments of one call."""
        return self.arguments(numpy.random.default_rng(seed), size)


def normal(generator: Any, *shape: int) -> Any:
    """A tensor of normal numbers."""
    return tf.constant(generator.normal(size=shape), tf.float32)


def positive(generator: Any, *shape: int) -> Any:
    """A tensor of numbers between a half and two."""
    return tf.constant(generator.uniform(0.5, 2.0, size=shape), tf.float32)


def integers(generator: Any, high: int, *shape: int) -> Any:
    """A tensor of small integers."""
    return tf.constant(generator.integers(0, high, size=shape), tf.int32)


def floats(*shape: int | None) -> Any:
    """The spec of a tensor of floats."""
    return tf.TensorSpec(list(shape), tf.float32)
