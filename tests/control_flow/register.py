"""The register of programs with control flow: the function, its construct, and inputs that go different ways.

`@program(construct, inputs)` registers a function as it stands; `@built(construct, inputs)` one without parameters
that makes the callable anew, for programs that carry state. `inputs` gives the arguments of all calls, the example's
first: a tuple is a tuple of arguments, `Keywords` holds arguments by name, anything else is the only argument. What is
registered are programs as in the ledger of footguns, whose kind is the construct: its harness judges them too.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from tests.footguns.ledger import Case, Inputs, Program

CONSTRUCTS = {
    "if": "`if` / `else`",
    "elif": "`elif`",
    "nested_if": "nested `if`",
    "ternary": "ternary",
    "boolean": "`and`, `or`, `not`",
    "chained": "chained comparison",
    "early_return": "early `return`",
    "several_returns": "several `return`s",
    "return_structures": "returns of different structure",
    "while": "`while`",
    "while_else": "`while` / `for` with `else`",
    "while_true": "`while True` with `break`",
    "for_rows": "`for` over the rows of a tensor",
    "for_range": "`for` over `range` of a traced number",
    "for_size": "`for` over `range` of a size",
    "for_enumerate": "`for` over `enumerate` or `zip`",
    "for_containers": "`for` over a list or dict of tensors",
    "break": "`break`",
    "continue": "`continue`",
    "nested_loops": "nested loops",
    "return_in_loop": "`return` in a loop",
    "assert": "`assert`",
    "raise": "`raise`",
    "one_sided": "variable of one branch only",
    "type_change": "variable whose type changes",
    "unpack": "tuples unpacked",
    "augmented": "augmented assignment",
    "walrus": "`:=`",
    "delete": "`del`",
    "star_args": "`*args`, `**kwargs`",
    "attribute": "attribute assigned in a branch",
    "item": "item assigned in a branch",
    "append": "list appended to in a loop",
    "in_place": "in-place operation in a branch",
    "buffer": "buffer updated in a branch",
    "module_call": "module called in a branch",
    "builtins": "`min`, `max`, `sum`, `any`, `all`, `sorted`",
    "recursion": "recursion on a value",
    "generator": "generator",
    "comprehension": "comprehension",
    "match": "`match`",
    "try": "`try` / `except` / `finally`",
    "with": "`with` around or inside",
    "random": "random numbers in a branch",
    "print": "`print` in a branch",
    "closure": "closure",
    "nonlocal": "`nonlocal`, `global`",
    "method": "method, `super()`",
    "static_method": "static and class method, property",
    "decorated": "decorated function",
    "lambda": "`lambda`",
    "nested_function": "nested function",
    "other_package": "function of another package",
    "merged": "facts about a value that two ways made",
    "impossible": "ways the example cannot go",
    "mixture": "several constructs in one program",
    "corner": "NaN, no rounds, changing dtypes, masks, tensors as indices",
    "algorithm": "decoding, solvers, search, early exits",
}
"""Every construct in the order of the table, with its title."""


class Keywords(NamedTuple):
    """The arguments of a call of which some have names."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class Construct(Program):
    """A program of this register: `shows` are the statements that its generated code has when it is captured."""

    shows: tuple[str, ...] = ()
    subject: Any = None


REGISTERED: dict[str, Construct] = {}
Maker = Callable[[], Any]


def program(construct: str, inputs: Maker, *, shows: str = "", **options: Any) -> Callable[[Any], Any]:
    """Registers a function that carries no state, under its own name."""

    def register(function: Any) -> Any:
        _register(function.__name__, construct, lambda: function, inputs, shows, options)
        return function

    return register


def built(construct: str, inputs: Maker, *, shows: str = "", **options: Any) -> Callable[[Any], Any]:
    """Registers what makes the callable; each build calls it."""

    def register(make: Maker) -> Maker:
        _register(make.__name__, construct, make, inputs, shows, options)
        return make

    return register


def _register(name: str, construct: str, make: Maker, inputs: Maker, shows: str, options: dict[str, Any]) -> None:
    if name in REGISTERED or name in CONSTRUCTS:
        raise ValueError(f"two programs, or a program and a construct, are called {name}")
    if construct not in CONSTRUCTS:
        raise ValueError(f"{construct} of {name} is not among the constructs")

    def build() -> Case:
        calls = [functools.partial(_call, inputs, place) for place in range(len(inputs()))]
        return Case(make=make, example=calls[0], others=calls[1:], **options)

    REGISTERED[name] = Construct(name, construct, build, tuple(shows.split()), make)


def _call(inputs: Maker, place: int) -> Inputs:
    given = inputs()[place]
    if isinstance(given, Keywords):
        return given.args, dict(given.kwargs)
    return (given if type(given) is tuple else (given,)), {}


def all_constructs(only: str | None = None) -> list[Construct]:
    """Every program in the order of the table, or those of one construct, or the one of that name (`only`)."""
    package = importlib.import_module("tests.control_flow.constructs")
    for found in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{found.name}")
    order = list(CONSTRUCTS)
    chosen = sorted(REGISTERED.values(), key=lambda one: order.index(one.kind))
    return [one for one in chosen if only is None or only in (one.kind, one.name)]


def v(*numbers: float) -> torch.Tensor:
    """A vector of floats."""
    return torch.tensor([float(number) for number in numbers])


def m(*rows: tuple[float, ...]) -> torch.Tensor:
    """A matrix of floats, row by row; without rows, one of no rows and two columns."""
    return torch.stack([v(*row) for row in rows]) if rows else torch.zeros(0, 2)


def s(number: float) -> torch.Tensor:
    """A tensor of one number without dimensions; of integers where the number is one."""
    return torch.tensor(number)
