"""All that is replaced in plain Python for the time of a capture, whatever the framework.

Comes in: the patches of a run and the surroundings of its program. In Python's own modules the replacements are the same
for every program, and worked out once; in the modules of a program they are looked for at each capture.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from clew.capture.example.surroundings import Surroundings
from clew.capture.python import clocks, entropy, environment, files, imported_names, processes, random_numbers
from clew.capture.symbolic.patches import Patches, Stock

_FUNCTIONS = (BuiltinFunctionType, MethodType)


def _replace_in_python(patches: Patches) -> None:
    for part in (clocks, entropy, environment, files, processes, random_numbers):
        part.install(patches)
    imported_names.replace_in_importers(patches)


_stock = Stock(_replace_in_python)


def install(patches: Patches) -> None:
    """Replace what is the same for every program."""
    patches.from_stock(_stock)
    processes.install_for_people(patches)


def install_in(patches: Patches, surroundings: Surroundings, attributes: Iterable[dict[str, Any]] = ()) -> None:
    """Replace what the modules, classes and functions of a program hold, and these dicts of attributes."""
    namespaces = [*surroundings.namespaces.values(), *attributes]
    imported_names.replace_in(patches, namespaces, surroundings.closures())
    imported_names.replace_in_defaults(patches, surroundings.derived(_with_functions_as_defaults))
    imported_names.replace_in_classes(patches, surroundings.builtins_in_classes())
    random_numbers.install_in(patches, surroundings)


def _with_functions_as_defaults(functions: Iterable[FunctionType]) -> list[FunctionType]:
    """The functions that have others, not written in Python, or bound methods, as default values."""
    found = []
    for one in functions:
        kinds = set(map(type, (*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values())))
        if not kinds.isdisjoint(_FUNCTIONS):
            found.append(one)
    return found
