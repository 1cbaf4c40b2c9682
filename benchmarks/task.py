"""A piece of work for the progress bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from benchmarks.figures import Figure


class Task(NamedTuple):
    """What is measured next, and the function that measures it."""

    title: str
    run: Callable[[], list[Figure]]
