"""What a NumPy run does with what it hears of plain Python: clocks and draws are calls of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clew.capture.python.clocks import clock
from clew.capture.python.draws import recorders
from clew.capture.python.listener import Listener
from clew.capture.recording.opaque_calls import CannotFollow
from clew.frameworks.numpy.opaque_calls import NUMPY_FOLDER
from clew.frameworks.numpy.recorder import NumpyRecorder

_RECORDERS = recorders()
_STATES = ("getstate", "setstate")


class NumpyListener(Listener):
    """The listener of one run."""

    recorder: NumpyRecorder
    fixes = ('keep the function that does it as one call: clew.wrap("its_name") at module level',)
    kind = CannotFollow
    through = (NUMPY_FOLDER,)

    def is_listening(self) -> bool:
        """Whether the program itself runs now, and not the inside of a recorded call."""
        return self.recorder.running and not self.recorder.depth

    def clock(self, name: str, value: Any) -> Any:
        """The graph reads the clock again."""
        return self.recorder.result(value, self.recorder.create(clock, (name,)))

    def draw(self, name: str, stream: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The graph draws again; where a stream stands, it could not remember."""
        if name in _STATES:
            raise self.refusal(f"{name} of a stream of random numbers")
        return _RECORDERS[name](self.recorder, stream, original, args, kwargs)

    def has_stream(self, stream: Any) -> bool:
        """Whether draws from a stream are followed."""
        return any(stream is own for own in self.recorder.streams.own)
