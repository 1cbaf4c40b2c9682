"""All that a capture replaces for its time besides torch's classes: in torch, in Python's modules, in the program.

What is replaced in the same way for every program is worked out once; in the modules of a program it is looked for at
each capture, since they may hold other values by then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from clew.capture.patches import Patches, Stock
from clew.capture.python import imported_names, replacements
from clew.capture.state.surroundings import Surroundings
from clew.frameworks.torch import caches, facts, number_functions, python_listener, tracing_tools
from clew.frameworks.torch.calls import constructors, modes, tensor_attributes
from clew.frameworks.torch.modules import optimizers, training_mode
from clew.frameworks.torch.numpy_bridge import arrays, random_streams
from clew.frameworks.torch.transforms import autograd_functions, control_flow, interception

if TYPE_CHECKING:
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"


def install(patches: Patches, current: Current) -> None:
    """Replace what is the same for every program; ``current`` names the capture that is recording, if one is."""
    calls = (modes, random_streams, autograd_functions, tensor_attributes, optimizers)
    others = (interception, control_flow, constructors, facts, training_mode, tracing_tools, arrays)
    for part in (*calls, *others):
        part.install(patches, current)
    python_listener.install(patches)
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
