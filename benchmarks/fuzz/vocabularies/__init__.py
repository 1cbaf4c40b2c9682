"""What random programs of one framework are made of, as data; one file for each framework.

A vocabulary has templates for all holes of the grammar (`benchmarks/fuzz/grammar.py`), the head of the module, and the
arrays that the probes give. Most lines of the grammar are Python's and belong to all frameworks: `shared` finds those
that name nothing of torch's, so that a new vocabulary writes only its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Parameter:
    """A parameter besides the two matrices: how it is declared, its value in the example and others."""

    name: str
    declared: str
    example: str
    others: dict[str, str] = field(default_factory=dict)
    kind: str = ""  # the hole of the grammar that it may stand in


@dataclass(frozen=True)
class Vocabulary:
    """All words of a framework."""

    name: str
    head: str
    """Imports and globals of a program's module."""
    matrix: str
    """The text of an argument; `rows` and `columns` are holes."""
    forms: dict[str, str]
    """Other arguments by name; `matrix` is a hole, too."""
    parameters: tuple[Parameter, ...]
    world: dict[str, tuple[str, ...]]
    """What may be done before a call to a program that names this."""
    tables: dict[str, tuple[str, ...]]
    """Expressions for each capital letter."""
    leaves: dict[str, str]
    """The simplest expression for each of them."""
    statements: tuple[str, ...]
    results: tuple[str, ...]
    helpers: dict[str, str]
    risky: tuple[str, ...]
    """Statements inside of a `try`."""
    errors: tuple[str, ...]
    """What is caught there."""
    contexts: tuple[str, ...]
    """Heads of `with` blocks."""
    kinds: tuple[str, ...] = ("function",)
    imports: tuple[tuple[str, str], ...] = ()
    """What the texts of arguments and of the world name: a name, and the module that it stands for."""
    aliasing: bool = True
    """Whether it matters which results and arguments are one object: arrays that nobody can write to may be any."""
    gradients: bool = False
    """Whether results are differentiated, and gradients compared."""


PYTHON = (
    "append insert extend reverse clear pop popitem remove sort index count update setdefault get items values keys "
    "startswith add discard fromkeys chain product deque defaultdict copy deepcopy is_integer bit_length name value "
    "sqrt floor ceil copysign fmod exp isnan random uniform choice randint shuffle seed left right doubled where "
    "LOW move reduce partial calls factor shared both applied scaled walked push top note total latest level"
)
"""Attributes of Python's own objects, and of the helpers', that the grammar names."""
_ATTRIBUTE = re.compile(r"\.([a-z_]+)\b")
_FOREIGN = re.compile(r"\.size\(|\b(torch|nn|self|WEIGHT)\b|\bF\.|dim=|keepdim|requires_grad|device|\.values$|'relu'")


RISKY = (
    "{m} = TABLE['{k}'] * {M}",
    "assert {B}",
    "raise Stop({m}, {I})",
    "if {B}: raise ValueError('stop', {I})",
    "{m} = {d}['{k}'] if {B} else attempted({m})",
    "{m} = {l}[{I}]",
    "{m} = {m} / {I} if {I} > {n} else {l}.pop()",
)
"""Statements inside of a `try`, of Python alone; what is caught there; heads of `with` blocks."""
ERRORS = ("Exception", "AssertionError", "Stop", "(Stop, LookupError)", "(ValueError, ZeroDivisionError)")
CONTEXTS = (
    "with other_factor({F}):",
    "with Noted('{k}'):",
    "with Noted('{k}', swallows={B}):",
    "with contextlib.suppress(Exception):",
)

_HEAD = """\
import collections
import contextlib
import copy
import functools
import itertools
import math
import operator
import random
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, NamedTuple

{imports}

SCALE = 2.0
COUNT = 0
TABLE = {{'a': 1.5}}
HISTORY = []
KEPT = {{}}
LATEST = None
SEEN = set()
QUEUE = collections.deque(maxlen=2)
WEIGHT = {weight}


class Config:
    calls = 0
    factor = 0.5

"""


def head(imports: str, weight: str) -> str:
    """What stands above every program: imports, and the variables around it."""
    return _HEAD.format(imports=imports, weight=weight)


def shared(table: str, names: str) -> tuple[str, ...]:
    """The templates of a table that name nothing of torch's, and no attributes but Python's and these."""
    known = {*names.split(), *PYTHON.split()}
    lines = [line for line in table.splitlines() if line.strip() and not _FOREIGN.search(line)]
    return tuple(line for line in lines if set(_ATTRIBUTE.findall(line)) <= known)


def translated(parameters: tuple[Parameter, ...], words: dict[str, str]) -> tuple[Parameter, ...]:
    """Parameters whose values are in the words of another framework; longer words are looked for first."""

    def own(text: str) -> str:
        for word in sorted(words, key=len, reverse=True):
            text = text.replace(word, words[word])
        return text

    return tuple(
        replace(one, example=own(one.example), others={name: own(text) for name, text in one.others.items()})
        for one in parameters
    )
