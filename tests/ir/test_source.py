"""Source lines: what they say, and which frame is the user's."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

from clew.ir import source
from clew.ir.source import SourceLine, hide_folder, is_hidden, user_frame, user_source


def test_the_line_is_read_when_somebody_looks(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("import math\n\n    x = math.sqrt(2)\n")
    line = SourceLine(str(file), 3, "forward")
    assert line.text == "x = math.sqrt(2)"
    assert line.describe() == f"{file}:3, in forward: x = math.sqrt(2)"
    assert line.as_stack_trace() == f'File "{file}", line 3, in forward\n    x = math.sqrt(2)'


def test_a_file_that_cannot_be_read() -> None:
    line = SourceLine("nowhere.py", 7)
    assert line.text == ""
    assert line.describe() == "nowhere.py:7"
    assert line.as_stack_trace() == 'File "nowhere.py", line 7, in <module>'
    assert repr(line) == "SourceLine(nowhere.py:7)"


def test_equal_lines() -> None:
    line = SourceLine("a.py", 1, "f")
    assert line == SourceLine("a.py", 1, "f") == pickle.loads(pickle.dumps(line))
    assert len({line, SourceLine("a.py", 1, "f")}) == 1
    assert line != SourceLine("a.py", 2, "f")
    assert line != "a.py:1"


def test_the_users_frame_is_this_one() -> None:
    here = inspect.currentframe()
    assert here is not None
    found = user_source()
    assert found is not None
    assert found.filename == __file__
    assert found.function == "test_the_users_frame_is_this_one"
    assert found.text == "found = user_source()"
    assert user_frame() is here


def test_one_place_is_one_object() -> None:
    lines = [user_source() for _ in range(3)]
    assert lines[0] is lines[1] is lines[2]


def test_code_of_clew_and_of_woken_frameworks_is_hidden(tmp_path: Path) -> None:
    assert is_hidden(user_source.__code__)
    stranger = compile("0", str(tmp_path / "lib" / "a.py"), "exec")
    assert not is_hidden(stranger)
    hide_folder(f"{tmp_path / 'lib'}/")
    try:
        assert is_hidden(stranger)
    finally:
        source._hidden_folders.remove(f"{tmp_path / 'lib'}/")
        source._hidden_code.clear()
