"""The vocabulary of each framework by its name; a framework is imported when a program of it is judged, not before."""

from __future__ import annotations

from benchmarks.fuzz.vocabularies import Vocabulary
from benchmarks.fuzz.vocabularies.jax import JAX
from benchmarks.fuzz.vocabularies.numpy import NUMPY
from benchmarks.fuzz.vocabularies.tensorflow import TENSORFLOW
from benchmarks.fuzz.vocabularies.torch import TORCH

VOCABULARIES: dict[str, Vocabulary] = {one.name: one for one in (TORCH, NUMPY, JAX, TENSORFLOW)}


def vocabulary_of(framework: str) -> Vocabulary:
    """The words of a framework."""
    return VOCABULARIES[framework]
