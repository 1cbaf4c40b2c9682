"""What Clew knows about TensorFlow: how its graphs become graphs of readable calls, and its types, names and effects.

``wake`` is called once, when TensorFlow first turns up. It hides TensorFlow's and Keras' own frames, so that a node's
source line is the user's, and gives the guest through which the other rooms ask.
"""

from __future__ import annotations

import importlib.util
import os
import threading

import tensorflow as tf

from clew.frameworks.tensorflow.guest import TensorflowGuest
from clew.ir.source import hide_folder

__all__ = ["TensorflowGuest", "wake"]

_waking = threading.Lock()
_guests: list[TensorflowGuest] = []


def wake() -> TensorflowGuest:
    """The guest of TensorFlow, the same one for all threads that ask at once."""
    with _waking:
        if not _guests:
            hide_folder(os.path.dirname(os.path.abspath(tf.__file__)) + os.sep)
            keras = importlib.util.find_spec("keras")
            if keras is not None and keras.origin is not None:
                hide_folder(os.path.dirname(os.path.abspath(keras.origin)) + os.sep)
            _guests.append(TensorflowGuest())
        return _guests[0]
