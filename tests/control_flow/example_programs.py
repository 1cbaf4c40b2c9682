"""The programs of `examples/control_flow`, as the register has programs: their construct is called "example"."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

from tests.control_flow.register import Construct
from tests.footguns.ledger import Case, Inputs

FOLDER = Path(__file__).resolve().parents[2] / "examples"
NAMES = sorted(found.name for found in pkgutil.iter_modules([str(FOLDER / "control_flow")]) if found.name[0] != "_")


def all_examples(only: str | None = None) -> list[Construct]:
    """Every example, or all of them under the name "example", or the one of that name."""
    return [_program(name) for name in NAMES if only in (None, "example", name)]


def _program(name: str) -> Construct:
    def build() -> Case:
        module = _module(name)
        example, *others = (functools.partial(_call, module, place) for place in range(len(module.inputs())))
        return Case(make=module.make, example=example, others=others)

    return Construct(name, "example", build)


def _module(name: str) -> ModuleType:
    """The module of an example, found in its folder whatever the path of Python is."""
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module(f"control_flow.{name}")
    finally:
        sys.path.remove(str(FOLDER))


def _call(module: ModuleType, place: int) -> Inputs:
    return module.inputs()[place], {}
