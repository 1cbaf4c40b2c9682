"""Classes whose values stand as literals in graphs, importable by their names."""

from __future__ import annotations

import collections
import enum
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Colour(enum.Enum):
    RED = 1
    CRIMSON = 1
    GREEN = "green"


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Mode(enum.IntFlag):
    A = 1
    B = 2


class Word(str, enum.Enum):  # noqa: UP042 - older code is full of these
    YES = "yes"


class Pair(NamedTuple):
    first: Any
    second: Any = 5


Renamed = collections.namedtuple("Renamed", ["class", "x", "x"], rename=True)


@dataclass
class Point:
    x: Any
    y: Any = 0


@dataclass
class Point3(Point):
    z: Any = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Frozen:
    text: str
    inner: Any = None


@dataclass
class Counted:
    """Its constructor takes less than its fields."""

    x: int
    y: int = field(init=False, default=7)


@dataclass
class Checked:
    x: int

    def __post_init__(self):
        self.x *= 2


@dataclass(kw_only=True)
class Keywords:
    a: int
    b: tuple = ()


class PlainChild(Point):
    """Derives from a dataclass without being one."""


class Outer:
    class Inner(enum.Enum):
        ONE = 1

    def method(self, x):
        return ("method", x)

    @classmethod
    def make(cls, x):
        return (cls.__name__, x)
