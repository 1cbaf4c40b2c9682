"""What nodes compute, in Python's notation: what guards say, in terms of the inputs.

A node comes in; out comes a short expression, or the name of the node where there is none.
"""

from __future__ import annotations

import itertools
from typing import Any

from clew.ir.node import Node
from clew.ir.types import ArrayType


def describe(node: Node, answer: Any) -> str:
    """A guard in Python's notation: ``x.shape[1] <= 512``, or ``not`` of it."""
    text = expression_of(node)
    if node.op == "get_attr" and type(answer) is bool:
        return f"self.{text} is {answer}"
    if answer is True:
        return text
    return f"not ({text})" if answer is False else f"{text} == {answer!r}"


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**",
          "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and_": "&", "or_": "|",
          "is_": "is"}  # fmt: skip


_LONGEST_ARRAY = 40
"""An array in a guard's text whose expression is longer is better known by the name of its node."""


def expression_of(value: Any, depth: int = 0, in_array: bool = False) -> str:
    """The expression that a node computes, as far as it is short arithmetic on inputs; its name otherwise."""
    if not isinstance(value, Node):
        return repr(value)
    if value.op in ("placeholder", "get_attr"):
        return str(value.target).lstrip("*")
    is_array = depth > 0 and isinstance(value.value_type, ArrayType)
    text = _spelled(value, depth, in_array or is_array)
    return value.name if is_array and not in_array and len(text) > _LONGEST_ARRAY else text


def _spelled(value: Node, depth: int, in_array: bool) -> str:
    """A call as Python would write it, in terms of the expressions of its arguments."""
    if depth > 8 or value.op not in ("call_function", "call_method"):
        return value.name
    if value.kwargs or len(value.args) > 3:
        receiver = f"{expression_of(value.args[0], depth + 1, in_array)}." if value.op == "call_method" else ""
        return f"{receiver}{value.target}(...)" if receiver else value.name
    name = value.target if value.op == "call_method" else getattr(value.target, "__name__", "")
    parts = [expression_of(item, depth + 1, in_array) for item in value.args]
    if name == "getattr" and len(parts) == 2:
        return f"{_in_parentheses(parts[0])}.{value.args[1]}"
    if name == "getitem" and len(parts) == 2:
        return f"{_in_parentheses(parts[0])}[{parts[1]}]"
    if name in _SIGNS and len(parts) == 2:
        return f"{_in_parentheses(parts[0])} {_SIGNS[name]} {_in_parentheses(parts[1])}"
    if value.op == "call_method":
        return f"{_in_parentheses(parts[0])}.{name}({', '.join(parts[1:])})"
    if name == "bool" and len(parts) == 1:
        return parts[0]
    if name == "read_variable":
        return str(value.args[0])
    return f"{name}({', '.join(parts)})"


def _in_parentheses(text: str) -> str:
    """The text as an operand: in parentheses if it has an operator that no bracket encloses."""
    depths = itertools.accumulate((character in "([{") - (character in ")]}") for character in text)
    is_open = any(one == " " and not depth for one, depth in zip(text, depths, strict=True))
    return f"({text})" if is_open else text
