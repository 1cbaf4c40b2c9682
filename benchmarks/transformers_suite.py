"""The architectures of the installed transformers as a suite of the coverage benchmark.

A candidate is a small random model with keyword arguments that fit its signature: all levels of shrinking, and for each
all recipes of inputs, are offered until one runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import transformers
from torch import nn

from benchmarks import architectures
from benchmarks.examination import Candidate, Variation, first_line
from benchmarks.example_inputs import Recipe, recipes

transformers.logging.set_verbosity_error()


CLASSES = 4  # of one type are tried, when the bare model does not run


class TransformersSuite:
    """Every model type of transformers."""

    def names(self) -> list[str]:
        """All model types that have a model class."""
        return architectures.names()

    def candidates(self, name: str, reasons: list[str]) -> Iterator[Candidate]:
        """Small models of this type with inputs, the most shrunk and the plainest first."""
        classes = min(architectures.model_classes(name), CLASSES)
        tries = [(0, level) for level in architectures.LEVELS]
        tries += [(choice, level) for choice in range(1, classes) for level in architectures.LEVELS[:2]]
        for choice, level in tries:
            try:
                model = architectures.build(name, level, choice)
                found = list(recipes(model))
            except Exception as error:
                reasons.append(f"{level}: build: {first_line(error)}")
                continue
            for recipe in found:
                yield Candidate(f"{level}: {','.join(recipe.names)} {recipe.layout}", model, _Maker(model, recipe))


class _Maker:
    """Makes keyword arguments by a recipe."""

    def __init__(self, model: nn.Module, recipe: Recipe) -> None:
        self.model = model
        self.recipe = recipe

    def __call__(self, variation: Variation) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (), self.recipe.make(self.model, *variation)
