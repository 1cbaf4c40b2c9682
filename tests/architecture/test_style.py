"""The rules of the house that a machine can check, over the whole project, and each shown to catch a bad example."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from clew import errors
from tests.architecture.project import PACKAGE, ROOT, is_output, project_files, python_files, read_text
from tests.architecture.style import (
    MOST_LINES_IN_A_FILE,
    MOST_LINES_IN_A_FUNCTION,
    machine_paths,
    swallowed_errors,
    too_long,
    unfinished_marks,
    without_docstring,
)

SLASH = "/"
MARK = "TO" + "DO"


def reports(check: Callable[[str, str], list[str]], files: list[Path]) -> list[str]:
    """All that one check finds in some files."""
    texts = {str(path.relative_to(ROOT)): read_text(path) for path in files}
    return [line for name, text in texts.items() if text is not None for line in check(name, text)]


def test_the_files_are_found() -> None:
    assert len(python_files(PACKAGE)) > 1
    assert Path(__file__).resolve() in project_files()


@pytest.mark.parametrize("check", [too_long, without_docstring, swallowed_errors])
def test_source_keeps_the_rules(check: Callable[[str, str], list[str]]) -> None:
    assert reports(check, python_files(PACKAGE)) == []


def test_no_work_is_put_off() -> None:
    assert reports(unfinished_marks, python_files(ROOT)) == []


def test_no_text_names_a_path_of_a_machine() -> None:
    assert reports(machine_paths, project_files()) == []


def test_a_long_file_and_a_long_function_are_found() -> None:
    assert too_long("a.py", "x = 1\n" * MOST_LINES_IN_A_FILE) == []
    found = too_long("a.py", "x = 1\n" * (MOST_LINES_IN_A_FILE + 1))
    assert f"the file has {MOST_LINES_IN_A_FILE + 1} lines" in found[0]
    body = "    x = 1\n" * (MOST_LINES_IN_A_FUNCTION - 1)
    assert too_long("a.py", "def f():\n" + body) == []
    assert too_long("a.py", "def f():\n" + body + "    x = 2\n") == ["a.py:1 f has 61 lines, more than 60"]


def test_a_missing_docstring_is_found() -> None:
    assert without_docstring("a.py", "x = 1\n") == ["a.py:1 the module has no docstring"]
    assert without_docstring("a.py", '"""What it is for."""\n') == []


def test_work_put_off_is_found_in_prose_only() -> None:
    assert unfinished_marks("a.py", f"x = 1  # {MARK}: later\n") == [f"a.py:1 puts work off: # {MARK}: later"]
    assert len(unfinished_marks("a.py", f'def f():\n    """One.\n\n    {MARK} two.\n    """\n')) == 1
    assert unfinished_marks("a.py", f"x = '{MARK}'  # a word in the data\n") == []


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    f()\nexcept:\n    pass\n",
        "try:\n    f()\nexcept Exception:\n    pass\n",
        "try:\n    f()\nexcept (ValueError, BaseException) as error:\n    ...\n",
        "for x in y:\n    try:\n        f()\n    except Exception:\n        continue\n",
        "import contextlib\nwith contextlib.suppress(Exception):\n    f()\n",
    ],
)
def test_a_swallowed_error_is_found(source: str) -> None:
    assert len(swallowed_errors("a.py", source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    f()\nexcept KeyError:\n    pass\n",
        "try:\n    f()\nexcept Exception as error:\n    raise ValueError('what') from error\n",
        "import contextlib\nwith contextlib.suppress(KeyError):\n    f()\n",
    ],
)
def test_a_handled_error_is_not_reported(source: str) -> None:
    assert swallowed_errors("a.py", source) == []


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
        for node in ast.walk(ast.parse(path.read_text())):
            bases = {getattr(base, "id", "") for base in node.bases} if isinstance(node, ast.ClassDef) else set()
            if bases & known and path.name != "errors.py":
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert found == []
