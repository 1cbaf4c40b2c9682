"""Tensors whose rank nobody sees: ``x.squeeze().repeat(1, heads, 1)`` has the same rank whether there is one example or
several.

In comes what ``squeeze()`` gave, and the frame that called it. Where that frame hands the tensor to ``repeat`` and to
nobody else, a first size that is not one in the example may be one at another call: the rank is not relied on. If
``repeat`` turns out to name fewer dimensions than the tensor had before, the rank is relied on after all.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from clew.capture.bytecode.instructions import instructions_at
from clew.ir.arguments import leaves
from clew.ir.node import Node

_OWN = "clew."


def is_only_repeated(node: Node) -> bool:
    """Whether what the program is about to get from ``squeeze()`` goes into ``repeat`` alone."""
    if node.op != "call_method" or len(node.args) != 1 or node.kwargs:
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_OWN):
        frame = frame.f_back
    if frame is None:
        return False
    steps, place = instructions_at(frame.f_code, frame.f_lasti)
    following = [step for step in steps[place + 1 :] if step.opname not in ("CACHE", "PRECALL")][:1]
    return steps[place].opname in ("CALL", "CALL_METHOD") and any(map(_calls_repeat, following))


def _calls_repeat(step: Any) -> bool:
    is_method = step.opname == "LOAD_METHOD" or (
        step.opname == "LOAD_ATTR" and sys.version_info >= (3, 12) and step.arg is not None and step.arg & 1 == 1
    )
    return is_method and step.argval == "repeat"


def names_each_dimension(repeats: tuple[Any, ...], rank: int) -> bool:
    """Whether the arguments of ``repeat`` are numbers, at least as many as a tensor has dimensions."""
    return sum(1 for _ in leaves(repeats)) >= rank
