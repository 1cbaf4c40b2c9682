"""Imports are a one-way street: a room imports only rooms before it, and nothing is imported inside a function."""

from __future__ import annotations

import pytest

from tests.architecture.imports import (
    FRAMEWORK_FREE_ROOMS,
    NAMING,
    Import,
    broken_rules,
    find_cycle,
    frameworks_named,
    imports_of,
    module_name,
    room_of,
    runtime_edges,
)
from tests.architecture.project import PACKAGE, SOURCE, python_files

FILES = python_files(PACKAGE)
KNOWN = [module_name(path, SOURCE) for path in FILES]


def rules_broken_by(module: str, source: str) -> list[str]:
    return broken_rules(module, imports_of(module, source, KNOWN))


def test_the_package_is_found() -> None:
    assert "clew.__init__" in KNOWN
    assert any(name.startswith("clew.ir.") for name in KNOWN)


def sources() -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in zip(KNOWN, FILES, strict=True)}


def test_every_module_keeps_the_rules() -> None:
    assert [sentence for name, text in sources().items() for sentence in rules_broken_by(name, text)] == []


def test_rooms_without_frameworks_name_none() -> None:
    free = {name: text for name, text in sources().items() if room_of(name) in FRAMEWORK_FREE_ROOMS}
    found = {name: sentences for name, text in free.items() if (sentences := frameworks_named(text))}
    assert {name: sentences for name, sentences in found.items() if name not in NAMING} == {}
    assert NAMING.keys() - found.keys() == set(), "exceptions that nobody needs any more"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('KINDS = {"torch"}', ["line 1 names 'torch'"]),
        ("def torch_call():\n    pass", ["line 1 names 'torch_call'"]),
        ('x = guest("jax").array', ["line 1 names 'jax'"]),
        ("from tensorflow import function", ["line 1 names 'tensorflow'"]),
        ('"""As torch does it."""\n# torch\nx = 1', []),
        ("class A:\n    def __torch_function__(self): ...", []),
    ],
)
def test_names_of_frameworks_in_code_are_seen(source: str, expected: list[str]) -> None:
    assert frameworks_named(source) == expected


def test_no_modules_import_each_other_in_a_ring() -> None:
    graph = {name: runtime_edges(name, imports_of(name, text, KNOWN), KNOWN) for name, text in sources().items()}
    assert find_cycle(graph) == []


@pytest.mark.parametrize(
    ("module", "source", "reason"),
    [
        ("clew.ir.node", "from clew.codegen.python import CodeGen", "'codegen' comes after 'ir'"),
        ("clew.ir.node", "from ..codegen import python", "'codegen' comes after 'ir'"),
        ("clew.ir.__init__", "from ..codegen import python", "'codegen' comes after 'ir'"),
        ("clew.ir.node", "from .. import passes", "'passes' comes after 'ir'"),
        ("clew.ir.node", "import clew.passes.dead_code", "'passes' comes after 'ir'"),
        ("clew.passes.match", "from clew import Graph", "'__init__' comes after 'passes'"),
        ("clew.passes.match", "import clew", "'__init__' comes after 'passes'"),
        ("clew.tree", "if True:\n    import clew.ir.node", "'ir' comes after 'tree'"),
        (
            "clew.ir.node",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from clew.runtime import module",
            "'runtime' comes after 'ir'",
        ),
        ("clew.ir.node", "import torch", "'ir' knows no framework"),
        ("clew.ir.node", "import typing\nif typing.TYPE_CHECKING:\n    import torch.nn", "'ir' knows no framework"),
        ("clew.codegen.python", "from jax import numpy", "'codegen' knows no framework"),
        ("clew.ir.node", "def f():\n    import math", "inside a function"),
        ("clew.ir.node", "class A:\n    def f(self):\n        from math import pi", "inside a function"),
        ("clew.ir.node", "def f():\n    return __import__('math')", "inside a function"),
        ("clew.runtime.build", "def f():\n    return importlib.import_module('torch')", "inside a function"),
        ("clew.frameworks.torch.types", "def f():\n    import math", "inside a function"),
        ("clew.frameworks.torch.types", "import jax", "only its own framework"),
        ("clew.frameworks.torch.types", "from clew.runtime import build", "'runtime' comes after 'frameworks'"),
        ("clew.helpers", "import math", "is no room"),
        ("clew.fx", "from clew.helpers import f", "is no room"),
    ],
)
def test_a_broken_rule_is_reported(module: str, source: str, reason: str) -> None:
    assert any(reason in sentence for sentence in rules_broken_by(module, source))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("clew.ir.node", "from clew.errors import GraphError"),
        ("clew.ir.node", "from .arguments import map_arg\nfrom ..tree import flatten\nfrom .. import errors"),
        ("clew.passes.match", "import math\nfrom clew.ir import graph\nimport torch"),
        ("clew.frameworks.torch.types", "def f():\n    import torch\n    return torch"),
        ("clew.runtime.folder", "import importlib\ndef f(name):\n    return importlib.import_module(name)"),
        ("clew.fx", "from clew.api import symbolic_trace"),
    ],
)
def test_what_is_allowed_is_not_reported(module: str, source: str) -> None:
    assert rules_broken_by(module, source) == []


def test_imports_are_read_as_what_they_are() -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\nelse:\n    import b\n"
    source += "def f():\n    import c"
    assert imports_of("clew.ir.node", source) == [
        Import("typing", 1),
        Import("a", 3, for_types_only=True),
        Import("b", 5),
        Import("c", 7, inside_function=True),
    ]


def test_a_ring_is_found() -> None:
    assert find_cycle({"a": {"b", "d"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["b", "c", "b"]
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_edges_lead_to_modules_and_packages() -> None:
    known = ["clew.ir.__init__", "clew.ir.node", "clew.ir.graph"]
    source = "from clew.ir.node import Node\nfrom clew.ir import Graph\nimport math"
    assert runtime_edges("clew.ir.graph", imports_of("clew.ir.graph", source, known), known) == {
        "clew.ir.node",
        "clew.ir.__init__",
    }
