"""What a TensorFlow run does with what it hears of plain Python: it refuses whatever would be frozen in the graph.

What can be asked again, variables of the environment and files, is guarded. AutoGraph stands between the program and
what it calls, and is looked through.
"""

from __future__ import annotations

import os
from types import FrameType
from typing import Any

from tensorflow.python import autograph

from clew.capture.python.callers import is_of_program
from clew.capture.python.listener import CHANGES, Listener
from clew.capture.state.surroundings import Surroundings
from clew.errors import CaptureError
from clew.frameworks.numpy.opaque_calls import NUMPY_FOLDER
from clew.frameworks.tensorflow.inputs import TensorRecorder
from clew.frameworks.tensorflow.tracing import Tracing

_AUTOGRAPH = tuple(
    os.path.join(os.path.dirname(autograph.__file__), part) + os.sep for part in ("impl", "operators", "core")
)
"""Where AutoGraph calls what the program calls; elsewhere it reads and writes code, for its own ends."""


class TensorflowListener(Listener):
    """The listener of one run."""

    fixes = ("pass the value as an argument", "use tf.random, tf.timestamp and the like")
    through = (NUMPY_FOLDER, *_AUTOGRAPH)

    def __init__(self, recorder: TensorRecorder, surroundings: Surroundings, tracing: Tracing) -> None:
        super().__init__(recorder)
        self._surroundings = surroundings
        self._tracing = tracing

    def is_listening(self) -> bool:
        """All that happens while TensorFlow traces is the program's, or TensorFlow's own."""
        return True

    def is_own(self, frame: FrameType | None) -> bool:
        """Whether the program's own code has called, through AutoGraph or not."""
        while frame is not None and frame.f_code.co_filename.startswith(_AUTOGRAPH):
            frame = frame.f_back
        return is_of_program(frame)

    def has_stream(self, stream: Any) -> bool:
        """Whether a stream is one from around the program."""
        return any(stream is own for own in self._surroundings.python_streams())

    def refusal(self, what: str, why: str = CHANGES, kind: type[CaptureError] | None = None) -> CaptureError:
        """The error, which the tracing keeps: the program may catch it."""
        return self._tracing.refuse(f"{what} cannot be captured", why, *self.fixes)
