"""Names of objects and objects of names."""

from __future__ import annotations

import functools
import importlib.util
import math
import operator
import sys
from types import FunctionType, ModuleType
from typing import Any

import numpy
import pytest
import torch

from clew.ir.names import MOVED, NotFound, find, name_for
from tests.strategies import Colour, user_function


class Holder:
    class Inner:
        @classmethod
        def make(cls) -> None: ...

    @property
    def danger(self) -> None:
        raise RuntimeError("must not be asked")


instance = Holder()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (operator.add, "operator.add"),
        (len, "builtins.len"),
        (math.sqrt, "math.sqrt"),
        (int, "builtins.int"),
        (user_function, "tests.strategies.user_function"),
        (Holder.Inner, "tests.ir.test_lookup.Holder.Inner"),
        (Holder.Inner.make, "tests.ir.test_lookup.Holder.Inner.make"),
        (dict.fromkeys, "builtins.dict.fromkeys"),
        (numpy.add, "numpy.add"),
        (torch.relu, "torch.relu"),
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (torch.ops.aten.add.Tensor, "torch.ops.aten.add.Tensor"),
        (torch.nn.functional, "torch.nn.functional"),
        (sys, "sys"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_names_lead_back(value: Any, name: str) -> None:
    assert name_for(value) == name
    assert find(name) == value


@pytest.mark.parametrize(
    "value",
    [lambda: 0, functools.partial(len), operator.itemgetter(0), object(), Holder(), Colour, 3, torch.ones(1)],
    ids=lambda value: type(value).__name__,
)
def test_what_no_name_reaches(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if value is Colour:  # a name that leads to something else counts for nothing
        monkeypatch.setattr("tests.strategies.Colour", object())
    assert name_for(value) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuchpackage.x", "the package 'nosuchpackage' is not imported"),
        ("math.nothing", "math has no member 'nothing'"),
        ("torch.nothing.at_all", "torch.nothing cannot be imported"),
        ("tests.ir.test_lookup.instance.danger", "is neither a module nor a class"),
        ("tests.strategies.user_function.__globals__", "is neither a module nor a class"),
        ("numpy.__main__", "numpy has no member '__main__'"),
    ],
)
def test_names_that_are_not_found(name: str, message: str) -> None:
    with pytest.raises(NotFound) as caught:
        find(name)
    assert message in str(caught.value)


def test_a_strange_module_is_not_asked_to_load_more(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("strange_module_of_the_test")
    asked: list[str] = []
    module.__dict__["__getattr__"] = asked.append
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(NotFound):
        find(f"{module.__name__}.thing")
    assert asked == []
    assert find(f"{module.__name__}.thing", modules=(module.__name__,)) is None
    assert asked == ["thing"]


def test_open_packages_are_imported_when_named() -> None:
    assert find("collections.abc.Mapping").__name__ == "Mapping"


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_functions_of_modules_that_have_moved_are_found(old: str, new: str) -> None:
    assert importlib.util.find_spec(old) is None
    module = importlib.import_module(new)
    own = [one for one in vars(module).values() if isinstance(one, FunctionType) and one.__module__ == new]
    assert own and all(find(f"{old}.{one.__name__}") is one for one in own)
