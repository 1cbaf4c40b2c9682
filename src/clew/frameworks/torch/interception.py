"""All that a capture replaces for its time besides torch's classes: in torch, in Python's modules, in the program.

What is replaced in the same way for every program is worked out once; in the modules of a program it is looked for at
each capture, since they may hold other values by then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FrameType, FunctionType
from typing import Any, TypeAlias

import torch

from clew.capture.patches import Patches, Stock
from clew.capture.python import imported_names, replacements
from clew.capture.python.clocks import clock
from clew.capture.python.draws import recorders
from clew.capture.python.files import refusing
from clew.capture.python.listener import Listener
from clew.capture.recording.opaque_calls import CannotFollow
from clew.capture.state.surroundings import Surroundings
from clew.frameworks.numpy.opaque_calls import NUMPY_FOLDER
from clew.frameworks.torch import caches, facts, number_functions, tracing_tools
from clew.frameworks.torch.calls import constructors, modes, tensor_attributes
from clew.frameworks.torch.modules import optimizers, training_mode
from clew.frameworks.torch.numpy_bridge import arrays, random_streams
from clew.frameworks.torch.recorder import TorchRecorder
from clew.frameworks.torch.transforms import interception as transforms

Current: TypeAlias = Callable[[], TorchRecorder | None]


def install(patches: Patches, current: Current) -> None:
    """Replace what is the same for every program; ``current`` names the capture that is recording, if one is."""
    calls = (modes, random_streams, tensor_attributes, optimizers)
    others = (transforms, constructors, facts, training_mode, tracing_tools, arrays)
    for part in (*calls, *others):
        part.install(patches, current)
    _install_saving(patches)
    number_functions.install(patches)
    imported_names.replace_in_importers(patches)


@functools.cache
def _stock_for(current: Current) -> Callable[[Iterable[FunctionType]], Stock]:
    """What makes the replacements for the code of some functions, which stay the same as long as that does."""

    def stock_of(functions: Iterable[FunctionType]) -> Stock:
        asking, calling = modes.asking_for_types(functions), number_functions.calling_builtins(functions)

        def replace(patches: Patches) -> None:
            modes.install_in(patches, asking)
            number_functions.install_in(patches, current, calling)

        return Stock(replace)

    return stock_of


def install_in(
    patches: Patches,
    current: Current,
    surroundings: Surroundings,
    parts: list[Any],
    met: Iterable[caches.Place],
    ends: Iterable[Any],
) -> None:
    """Replace what the modules and functions of a program hold; ``parts`` are the modules of torch it consists of,
    ``met`` the caches of other packages that an earlier run came to, ``ends`` other objects that it reaches."""
    attributes = [object.__getattribute__(part, "__dict__") for part in parts]  # past the watch on what is read
    replacements.install_in(patches, surroundings, attributes)
    stock = surroundings.derived(_stock_for(current))
    if number_functions.are_builtins(surroundings.namespaces.values()):
        patches.from_stock(stock)
    else:
        stock.find(patches)
    optimizers.install_in(patches, current, surroundings, ends)
    caches.install_in(patches, current, surroundings, parts, met)


# ---- plain Python ----------------------------------------------------------------------------------------------------
#
# What a torch run does with what it hears of plain Python: clocks and draws are calls of the graph. Whoever acts or
# draws while the program runs is heard, libraries too; clocks are those that the program's modules read.


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


def _install_saving(patches: Patches) -> None:
    """Let what torch writes to files by its own means report too."""
    saving = functools.partial(refusing, what="a file being written")
    patches.on_class(torch.serialization._open_zipfile_writer_file, "__init__", saving)
