"""The tables of docs/from_torch_fx.md: no name of torch.fx is missing, and what they say of each holds.

"same" and "better" mean that the name is there and takes at least the parameters of torch.fx's; "left out" means that
it is not there; "not yet" means that one of the first two would be untrue, so the day it becomes true is noticed.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

import clew.fx

from . import torch_fx_names as theirs
from .tables import Row, rows_in
from .torch_fx_page import page

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "from_torch_fx.md"
ROWS = [row for row in rows_in(DOCUMENT.read_text()) if row.heading != "From torch.fx to Clew"]
MEMBERS = [row for row in ROWS if row.heading in theirs.CLASSES]
MODULES = theirs.all_modules()
TOP_LEVEL = [row for row in ROWS if row.heading in MODULES]
STATES = ("same", "better", "through torch.fx", "left out", "not yet")
EMPTY = inspect.Parameter.empty


def label(row: Row) -> str:
    return f"{row.heading}.{row.name}"


def names_under(heading: str) -> set[str]:
    return {row.name for row in ROWS if row.heading == heading}


# ---- is every name there? ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_a_module_has_a_row(module):
    missing = theirs.module_names(module) - names_under(module)
    assert not missing, f"no row under {module} for {sorted(missing)}"


@pytest.mark.parametrize("name", theirs.CLASSES)
def test_every_name_of_a_class_has_a_row(name):
    missing = theirs.class_names(theirs.class_of(name)) - names_under(name)
    assert not missing, f"no row under {name} for {sorted(missing)}"


def test_page_is_as_the_script_writes_it():
    assert page(DOCUMENT.read_text()) == DOCUMENT.read_text(), "python -m tests.docs.torch_fx_page"


def test_no_row_names_what_torch_fx_does_not_have():
    unknown = [label(row) for row in TOP_LEVEL if theirs_of(row) is EMPTY]
    unknown += [label(row) for row in MEMBERS if not is_member_of_theirs(row)]
    assert not unknown


def test_every_row_has_a_known_state_and_a_reason():
    assert len(ROWS) == len({(row.heading, row.name) for row in ROWS})
    assert {row.state for row in ROWS} <= set(STATES)
    assert [label(row) for row in ROWS if row.state != "same" and not row.note] == []
    assert {row.heading for row in ROWS} <= {*MODULES, *theirs.CLASSES}


# ---- is it true? -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", TOP_LEVEL, ids=label)
def test_top_level_name(row):
    place = importlib.import_module("clew.fx" + row.heading.removeprefix("torch.fx"))
    found = getattr(place, row.name, EMPTY)
    check(row, found is not EMPTY, problem_with_parameters(theirs_of(row), found))


@pytest.mark.parametrize("row", MEMBERS, ids=label)
def test_member_of_a_class(row):
    kind = getattr(clew.fx, row.heading)
    exists = has_member(kind, row.name)
    mine, other = member(kind, row.name), member(theirs.class_of(row.heading), row.name)
    called_by_python = row.name.startswith("__") and row.name != "__init__"  # by position only
    check(row, exists, None if called_by_python else problem_with_parameters(other, mine))


def check(row: Row, exists: bool, problem: str | None) -> None:
    """Raise unless the state of a row fits what was found."""
    if row.state == "left out":
        assert not exists, f"{label(row)} is said to be left out, but it is there"
    elif row.state == "not yet":
        assert not exists or problem, f"{label(row)} is there by now: say so"
    else:
        assert exists, f"{label(row)} is said to be {row.state}, but it is not there"
        assert problem is None, f"{label(row)} is said to be {row.state}, but {problem}"


@pytest.mark.parametrize(
    ("state", "exists", "problem"),
    [("left out", True, None), ("same", False, None), ("better", True, "takes no x"), ("not yet", True, None)],
)
def test_untrue_rows_are_found(state, exists, problem):
    with pytest.raises(AssertionError):
        check(Row("Graph", "name", state, "note"), exists, problem)


# ---- looking things up -------------------------------------------------------------------------------------------


def theirs_of(row: Row) -> Any:
    module = importlib.import_module(row.heading)
    return getattr(module, row.name, EMPTY)


def has_member(kind: type, name: str) -> bool:
    """Whether instances of a class have an attribute, as far as the class and the source of its methods tell."""
    if hasattr(kind, name) or any(name in vars(base).get("__annotations__", ()) for base in kind.__mro__):
        return True
    own = [base for base in kind.__mro__ if base.__module__.startswith(("clew.", "torch.fx"))]
    return any(name in theirs.assigned_names(base) for base in own)


def is_member_of_theirs(row: Row) -> bool:
    """The operators that torch.fx lacks are rows too: they are where its proxies fail."""
    lacking = row.heading == "Proxy" and row.state == "better" and row.name.startswith("__")
    return lacking or has_member(theirs.class_of(row.heading), row.name)


def member(kind: type, name: str) -> Any:
    if name == "__init__" and kind.__init__ is object.__init__:
        return kind.__new__
    return getattr(kind, name, EMPTY)


def problem_with_parameters(other: Any, mine: Any) -> str | None:
    """Why a call that torch.fx accepts could be refused by ours, or None."""
    if not inspect.isroutine(other) or not inspect.isroutine(mine):
        return None
    try:
        wanted, offered = (list(inspect.signature(function).parameters.values()) for function in (other, mine))
    except ValueError:  # functions written in C may have no signature
        return None
    takes_any_keyword = any(parameter.kind is parameter.VAR_KEYWORD for parameter in offered)
    names = {parameter.name for parameter in offered}
    positions = [parameter.name for parameter in offered if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    places = [parameter.name for parameter in wanted if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]
    missing = [
        parameter.name
        for parameter in wanted
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and parameter.name not in names
    ]
    missing = [] if takes_any_keyword else [name for name in missing if name not in ("self", "cls")]
    if missing:
        return f"it takes no {', '.join(missing)}"
    if any(name != "self" and name != place for name, place in zip(places[1:], positions[1:], strict=False)):
        return f"it takes {positions} where torch.fx takes {places}"
    return None


def test_missing_and_misplaced_parameters_are_found():
    def original(self, a, b=1, *, c=2): ...
    def missing(self, a, b=1): ...
    def swapped(self, b, a, c=2): ...
    def fits(self, a, b=1, extra=0, **rest): ...

    assert problem_with_parameters(original, missing) == "it takes no c"
    assert problem_with_parameters(original, swapped).startswith("it takes ['self', 'b', 'a', 'c']")
    assert problem_with_parameters(original, fits) is None
