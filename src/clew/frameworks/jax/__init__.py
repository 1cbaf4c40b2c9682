"""What Clew knows about JAX: how its jaxprs become graphs of readable calls, and what its functions and values are.

``wake`` is called once, when the first value of JAX turns up. It hides JAX's own frames, so that a node's source line
is the user's, and gives the guest through which the other rooms ask.
"""

from __future__ import annotations

import os
import threading

import jax

from clew.frameworks.jax.guest import JaxGuest
from clew.ir.source import hide_folder

__all__ = ["JaxGuest", "wake"]

_waking = threading.Lock()
_guests: list[JaxGuest] = []


def wake() -> JaxGuest:
    """The guest of JAX, the same one for all threads that ask at once."""
    with _waking:
        if not _guests:
            hide_folder(os.path.dirname(os.path.abspath(jax.__file__)) + os.sep)
            _guests.append(JaxGuest())
        return _guests[0]
