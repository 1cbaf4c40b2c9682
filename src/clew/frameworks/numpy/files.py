"""Functions of NumPy that write files: refused while a program is captured, in any framework.

NumPy opens the file inside of a call that is recorded, where nobody listens, and the capture would have written it.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy
from numpy.lib import format as npy

from clew.capture.patches import Patches
from clew.capture.python.files import refusing
from clew.capture.python.imported_names import noted
from clew.capture.python.listener import current

_WRITING = {numpy: ("save", "savez", "savez_compressed", "savetxt"), npy: ("open_memmap", "write_array")}


_ORIGINALS = {id(vars(home)[name]): name for home, names in _WRITING.items() for name in names}


def install(patches: Patches) -> None:
    """Let these functions refuse."""
    for home, names in _WRITING.items():
        for name in names:
            patches.in_dict(vars(home), name, noted(functools.partial(refusing, what=_what(name))))


def check(function: Any) -> None:
    """Raise for one of these functions that NumPy itself hands on, called under a name that was not replaced."""
    name = _ORIGINALS.get(id(function)) or _ORIGINALS.get(id(getattr(function, "__wrapped__", None)))
    listener = None if name is None else current()
    if name is not None and listener is not None:
        listener.refuse_act(_what(name), sys._getframe(2))


def _what(name: str) -> str:
    return f"a file being written by numpy.{name}"
