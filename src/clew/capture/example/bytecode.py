"""The instructions of the user's functions: where a frame stands, and what stands before and after it.

A code object and an offset in it come in; out come its instructions and the place among them. Each code object is read
once, since a capture asks for many places of the same function.
"""

from __future__ import annotations

import dis
import functools
from bisect import bisect_right
from types import CodeType


@functools.lru_cache(maxsize=512)
def _read(code: CodeType) -> tuple[list[dis.Instruction], list[int]]:
    instructions = list(dis.get_instructions(code))
    return instructions, [instruction.offset for instruction in instructions]


def instructions_at(code: CodeType, offset: int) -> tuple[list[dis.Instruction], int]:
    """The instructions of a function, and the place of the one that is being executed at ``offset``.

    A frame that waits for a function of Python stands inside of the call's cache entries, behind its own offset.
    """
    instructions, offsets = _read(code)
    return instructions, bisect_right(offsets, offset) - 1
