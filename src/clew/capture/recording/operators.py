"""Operators of the user's program: ``x + y`` stays ``x + y``, though the framework is told of a call of ``add``.

In come the calling frame and the operator whose work the called function does; out comes that operator with its
operands in the order of the source, if the frame stands at that very operator. Read from bytecode, once for each place
in a program. The order matters to readers only: the framework gets the same call either way.
"""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from clew.capture.bytecode.instructions import Instruction, instructions_at

_SIGNS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_PLAIN: dict[str, Callable[..., Any]] = {
    "UNARY_NEGATIVE": operator.neg, "UNARY_POSITIVE": operator.pos, "UNARY_INVERT": operator.invert,
    "BINARY_SUBSCR": operator.getitem, "BINARY_SLICE": operator.getitem,
    "STORE_SUBSCR": operator.setitem, "STORE_SLICE": operator.setitem,
}  # fmt: skip
_MIRRORED = {operator.lt: operator.gt, operator.gt: operator.lt, operator.le: operator.ge, operator.ge: operator.le}
_COMMUTATIVE = frozenset(
    {operator.add, operator.mul, operator.and_, operator.or_, operator.xor, operator.eq, operator.ne}
)
_INDEXING = frozenset({operator.getitem, operator.setitem})
_places: dict[tuple[int, int], tuple[Operation | None, CodeType]] = {}
"""By the identity of code, which is kept, so that it stays its own."""


class Operation(NamedTuple):
    """The operator at one place of a program, and whether a literal stands on its left."""

    function: Callable[..., Any]
    starts_with_literal: bool


class OperatorForm(NamedTuple):
    """The operator whose work a function of the framework does; ``is_reflected`` if the right operand comes first."""

    function: Callable[..., Any]
    is_reflected: bool = False


Written = tuple[Callable[..., Any], tuple[Any, ...]]


def as_written(form: OperatorForm, frame: FrameType | None, args: tuple[Any, ...]) -> Written | None:
    """The operator and its operands in the order of the source; None where the program calls the function by name.

    ``frame`` is the one that makes the call.
    """
    return None if frame is None else written_at(form, operation_at(frame.f_code, frame.f_lasti), args)


def written_at(form: OperatorForm, found: Operation | None, args: tuple[Any, ...]) -> Written | None:
    """The same, where the operator that stands in the program is known."""
    if found is None:
        return None
    if found.function is not form.function:
        mirrored = form.function in _MIRRORED and _MIRRORED[form.function] is found.function
        return (found.function, (args[1], args[0])) if mirrored and len(args) == 2 else None
    if form.function in _INDEXING or len(args) == 1:
        return found.function, args
    if len(args) != 2:
        return None
    turned = form.is_reflected or (found.starts_with_literal and found.function in _COMMUTATIVE)
    return found.function, ((args[1], args[0]) if turned else args)


def operation_at(code: CodeType, offset: int) -> Operation | None:
    """The operator that a function executes at this offset."""
    found = _places.get((id(code), offset))
    if found is None:
        found = _places[id(code), offset] = (_operation(*instructions_at(code, offset)), code)
    return found[0]


def _operation(instructions: list[Instruction], place: int) -> Operation | None:
    instruction = instructions[place]
    name = instruction.opname
    if name == "BINARY_OP":
        function = _SIGNS.get(instruction.argrepr.removesuffix("="))  # on what is immutable, ``x += y`` is ``x + y``
    elif name == "COMPARE_OP":
        function = _COMPARISONS.get(instruction.argrepr.removeprefix("bool(").removesuffix(")"))
    elif name == "CALL_INTRINSIC_1":
        function = operator.pos if "UNARY_POSITIVE" in instruction.argrepr else None
    else:
        function = _PLAIN.get(name)
    return None if function is None else Operation(function, _starts_with_literal(instructions, place))


def _starts_with_literal(instructions: list[Instruction], place: int) -> bool:
    """Whether the left operand is a literal: what is loaded right before the instructions of the right one."""
    held = 0
    while place > 0 and held != 1:
        place -= 1
        instruction = instructions[place]
        if instruction.is_jump_target or instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
            return False
        held += instruction.effect
    return place > 0 and instructions[place - 1].opname == "LOAD_CONST"
