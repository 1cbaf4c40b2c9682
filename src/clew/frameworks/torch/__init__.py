"""What Clew knows about PyTorch: effects, names, spellings, types and signatures of its functions and values.

``wake`` is called once, when the first value of torch turns up. It hides torch's own frames, so that a node's source
line is the user's, and gives the guest through which the other rooms ask.
"""

from __future__ import annotations

import os
import threading

import torch
from torch.utils import _pytree as pytree

from clew.capture.symbolic.real_values import register_watch
from clew.frameworks.torch.guest import TorchGuest
from clew.frameworks.torch.symbolic import watch_torch
from clew.ir.arguments import immutable_dict, immutable_list
from clew.ir.source import hide_folder

__all__ = ["TorchGuest", "wake"]


_waking = threading.Lock()
_guests: list[TorchGuest] = []


def wake() -> TorchGuest:
    """The guest of torch, the same one for all threads that ask at once."""
    with _waking:
        if not _guests:
            hide_folder(os.path.dirname(os.path.abspath(torch.__file__)) + os.sep)
            _register_containers()
            register_watch("torch", watch_torch)
            _guests.append(TorchGuest())
        return _guests[0]


def _register_containers() -> None:
    """Let torch's own functions on nests enter the immutable lists and dicts of nodes."""
    pytree.register_pytree_node(
        immutable_list, lambda nest: (list(nest), None), lambda children, context: immutable_list(children)
    )
    pytree.register_pytree_node(
        immutable_dict,
        lambda nest: (list(nest.values()), list(nest)),
        lambda children, keys: immutable_dict(zip(keys, children, strict=True)),
    )
