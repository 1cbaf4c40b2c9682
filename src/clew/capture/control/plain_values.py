"""``a if test else b`` where both are numbers that are only read: constants, variables, attributes of objects.

Nothing needs to run twice for these, and nothing to be undone: the two numbers come out of the code of the two sides,
and one node chooses between them. All other conditions are branches, with a body for each side.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

from clew.capture.control.snapshot import cells_of
from clew.capture.example.bytecode import instructions_of
from clew.capture.example.guards import MISSING
from clew.ir.control_flow import choose
from clew.ir.node import Node
from clew.ir.types import ScalarType

_BOOL = ScalarType("bool")
_NUMBERS = (bool, int, float)
_NO_VALUE = frozenset({"RESUME", "COPY_FREE_VARS", "RETURN_VALUE", "NOP", "CACHE", "PUSH_NULL"})


def number_read_by(side: Any, attribute: Callable[[Any, str], Any]) -> Any:
    """The number that one side reads without running any code; ``MISSING`` if it does anything else.

    ``attribute`` gives what an object holds under a name.
    """
    value: Any = MISSING
    if type(side) is not FunctionType:
        return MISSING
    for step in instructions_of(side.__code__):
        if step.opname in ("LOAD_CONST", "RETURN_CONST"):
            value = step.argval
        elif step.opname == "LOAD_DEREF":
            value = _contents(cells_of(side).get(step.argval))
        elif step.opname == "LOAD_ATTR" and value is not MISSING:
            value = attribute(value, step.argval)
        elif step.opname not in _NO_VALUE:
            return MISSING
    return value if type(value) in _NUMBERS else MISSING


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except (AttributeError, ValueError):  # there is none, or it is not filled
        return MISSING


def chosen(recorder: Any, predicate: Node, numbers: tuple[Any, Any], answer: bool) -> Any:
    """The first number where the predicate, which is ``answer`` now, is true, else the second: what a node gives."""
    if repr(numbers[0]) == repr(numbers[1]):  # a zero has a sign
        return numbers[0]
    if type(numbers[0]) is bool:  # one is True, the other False
        return _truth(recorder, predicate, numbers[0], answer)
    if predicate.target is operator.not_:
        predicate, numbers, answer = predicate.args[0], numbers[::-1], not answer  # type: ignore[assignment]
    node = recorder.create(choose, (predicate, *numbers), is_result=True)
    return recorder.result(numbers[not answer], node)


def _truth(recorder: Any, predicate: Node, held: bool, answer: bool) -> Any:
    """What a node gives that is ``held`` where the predicate, which is ``answer`` now, is true."""
    if held and predicate.value_type == _BOOL:
        return recorder.result(answer, predicate)
    function = bool if held else operator.not_
    return recorder.result(answer is held, recorder.create(function, (predicate,), is_result=True))
