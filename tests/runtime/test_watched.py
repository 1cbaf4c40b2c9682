"""Variables around a program are looked at where they are, and whatever becomes of them is noticed."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import clew
from clew.capture.guards.notes import Variable
from clew.capture.guards.variable_reads import ATTRIBUTE, CONTAINS, ITEM, KEYS, LENGTH, Item
from clew.runtime.fast.direct import GONE, quick_tests


class Registry:
    """An object with a table, and a class with one."""

    shared = {"used": torch.add}

    def __init__(self) -> None:
        self.table = {"used": torch.add}


HOLDER: dict[str, Any] = {}


def items() -> list[Item]:
    """An item of each kind that has an expression, with what it is now."""
    HOLDER.clear()
    HOLDER.update(registry=Registry(), names={"used"}, table={"used": 1, "other": 2}, listed=[1, 2, 3])
    base = {name: Variable(HOLDER, name) for name in HOLDER}
    found = [
        Item(base["table"], ITEM, "used"),
        Item(base["names"], CONTAINS, "used"),
        Item(base["listed"], LENGTH, None),
        Item(Item(base["registry"], ATTRIBUTE, "table"), ITEM, "used"),
        Item(Variable(Registry, "shared"), ITEM, "used"),
    ]
    for item in found:
        item.expected = item.get()
    return found


def holds(item: Variable) -> Callable[[], bool]:
    """The expressions as one function."""
    names: dict[str, Any] = {}
    kept: dict[int, str] = {}

    def bind(value: Any) -> str:
        name = kept.setdefault(id(value), f"n{len(kept)}")
        names[name] = value
        return name

    tests = quick_tests(item, bind)
    assert tests

    def is_same() -> bool:
        try:
            return not any(eval(test, names) for test in tests)
        except GONE:
            return False

    return is_same


@pytest.mark.parametrize("place", range(5))
def test_an_item_that_stays_is_found_and_changes_around_it_are_none(place: int):
    item = items()[place]
    is_same = holds(item)
    assert is_same()
    HOLDER["table"]["another"] = 3
    HOLDER["names"].add("another")
    assert is_same() and item.is_as_before()


def change_items() -> None:
    HOLDER["table"]["used"] = 5
    HOLDER["names"].clear()
    HOLDER["listed"].append(4)
    HOLDER["registry"].table["used"] = torch.sub


def change_containers() -> None:
    HOLDER.update(registry=Registry(), names=set(), table={}, listed=(1, 2, 3))


def take_away() -> None:
    HOLDER.clear()


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("change", [change_items, change_containers, take_away])
def test_changes_are_noticed(place: int, change: Callable[[], None]):
    is_same = holds(items()[place])
    change()
    assert not is_same()


def closure(value: Any) -> Callable[[], Any]:
    """A function with a variable in a cell, and with an attribute."""

    def read() -> Any:
        return value

    read.kept = value  # type: ignore[attr-defined]
    return read


def places_of_a_function() -> list[tuple[Variable, Callable[[], None], Callable[[], None]]]:
    """Variables that belong to one function, how they get another value, and how they lose it."""
    function = closure(torch.add)
    (cell,) = function.__closure__ or ()

    def empty() -> None:
        del cell.cell_contents

    return [
        (Variable(cell, "value", torch.add), lambda: setattr(cell, "cell_contents", torch.sub), empty),
        (Variable(function, "kept", torch.add), lambda: setattr(function, "kept", 1), lambda: vars(function).clear()),
    ]


@pytest.mark.parametrize("is_taken", [False, True], ids=["changed", "taken"])
@pytest.mark.parametrize("place", range(2), ids=["cell", "attribute"])
def test_variables_of_a_function_are_looked_at_without_a_call(place: int, is_taken: bool):
    variable, change, take = places_of_a_function()[place]
    is_same = holds(variable)
    assert is_same() and variable.is_as_before()
    (take if is_taken else change)()
    assert not is_same() and not variable.is_as_before()


def test_a_table_that_runs_code_of_its_own_is_asked_by_the_guard():
    class Table(dict[str, Any]):
        pass

    assert quick_tests(Variable(Table(used=1), "used", 1), str) == []


def test_what_has_no_expression_is_asked_each_time():
    items()
    assert quick_tests(Item(Variable(HOLDER, "table"), KEYS, None, ("used", "other")), str) == []


SOURCE = """
import torch
TABLE = {"used": torch.add, "other": torch.sub}
def program(x):
    return TABLE["used"](x, x)
"""


def test_a_captured_program_notices_the_item(tmp_path):
    path = tmp_path / "registered.py"
    path.write_text(textwrap.dedent(SOURCE))
    module: Any = ModuleType("registered")
    exec(compile(ast.parse(path.read_text()), str(path), "exec"), vars(module))
    x = torch.ones(3)
    captured = clew.trace(module.program, args=(x,))
    for _ in range(4):
        assert torch.equal(captured(x), x + x)
    module.TABLE["used"] = torch.sub
    with pytest.raises(clew.GuardError, match="TABLE"):
        captured(x)
    module.TABLE["used"] = torch.add
    assert torch.equal(captured(x), x + x)
    module.TABLE = {"used": torch.mul}
    with pytest.raises(clew.GuardError, match="TABLE"):
        captured(x)
