"""Every error that a program can meet has a page, which the index of errors lists."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import clew
from clew import errors

PAGES = Path(__file__).resolve().parents[2] / "docs" / "errors"
INSIDE = {
    "ClewError": "the base of all",
    "NotAllowed": "TextError and BundleError tell it",
    "DuplicateName": "nodes cannot be given the same name by the public interface",
}
"""Classes without a page, and why."""


def test_every_error_has_a_page_and_a_line_of_the_index():
    kinds = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, clew.ClewError)]
    wanted = {one.__name__ for one in kinds} - INSIDE.keys()
    assert {path.stem for path in PAGES.glob("*.md")} - {"index"} == wanted
    assert set(re.findall(r"^\| \[(\w+)\]\(\1\.md\) \|", (PAGES / "index.md").read_text(), re.MULTILINE)) == wanted
