"""The register of programs that one capture should serve for all inputs, and tensors for their calls."""

from __future__ import annotations

import numpy
import tensorflow as tf

from tests.frameworks.hard_programs import Register

PROGRAMS = Register()
program, made = PROGRAMS.program, PROGRAMS.made


def floats(*sizes: int, seed: int = 0, dtype: str = "float32") -> tf.Tensor:
    """Numbers between -2 and 2."""
    drawn = numpy.random.default_rng(seed + sum(sizes)).uniform(-2, 2, sizes)
    return tf.constant(drawn.astype(dtype))


def ints(*sizes: int, most: int = 9, seed: int = 0) -> tf.Tensor:
    """Whole numbers from 0 on."""
    return tf.constant(numpy.random.default_rng(seed + sum(sizes)).integers(0, most, sizes).astype("int32"))


VECTORS = ((floats(4),), (floats(4, seed=9) * 3,), (floats(7),), (floats(1),), (-floats(12),))
MATRICES = ((floats(3, 4),), (floats(3, 4, seed=9) * 3,), (floats(5, 4),), (floats(1, 4),), (floats(2, 7),))
