"""The cheap test in front of each kind of guard in generated code.

A subject (the guarded value, as code) and the expected value come in; out comes the expression that is true wherever
the guard could fail. It may be true too often: then the guard itself is called, and it knows exactly.
"""

from __future__ import annotations

from typing import Any

from clew.codegen.checks import Subject, Test, by_equality

_LITERALS = (int, float, str, bytes, complex, tuple)


def value_test(subject: Subject, expected: Any) -> Test:
    """For a value that must be of the same type and equal."""
    kind = type(expected)
    if kind is bool and subject.is_truth:
        return Test(f"not {subject.text}" if expected else subject.text, str(not expected))
    if (kind is int and subject.is_integer) or kind in by_equality:
        return Test(f"{subject.first} != {subject.expected}")
    if kind in _LITERALS:
        of_type = type_test(subject, kind, subject.name_of(kind))
        zero = f" or not {subject.again}" if kind is float and expected == 0 else ""  # the guard knows of two zeros
        return Test(f"{of_type.condition} or {subject.again} != {subject.expected}{zero}")
    return same_test(subject, expected)


def same_test(subject: Subject, expected: Any) -> Test:
    """For a value that must be the very object; a literal in code is an object of its own, so no test can tell."""
    if type(expected) in _LITERALS:
        return Test("True")
    return Test(f"{subject.first} is not {subject.expected}")


def type_test(subject: Subject, expected: Any, name: str = "") -> Test:
    """For a value that must be of a class."""
    return Test(f"{subject.name_of(type)}({subject.first}) is not {name or subject.expected}")


def length_test(subject: Subject, expected: Any) -> Test:
    """For a container that must have as many items."""
    return Test(f"{subject.name_of(len)}({subject.first}) != {subject.expected}")


def keys_test(subject: Subject, expected: Any) -> Test:
    """For a dict that must have the same keys in the same order; numbers of different kinds can be equal."""
    if any(type(key) is not str for key in expected):
        return Test("True")
    return Test(f"{subject.name_of(tuple)}({subject.first}) != {subject.expected}")
