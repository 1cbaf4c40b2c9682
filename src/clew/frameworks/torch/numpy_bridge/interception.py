"""Programs that use torch and NumPy: what is replaced for the time of a capture besides what every capture replaces.

Only where the program names NumPy, or a value of NumPy's has come in, its functions are led to the recorder of arrays:
those that make arrays, that draw random numbers, and all calls of NumPy in the program's own code. Builtins keep
numbers of both traced. Arrays around the program are stand-ins for the time of the run.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from clew.capture.guards.notes import Variable
from clew.capture.patches import Patches
from clew.capture.state.reachable import attribute_names, global_names
from clew.frameworks.numpy import call_sites, constructors, opaque_calls, random_streams
from clew.frameworks.numpy.array_proxy import is_traced
from clew.frameworks.numpy.number_functions import BUILTINS
from clew.frameworks.numpy.opaque_calls import cannot_follow
from clew.frameworks.torch.modules.state import OWN
from clew.frameworks.torch.number_functions import FOR_PYTHON, builtins_for
from clew.frameworks.torch.numpy_bridge.arrays import ARRAYS, OF_NUMPY, ArrayRecorder
from clew.ir.source import is_installed

if TYPE_CHECKING:
    from clew.frameworks.torch.capture import Run
    from clew.frameworks.torch.recorder import TorchRecorder

Current: TypeAlias = "Callable[[], TorchRecorder | None]"
CurrentArrays: TypeAlias = Callable[[], ArrayRecorder | None]


def reaches_numpy(functions: Iterable[FunctionType]) -> bool:
    """Whether some of the user's functions name NumPy, something of it, or ``x.numpy()``."""
    return any(_names_numpy(function) for function in functions if not is_installed(function.__code__))


def _names_numpy(function: FunctionType) -> bool:
    if "numpy" in attribute_names(function.__code__):
        return True
    named = [function.__globals__.get(name) for name in global_names(function.__code__)]
    held = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    return any(map(_is_of_numpy, [*named, *held, *(function.__defaults__ or ())]))


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_of_numpy(value: Any) -> bool:
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(value, OF_NUMPY) or str(home).partition(".")[0] == "numpy"


def install(patches: Patches, current: CurrentArrays, of_torch: Current, functions: list[FunctionType]) -> None:
    """Let NumPy report to the recorder of arrays that ``current`` names, if one is recording, whose owner is the one
    that ``of_torch`` names."""
    functions = [*functions, *opaque_calls.functions()]
    constructors.install(patches, current, functions)
    random_streams.install(patches, current, functions)
    call_sites.install(patches, current, functions, _substitutes(of_torch))


def enter_arrays(run: Run, parts: Iterable[Any]) -> None:
    """Put stand-ins in the place of arrays around a program that uses NumPy too; ``parts`` are its modules and the
    objects behind it. All that is held there, however deep, must be found."""
    recorder, around = run.recorder, run.surroundings
    ends = [*run.state.memory.ends.values(), *(stream for _, stream in run.state.streams)]
    held = [value for value in ends if isinstance(value, ARRAYS) and recorder.is_array(value)]
    if not held and recorder.arrays is None:
        return
    variables = [Variable(holder, name) for holder, name in around.everything()]
    kinds = [kind for kind in around.classes() if around.may_vary(kind)]
    variables += [Variable(kind, name) for kind in kinds for name in vars(kind) if not name.startswith("__")]
    spaces = [_attributes_of(part) for part in parts]
    variables += [Variable(names, name) for names in spaces for name in list(names) if name not in OWN]
    variables += run.findings.packages.variables()
    arrays = recorder.border()
    arrays.places.enter(variables, around.functions, ())
    if any(id(value) not in arrays.standing for value in held):
        raise cannot_follow("an array in a deque or a set around the program")


def _attributes_of(part: Any) -> dict[str, Any]:
    """The attributes of a module, past the watch on what is read, or of any other object."""
    is_module = isinstance(part, torch.nn.Module)
    found: dict[str, Any] = object.__getattribute__(part, "__dict__") if is_module else getattr(part, "__dict__", {})
    return found


@functools.cache
def _substitutes(current: Current) -> dict[str, Callable[..., Any]]:
    """What stands for each builtin in the program's functions."""
    ours = builtins_for(current)
    names = [name for name in BUILTINS if name != "type"]  # which answers for all stand-ins by other means
    return {name: _either(vars(builtins)[name], BUILTINS[name], ours.get(name)) for name in names}


def _either(plain: Any, of_numpy: Callable[..., Any], of_torch: Any) -> Callable[..., Any]:
    """A builtin that keeps numbers of both traced."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if of_torch is not None and sys._getframe(1).f_code.co_name in FOR_PYTHON:
            return plain(*args, **kwargs)
        if any(map(is_traced, args)) or of_torch is None:
            return of_numpy(*args, **kwargs)
        return of_torch(*args, **kwargs)

    return call
