"""What Clew knows about PyTorch: effects, names, spellings, types and signatures of its functions and values.

``wake`` is called once, when the first value of torch turns up. It hides torch's own frames, so that a node's source
line is the user's, and gives the guest through which the other rooms ask.
"""

from __future__ import annotations

import os

import torch

from clew.frameworks.torch.guest import TorchGuest
from clew.ir.source import hide_folder

__all__ = ["TorchGuest", "wake"]


def wake() -> TorchGuest:
    """The guest of torch."""
    hide_folder(os.path.dirname(os.path.abspath(torch.__file__)) + os.sep)
    return TorchGuest()
