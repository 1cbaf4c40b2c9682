"""The rules of the house that a machine can check, over the whole project, and each shown to catch a bad example."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from clew import errors
from tests.architecture.project import PACKAGE, ROOT, is_output, parsed, project_files, python_files, read_text
from tests.architecture.style import machine_paths

SLASH = "/"


def test_the_files_are_found() -> None:
    assert len(python_files(PACKAGE)) > 1
    assert Path(__file__).resolve() in project_files()


def test_no_text_names_a_path_of_a_machine() -> None:
    texts = {str(path.relative_to(ROOT)): read_text(path) for path in project_files()}
    assert [line for name, text in texts.items() if text is not None for line in machine_paths(name, text)] == []


@pytest.mark.parametrize("folder", ["home", "root", "Users", "work"])
def test_a_path_of_a_machine_is_found(folder: str) -> None:
    path = SLASH.join(["", folder, "somebody", "model.py"])
    assert len(machine_paths("a.md", f"see {path}\n")) == 1
    assert len(machine_paths("a.md", f'open("{path}")\n')) == 1
    assert machine_paths("a.md", f"see graph{path} and {{folder}}{path} and https://example.org{path}\n") == []


def test_outputs_are_told_from_sources() -> None:
    assert is_output(Path(".venv/lib/a.py")) and is_output(Path("src/clew.egg-info/a.txt"))
    assert not is_output(Path("src/clew/ir/node.py")) and not is_output(Path(".gitignore"))


def test_errors_for_users_stand_in_one_file() -> None:
    """Others derive from ``CaptureError``: by them a capture starts over."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ClewError)]
    known = {kind.__name__ for kind in kinds} - {"CaptureError"}
    found = []
    for path in python_files(PACKAGE):
        for node in ast.walk(parsed(path.read_text(encoding="utf-8"))):
            bases = {getattr(base, "id", "") for base in node.bases} if isinstance(node, ast.ClassDef) else set()
            if bases & known and path.name != "errors.py":
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []
