"""What a JAX run does with what it hears of plain Python: it refuses whatever would be frozen in the jaxpr.

What can be asked again, variables of the environment and files, is guarded.
"""

from __future__ import annotations

from typing import Any

from clew.capture.python.listener import Listener
from clew.capture.state.surroundings import Surroundings
from clew.frameworks.jax.recorder import JaxRecorder
from clew.frameworks.numpy.opaque_calls import NUMPY_FOLDER


class JaxListener(Listener):
    """The listener of one run."""

    fixes = ("pass the value as an argument", "draw random numbers with jax.random and a key")
    through = (NUMPY_FOLDER,)

    def __init__(self, recorder: JaxRecorder, surroundings: Surroundings) -> None:
        super().__init__(recorder)
        self._surroundings = surroundings

    def has_stream(self, stream: Any) -> bool:
        """Whether a stream is one from around the program."""
        return any(stream is own for own in self._surroundings.python_streams())
