"""The examples of the documents: Python blocks to run, and the output that some of them promise.

A Markdown text comes in; its ```python blocks come out in order, each with the line where it begins. A line that says
``prints:`` between a Python block and a ```text block makes that text its promised output, in which ``...`` stands for
anything.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_BLOCK = re.compile(r"^```(?P<language>[^\n`]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """One block of Python."""

    line: int
    """The line of the document on which its code begins."""
    source: str
    prints: str | None
    """What it promises to print; None if it promises nothing."""


def examples_in(text: str) -> list[Example]:
    """The Python blocks of a document in order."""
    found: list[Example] = []
    end_of_python: int | None = None
    for block in _BLOCK.finditer(text):
        language, body = block["language"].strip(), block["body"]
        if language == "python":
            line = text.count("\n", 0, block.start("body")) + 1
            found.append(Example(line, body, None))
            end_of_python = block.end()
            continue
        if language == "text" and end_of_python is not None:
            if text[end_of_python : block.start()].strip().lower() == "prints:":
                found[-1] = found[-1]._replace(prints=body)
        end_of_python = None
    return found
