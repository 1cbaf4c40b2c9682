"""What programs ask torch.fx to note with the nodes that are recorded: ``torch.fx.traceback.preserve_node_meta``.

In comes a node that was recorded just now, or one that is about to be interpreted; out go the notes that stand now, put
into the ``meta`` of the first, and a context in which the notes of the second stand. Outside of
``preserve_node_meta`` nothing is noted.
"""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager
from typing import Any

from torch.fx import proxy, traceback

from clew.ir.node import Node

_FIELDS = (*proxy._COPY_META_FIELDS, "stack_trace")


def keeps_notes() -> bool:
    """Whether notes are to be kept now."""
    return traceback.should_preserve_node_meta


def note(node: Node) -> None:
    """Put into ``node.meta`` what is to be noted with each node that is recorded now."""
    current = traceback.get_current_meta()
    replayed = traceback.get_current_replay_node()
    node.meta.update({field: copy.copy(current[field]) for field in _FIELDS if field in current})
    if replayed is not None:
        node.meta["is_functional_regenerated"] = True
        node.meta.update({field: replayed.meta[field] for field in ("custom", "stack_trace") if field in replayed.meta})
    if (number := proxy._get_seq_nr(node.name)) is not None:
        node.meta["seq_nr"] = number
    is_of_backward = traceback.GRADIENT_ACC_SPECIAL_STACK in (current.get("stack_trace") or "")
    if is_of_backward:
        node.meta["is_gradient_acc"] = True
    if is_of_backward or current.get("autograd_backward"):
        node.meta["autograd_backward"] = True


def noting(node: Node, reader: str) -> AbstractContextManager[None]:
    """A context in which what is recorded has the notes of ``node``, which ``reader`` interprets."""
    given: Any = node
    return traceback.set_current_meta(given, reader)
