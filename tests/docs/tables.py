"""The tables of a document: which names they hold under which heading, and what they say of them.

A table belongs to the last heading above it. Its first column holds names in backquotes, several where they share a
row; the second column is their state; the third a note.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_HEADING = re.compile(r"#+ +(?P<text>.+)")
_NAME = re.compile(r"`([^`]+)`")
_CELL = re.compile(r"(?<!\\)\|")


class Row(NamedTuple):
    """What a table says of one name."""

    heading: str
    name: str
    state: str
    note: str


def rows_in(text: str) -> list[Row]:
    """All rows of all tables, one for each name; header rows name nothing and so are left aside."""
    found: list[Row] = []
    heading = ""
    for line in text.splitlines():
        if match := _HEADING.fullmatch(line):
            heading = match["text"].strip("` ")
        elif line.startswith("|"):
            cells = [cell.strip() for cell in _CELL.split(line)[1:-1]]
            found += [Row(heading, name, cells[1], cells[2]) for name in _NAME.findall(cells[0]) if len(cells) == 3]
    return found
