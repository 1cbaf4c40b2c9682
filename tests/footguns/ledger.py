"""The register of hard programs.

A program is a builder under a name and a kind. Each call of the builder makes everything anew (the callable, the
module with its weights, the lists it closes over, the globals it resets), so that the original and the subject of a
capture never share state. What it returns, a `Case`, says how the callable is called and what else can be observed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
MakeInputs = Callable[[], Inputs]


@dataclass(frozen=True)
class Case:
    """One callable and the calls it is judged by.

    `others` hold at least one call on which a trace that froze the example's facts goes wrong. `state` gives what can
    be observed besides the result; with one parameter it is handed the callable itself (or the capture of it).
    `between` acts on the module, or on the capture of it, before the call of that name ("other 1", "other 2", ...).
    `gradients` runs backward through the result and compares what arrives, `aliasing` compares which results share
    memory with which arguments, `printing` what each call prints, `same_text=False` compares errors by type alone,
    `reset` puts globals back.
    """

    fn: Callable[..., Any] | None = None
    example: MakeInputs = field(kw_only=True)
    others: list[MakeInputs] = field(kw_only=True)
    state: Callable[..., Any] | None = field(default=None, kw_only=True)
    make: Callable[[], Callable[..., Any]] | None = field(default=None, kw_only=True)
    between: dict[str, Callable[[Any], Any]] = field(default_factory=dict, kw_only=True)
    gradients: bool = field(default=False, kw_only=True)
    aliasing: bool = field(default=False, kw_only=True)
    printing: bool = field(default=False, kw_only=True)
    same_text: bool = field(default=True, kw_only=True)
    reset: Callable[[], None] | None = field(default=None, kw_only=True)

    def callable(self) -> Callable[..., Any]:
        """The callable to run or to capture: the one given, or the one that `make` makes."""
        made = self.fn if self.make is None else self.make()
        if made is None:
            raise TypeError("a case needs a function, or `make`")
        return made


@dataclass(frozen=True)
class Program:
    """A named entry of the ledger."""

    name: str
    kind: str
    build: Callable[[], Case]


PROGRAMS: dict[str, Program] = {}


def program(name: str, *, kind: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Registers a builder of a case under a name that no other program has."""

    def register(build: Callable[[], Case]) -> Callable[[], Case]:
        if name in PROGRAMS:
            raise ValueError(f"two programs are called {name}")
        PROGRAMS[name] = Program(name, kind, build)
        return build

    return register


def call(*args: Any, **kwargs: Any) -> Inputs:
    """The arguments of one call, as a case gives them."""
    return args, kwargs


def all_programs(only: str | None = None) -> list[Program]:
    """Every program, or those of one kind, or the one of that name (`only`)."""
    package = importlib.import_module("tests.footguns.programs")
    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{found.name}")
    chosen = sorted(PROGRAMS.values(), key=lambda one: (one.kind, one.name))
    return [one for one in chosen if only is None or only in (one.kind, one.name)]
