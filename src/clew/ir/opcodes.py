"""The six opcodes, and which targets fit them.

An opcode, a target and the name of a node come in; a target that does not fit is an error that names the node.
"""

from __future__ import annotations

import enum
from typing import Any

from clew.errors import BadTarget, UnknownOpcode


class Opcode(enum.StrEnum):
    """The six opcodes. A node's ``op`` is the plain string."""

    PLACEHOLDER = "placeholder"
    GET_ATTR = "get_attr"
    CALL_FUNCTION = "call_function"
    CALL_METHOD = "call_method"
    CALL_MODULE = "call_module"
    OUTPUT = "output"


OPCODES = frozenset(str(opcode.value) for opcode in Opcode)


def check_opcode(op: str, target: Any, name: str) -> None:
    """Raise unless ``op`` is one of the six opcodes and ``target`` fits it."""
    if op == "call_function":
        if not callable(target):
            raise BadTarget(
                f"node {name!r} has the target {target!r} of type {type(target).__name__}, but a Callable is expected",
                why="a call_function node calls its target",
                fixes=["pass the function itself; for the name of a method use call_method, for a path call_module"],
            )
    elif op not in OPCODES:
        raise UnknownOpcode(
            f"node {name!r} has the unknown opcode {op!r}", fixes=[f"use one of {', '.join(sorted(OPCODES))}"]
        )
    elif not isinstance(target, str):
        raise BadTarget(
            f"node {name!r} has the target {target!r} of type {type(target).__name__}, but a str is expected",
            why=f"the target of a {op} node is a name",
            fixes=["use call_function for a function"],
        )
