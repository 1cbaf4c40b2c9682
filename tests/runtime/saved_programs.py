"""Programs that rely on variables around them, for graphs that are saved here and loaded in another process."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import torch

logger = logging.getLogger(__name__)
SCALES = [2.0, 3.0]
TABLE = {"relu": torch.relu, "abs": torch.abs}
SHIFT = torch.tensor([1.0, -1.0])


def doubled(times: int) -> Callable[[Any], Any]:
    """A decorator that keeps a number in a closure."""

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call(x: torch.Tensor) -> Any:
            return function(x) * times

        return call

    return decorate


@doubled(times=2)
def scaled(x: torch.Tensor) -> torch.Tensor:
    """Uses a list, a table of functions, a tensor and a logger."""
    logger.debug("scaled")
    return TABLE["abs"](x * SCALES[0]) + SHIFT
