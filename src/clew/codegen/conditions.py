"""The cheap test in front of each kind of guard in generated code.

A subject (the guarded value, as code) and the expected value come in; out comes the expression that is true wherever
the guard could fail. It may be true too often: then the guard itself is asked, and it knows exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

by_equality: set[type] = set()
"""Classes, of a framework's devices say, whose values are made anew at each reading and equal only their own kind.

The one that a check expects is made once, above the function.
"""


@dataclass(frozen=True)
class Subject:
    """The value that a check looks at, as a condition may write it."""

    value: Any
    text: str
    """The whole expression, for a condition that reads it once."""
    first: str
    """The same for a condition that reads it several times, at the first place,"""
    again: str
    """and at all others."""
    expected: str
    is_integer: bool
    is_truth: bool
    name_of: Callable[[Any], str]
    """How the code calls an object."""


@dataclass(frozen=True)
class Condition:
    """An expression that is true wherever the guard could fail; ``known`` is the value then, if that is certain."""

    text: str
    known: str = ""


_LITERALS = (int, float, str, bytes, complex, tuple)


def value_test(subject: Subject, expected: Any) -> Condition:
    """For a value that must be of the same type and equal."""
    kind = type(expected)
    if kind is bool and subject.is_truth:
        return Condition(f"not {subject.text}" if expected else subject.text, str(not expected))
    if (kind is int and subject.is_integer) or kind in by_equality:
        return Condition(f"{subject.first} != {subject.expected}")
    if kind in (str, bytes) and subject.first != subject.text:  # what a function tells, which equals its like alone
        return Condition(f"{subject.text} != {subject.expected}")
    if kind in _LITERALS:
        of_type = type_test(subject, kind, subject.name_of(kind))
        zero = f" or not {subject.again}" if kind is float and expected == 0 else ""  # the guard knows of two zeros
        return Condition(f"{of_type.text} or {subject.again} != {subject.expected}{zero}")
    return same_test(subject, expected)


def same_test(subject: Subject, expected: Any) -> Condition:
    """For a value that must be the very object; a literal in code is an object of its own, so no test can tell."""
    if type(expected) in _LITERALS:
        return Condition("True")
    return Condition(f"{subject.first} is not {subject.expected}")


def type_test(subject: Subject, expected: Any, name: str = "") -> Condition:
    """For a value that must be of a class."""
    return Condition(f"{subject.name_of(type)}({subject.first}) is not {name or subject.expected}")


def length_test(subject: Subject, expected: Any) -> Condition:
    """For a container that must have as many items."""
    return Condition(f"{subject.name_of(len)}({subject.first}) != {subject.expected}")


def keys_test(subject: Subject, expected: Any) -> Condition:
    """For a dict that must have the same keys in the same order; numbers of different kinds can be equal."""
    if any(type(key) is not str for key in expected):
        return Condition("True")
    if not expected:
        return Condition(subject.text)
    return Condition(f"{subject.name_of(tuple)}({subject.first}) != {subject.expected}")


WRITERS: dict[str, Callable[[Subject, Any], Condition]] = {
    "equals": value_test,
    "is": same_test,
    "type": type_test,
    "length": length_test,
    "keys": keys_test,
}
"""The conditions of the tests that every guard may have, by their names."""
