"""What Clew knows about NumPy: effects, names, spellings and types of its functions and values, and their capture.

``wake`` is called once, when the first value of NumPy turns up. It hides NumPy's own frames, so that a node's source
line is the user's, and gives the guest through which the other rooms ask.
"""

from __future__ import annotations

import os
import threading

import numpy

from clew.codegen.guards import by_equality
from clew.frameworks.numpy.guest import NumpyGuest
from clew.ir.source import hide_folder

__all__ = ["NumpyGuest", "wake"]


_waking = threading.Lock()
_guests: list[NumpyGuest] = []


def wake() -> NumpyGuest:
    """The guest of NumPy, the same one for all threads that ask at once."""
    with _waking:
        if not _guests:
            hide_folder(os.path.dirname(os.path.abspath(numpy.__file__)) + os.sep)
            by_equality.update(kind for kind in vars(numpy.dtypes).values() if isinstance(kind, type))
            _guests.append(NumpyGuest())
        return _guests[0]
