"""How code uses what it loads by name: whether it only looks into it, or hands it on.

A code object comes in. Out come the names (of globals, closures and attributes) of which some value is handed on, to
where anybody may ask for its class or keep it, and those of which an attribute is read. What is only subscripted,
searched, walked or called by method goes nowhere, so that something else may stand for it while the program runs. An
instruction that is not known here counts as handing on.
"""

from __future__ import annotations

import dis
import functools
from types import CodeType
from typing import Any, NamedTuple

from clew.capture.example.bytecode import instructions_of

_LOADS = frozenset("LOAD_GLOBAL LOAD_NAME LOAD_ATTR LOAD_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF".split())
_OTHERS = frozenset(
    "IMPORT_FROM STORE_GLOBAL STORE_NAME DELETE_GLOBAL STORE_DEREF DELETE_DEREF STORE_ATTR DELETE_ATTR".split()
)
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_ON_TOP = frozenset(
    "LOAD_METHOD CONTAINS_OP GET_ITER UNPACK_SEQUENCE POP_TOP UNARY_NOT TO_BOOL DICT_UPDATE DICT_MERGE LIST_EXTEND "
    "POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_TRUE "
    "POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE".split()
)
"""Instructions that look into the value on top of the stack and let go of it."""
_UNDER_ONE = frozenset({"BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR"})
"""Those that look into the value under the topmost one, which is the key."""
_TAKES = {
    "LOAD_CONST": 0, "LOAD_FAST": 0, "LOAD_FAST_CHECK": 0, "LOAD_GLOBAL": 0, "LOAD_DEREF": 0, "PUSH_NULL": 0,
    "NOP": 0, "LOAD_FAST_LOAD_FAST": 0, "LOAD_CLOSURE": 0,
    "LOAD_ATTR": 1, "LOAD_METHOD": 1, "FORMAT_VALUE": 1, "UNARY_NEGATIVE": 1, "UNARY_NOT": 1, "TO_BOOL": 1,
    "BINARY_SUBSCR": 2, "BINARY_OP": 2, "COMPARE_OP": 2, "IS_OP": 2, "CONTAINS_OP": 2, "FORMAT_SIMPLE": 1,
    "CONVERT_VALUE": 1,
}  # fmt: skip
"""How many values an instruction takes from the stack, of those that make a key."""
_TAKES_MORE = {"CALL": 2, "BUILD_TUPLE": 0, "BUILD_STRING": 0}
"""The same, besides the number that the instruction itself tells."""
_SILENT = frozenset({"CACHE", "EXTENDED_ARG", "PRECALL", "KW_NAMES"})
"""Instructions that belong to the next one."""
LOOKING = frozenset({"len", "bool", "list", "tuple", "dict", "sorted", "sum", "min", "max", "any", "all", "enumerate"})
"""Builtins that look into a container and do not keep it."""


_NEAR = 40
ANY_KEY: Any = type("AnyKey", (), {"__repr__": lambda self: "<any>"})()


class Uses(NamedTuple):
    """What some code does with what it loads by name."""

    handed_on: frozenset[str]
    fields: frozenset[tuple[str, str]]
    """A name, and that of an attribute which is read of its value."""
    items_handed_on: frozenset[tuple[str, Any]]
    """A name, and the key of an item of its value which is handed on; ``ANY_KEY`` where the code does not tell."""


@functools.lru_cache(maxsize=16384)
def uses_of(code: CodeType) -> Uses:
    """How a function, and those inside it, use the names that they load."""
    handed_on: set[str] = set()
    fields: set[tuple[str, str]] = set()
    items: set[tuple[str, Any]] = set()
    found = [one for one in instructions_of(code) if one.opname not in _SILENT]
    for place, one in enumerate(found):
        if one.opname in _OTHERS and not (one.opname == "STORE_ATTR" and code.co_name == "__init__"):
            handed_on.add(str(one.argval))
        elif one.opname in _LOADS:
            field = _field(found, place)
            if field is not None:
                fields.add((str(one.argval), field))
                continue
            looking = None if "NULL" in one.argrepr else _looked_into(found, place)
            if looking is None:
                handed_on.add(str(one.argval))
            elif found[looking].opname == "BINARY_SUBSCR" and _is_handed_on(found, looking):
                items.add((str(one.argval), _key(found, place, looking)))
    for inner in [constant for constant in code.co_consts if isinstance(constant, CodeType)]:
        below = uses_of(inner)
        handed_on |= below.handed_on
        fields |= below.fields
        items |= below.items_handed_on
    return Uses(frozenset(handed_on), frozenset(fields), frozenset(items))


def _is_handed_on(found: list[dis.Instruction], place: int) -> bool:
    return _field(found, place) is None and _looked_into(found, place) is None


def _key(found: list[dis.Instruction], place: int, looking: int) -> Any:
    """The key of an item, if it is a constant."""
    is_constant = looking == place + 2 and found[place + 1].opname == "LOAD_CONST"
    return found[place + 1].argval if is_constant else ANY_KEY


def _field(found: list[dis.Instruction], place: int) -> str | None:
    """The attribute that the next instruction reads of what was loaded."""
    following = found[place + 1] if place + 1 < len(found) else None
    is_read = following is not None and following.opname in _ATTRIBUTES and "NULL" not in found[place].argrepr
    return str(following.argval) if following is not None and is_read else None


def _looked_into(found: list[dis.Instruction], place: int) -> int | None:
    """Where the value that an instruction has put on the stack is looked into and let go of; None if it is not."""
    above = 0
    for number, one in enumerate(found[place + 1 : place + _NEAR], place + 1):
        if above == 0 and (one.opname in _ON_TOP or _is_given_to_builtin(found, place, one)):
            return number
        if above == 1 and one.opname in _UNDER_ONE:
            return number
        takes = _takes(one)
        if takes is None or takes > above:
            return None
        above += 1 - takes if one.opname == "CALL" else _effect(one)
    return None


def _is_given_to_builtin(found: list[dis.Instruction], place: int, one: dis.Instruction) -> bool:
    """Whether an instruction calls a builtin that looks into its only argument, which was loaded in a place."""
    if one.opname != "CALL" or one.arg != 1 or place == 0:
        return False
    return found[place - 1].opname == "LOAD_GLOBAL" and found[place - 1].argval in LOOKING


def _effect(one: dis.Instruction) -> int:
    return dis.stack_effect(one.opcode, one.arg if one.opcode >= dis.HAVE_ARGUMENT else None, jump=False)


def _takes(one: dis.Instruction) -> int | None:
    if one.opname in _TAKES_MORE:
        return _TAKES_MORE[one.opname] + int(one.arg or 0)
    return _TAKES.get(one.opname)
