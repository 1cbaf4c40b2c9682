"""The developers' pages name what is there: each file, and each name in the source that they mention."""

from __future__ import annotations

import re
import runpy
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from clew.ir.guests import FRAMEWORK_PACKAGES
from tests.architecture.project import ROOT

PAGES = sorted((ROOT / "docs" / "dev").glob("*.md"))
HOMES = ("src", "tests", "benchmarks", "docs", "view_app")
TOKEN = re.compile(r"`([^`\s]+)`")
FILE = re.compile(r"[\w./<>*-]+\.(?:py|json|jsonl|txt|md|toml)")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@cache
def files() -> tuple[str, ...]:
    found = [path for home in HOMES for path in (ROOT / home).rglob("*") if path.is_file()]
    found += [path for path in ROOT.iterdir() if path.is_file()]
    return tuple("/" + path.relative_to(ROOT).as_posix() for path in found if "node_modules" not in path.parts)


@cache
def words() -> frozenset[str]:
    """All words of the source and the tests."""
    texts = [(ROOT / name[1:]).read_text(encoding="utf-8") for name in files() if name.endswith((".py", ".toml"))]
    return frozenset(word for text in [*texts, (ROOT / "Makefile").read_text()] for word in re.findall(r"\w+", text))


def tokens(page: Path) -> list[str]:
    """What the prose of a page has in backticks; blocks of code are left out."""
    prose = re.sub(r"^(```.*?^```|    .*?)$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return sorted(set(TOKEN.findall(prose)))


def is_there(name: str) -> bool:
    """Whether a file of this name, or with this end of its path, exists; ``<name>`` and ``*`` stand for any name."""
    pattern = re.escape(name).replace(r"<name>", r"[^/]+").replace(r"<each>", r"[^/]+").replace(r"\*", r"[^/]*")
    return any(re.search(f"/{pattern}$", one) for one in files())


def is_known(name: str) -> bool:
    """Whether each part of a dotted name is a word of the source; what follows the name of a file stands in that."""
    home, _, own = name.rpartition(".")
    homes = [one for one in files() if one.startswith("/src/") and one.endswith(f"/{home.rpartition('.')[2]}.py")]
    if not homes or name.partition(".")[0] in FRAMEWORK_PACKAGES:
        return set(name.split(".")) <= words()
    return any(re.search(rf"\b{own}\b", (ROOT / one[1:]).read_text(encoding="utf-8")) for one in homes)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = [token for token in tokens(page) if FILE.fullmatch(token)]
    assert [name for name in named if not is_there(name)] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "status"], ids=lambda page: page.stem)
def test_names_that_a_page_mentions_stand_in_the_source(page: Path) -> None:
    named = [token for token in tokens(page) if NAME.fullmatch(token) and not FILE.fullmatch(token)]
    assert [name for name in named if not is_known(name)] == []


def test_pages_that_name_what_is_gone_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Read `capture/nowhere.py`, then `runtime/build.py`.\n\n```python\n`not/this.py`\n```\n")
    assert [token for token in tokens(page) if not is_there(token)] == ["capture/nowhere.py"]
    assert is_known("effects.pure") and not is_known("effects.Namespace")


WALK = {
    "api.py": "trace",
    "capture/control_flow/explore.py": "capture_until_known",
    "capture/recording/run.py": "run",
    "frameworks/torch/recorder.py": "__torch_function__",
    "capture/guards/lifting.py": "lift_guards",
    "codegen/python.py": "python_code",
}
"""The files of the walk-through, and where a capture enters each."""


def test_a_capture_goes_through_the_files_of_the_walk_through_in_their_order(tmp_path: Path) -> None:
    flow = (ROOT / "docs" / "dev" / "flow.md").read_text(encoding="utf-8")
    assert re.findall(r"^\d\. \*\*`([^`]+)`\*\*", flow, flags=re.MULTILINE) == list(WALK)
    block = re.search(r"^    def scaled.*?(?=^\S)", flow, flags=re.MULTILINE | re.DOTALL)
    assert block is not None
    program = tmp_path / "walk_through.py"
    program.write_text("import torch\nimport clew\n\n" + textwrap.dedent(block.group()))
    runpy.run_path(str(program))
    entered = _entered(lambda: runpy.run_path(str(program)))
    assert sorted(WALK.items(), key=entered.index) == list(WALK.items())
    entered_files = {name for name, _ in entered}
    walked = flow[block.end() : flow.index("\n## ", block.end())]
    named = [token for token in TOKEN.findall(walked) if FILE.fullmatch(token)]
    others = {"frameworks/numpy/capture.py", "frameworks/jax/capture.py"}  # of other programs
    assert set(named) - others - entered_files == set()


def _entered(call: Callable[[], Any]) -> list[tuple[str, str]]:
    """The functions of the package, with their files, in the order in which a call enters them first."""
    package, found = str(ROOT / "src" / "clew") + "/", {}

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(package):
            found.setdefault((code.co_filename.removeprefix(package), code.co_name), None)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)
