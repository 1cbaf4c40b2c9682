"""`import clew` loads no framework, and what needs none works without any; shown in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.architecture.project import SOURCE

FRAMEWORKS = ("torch", "jax", "jaxlib", "tensorflow", "keras")

BUILD_A_GRAPH = """
import operator
import clew

graph = clew.Graph()
x = graph.placeholder("x")
total = graph.call_function(operator.add, (x, 1))
graph.output(total)
graph.lint()
assert [node.op for node in graph.nodes] == ["placeholder", "call_function", "output"], list(graph.nodes)
assert "add" in str(graph), str(graph)
"""

HIDE_FRAMEWORKS = """
import importlib.abc
import sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
"""


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter that finds this checkout's `clew` first."""
    search_path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": search_path}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=120)


def loaded_by(program: str, names: tuple[str, ...] = FRAMEWORKS) -> list[str]:
    """Which of the named modules are loaded once a program has run."""
    report = f"\nimport sys\nprint(*sorted(set({names!r}) & set(sys.modules)))"
    finished = run_python(program + report)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()[-1].split()


def test_import_loads_no_framework() -> None:
    assert loaded_by("import clew") == []


def test_listing_the_surface_loads_no_framework() -> None:
    assert loaded_by("import clew\nassert 'Graph' in dir(clew)") == []


def test_a_graph_is_built_without_a_framework() -> None:
    assert loaded_by(BUILD_A_GRAPH) == []


def test_a_graph_is_built_where_no_framework_is_installed() -> None:
    finished = run_python(HIDE_FRAMEWORKS.format(hidden=FRAMEWORKS) + BUILD_A_GRAPH)
    assert finished.returncode == 0, finished.stderr


def test_the_check_sees_what_is_loaded() -> None:
    assert loaded_by("import json", ("json", "wave")) == ["json"]


def test_the_hiding_hides() -> None:
    finished = run_python(HIDE_FRAMEWORKS.format(hidden=("wave",)) + "import wave")
    assert finished.returncode != 0
    assert "No module named 'wave'" in finished.stderr
