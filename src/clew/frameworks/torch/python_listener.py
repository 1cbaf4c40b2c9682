"""What a torch run does with what it hears of plain Python: clocks and draws are calls of the graph.

Whoever acts or draws while the program runs is heard, libraries too; clocks are those that the program's modules read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from clew.capture.patches import Patches
from clew.capture.python.clocks import clock
from clew.capture.python.draws import recorders
from clew.capture.python.files import refusing
from clew.capture.python.listener import Listener
from clew.capture.recording.opaque_calls import CannotFollow
from clew.frameworks.numpy.opaque_calls import NUMPY_FOLDER
from clew.frameworks.torch.recorder import TorchRecorder

_RECORDERS = recorders()


class TorchListener(Listener):
    """The listener of one run."""

    recorder: TorchRecorder
    fixes = ('keep the function that does it as one call: clew.wrap("its_name") at module level',)
    kind = CannotFollow
    through = (NUMPY_FOLDER,)

    def is_listening(self) -> bool:
        """Whether the program itself runs now, and not the inside of a recorded call."""
        return self.recorder.running and not self.recorder.depth

    def is_own(self, frame: FrameType | None) -> bool:
        """Whether one of the program's modules has called."""
        return frame is not None and id(frame.f_globals) in self.recorder.surroundings.namespaces

    def hears(self, frame: FrameType | None) -> bool:
        """Libraries count too, torch itself among them."""
        return True

    def clock(self, name: str, value: Any) -> Any:
        """The graph reads the clock again."""
        return self.recorder.result(value, self.recorder.create(clock, (name,)))

    def draw(self, name: str, stream: Any, original: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The graph draws again."""
        return _RECORDERS[name](self.recorder, stream, original, args, kwargs)

    def has_stream(self, stream: Any) -> bool:
        """Whether draws from a stream are followed."""
        return any(stream is own for own in self.recorder.streams.own)


def install(patches: Patches) -> None:
    """Let what torch writes to files by its own means report too."""
    saving = functools.partial(refusing, what="a file being written")
    patches.on_class(torch.serialization._open_zipfile_writer_file, "__init__", saving)
